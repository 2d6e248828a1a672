"""Valid requests, of which it is known by construction how much they can reuse."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hitproof.integrations.transformers.oracle.arms import Serve, cold_arm, error_of
from hitproof.integrations.transformers.oracle.stage import OTHER, WANTED, Stage

__all__ = ["Control", "WAYS", "controls"]


@dataclass(frozen=True, slots=True)
class Control:
    """A valid request.

    Args:
        way: How its prefix came to be stored.
        reusable: Tokens that can be reused by construction.
        reused: Tokens that were.
        error: Largest difference of a logit from cold, as a share of the spread.
    """

    way: str
    reusable: int
    reused: int
    error: float


def _plain(stage: Stage) -> int:
    """Stored by one prompt."""
    stage.store(stage.shared)
    return len(stage.shared)


def _turns(stage: Stage) -> int:
    """Stored by two turns, the second behind the first."""
    stage.store(stage.shared)
    stage.shared = [*stage.shared, *stage.tokens(OTHER // 2 + 1)]
    stage.store(stage.shared)
    return len(stage.shared)


def _boundary(stage: Stage) -> int:
    """Stored by a longer prompt that stopped where this one goes on."""
    stage.cache.prefill([*stage.shared, *stage.other], boundaries=(len(stage.shared),))
    return len(stage.shared)


def _demoted(stage: Stage) -> int:
    """Demoted whole."""
    stage.store(stage.shared)
    for slot in stage.with_bytes(stage.shared, read=False):
        stage.manager.demote(slot)
    return len(stage.shared)


def _returned(stage: Stage) -> int:
    """Demoted, and brought back to other blocks before it was asked for."""
    _demoted(stage)
    stage.cache.prefill(stage.tokens(40))
    for slot in stage.manager.find(stage.prompt(stage.shared)):
        if slot.host is not None:
            stage.manager.promote(slot)
    return len(stage.shared)


def _moved(stage: Stage) -> int:
    """Moved to other blocks by defragmentation."""
    filler = stage.tokens(60)
    stage.cache.prefill(filler)
    stage.store(stage.shared)
    for slot in stage.with_bytes(filler, read=False):
        stage.manager.evict(slot)
    for group in stage.manager.memory.groups():
        while stage.manager.defragment(group):
            pass
    return len(stage.shared)


def _crowded(stage: Stage) -> int:
    """Stored beside prompts that share a part of it."""
    half = len(stage.shared) // 2
    stage.cache.prefill([*stage.shared[:half], *stage.tokens(30)])
    stage.store(stage.shared)
    stage.cache.prefill([*stage.shared, *stage.other])
    return len(stage.shared)


def _two_tenants(stage: Stage) -> int:
    """Stored by this tenant and by another one."""
    stage.cache.prefill(stage.shared, facts={"salt": "somebody else"})
    stage.store(stage.shared)
    return len(stage.shared)


def _captured(stage: Stage) -> int:
    """Taken from a live cache of the library."""
    stage.cache.keep(stage.shared, stage.run(stage.shared))
    return len(stage.shared)


WAYS: Mapping[str, Callable[[Stage], int]] = {
    "plain": _plain,
    "turns": _turns,
    "boundary": _boundary,
    "demoted": _demoted,
    "returned": _returned,
    "moved": _moved,
    "crowded": _crowded,
    "two tenants": _two_tenants,
    "captured": _captured,
}
_SHORTEST, _LONGEST = 50, 180


def controls(stage: Stage, count: int, serve: Serve) -> list[Control]:
    """So many valid requests, of new tokens each.

    Args:
        stage: Where they are stored, one after the other.
        count: How many.
        serve: Answers each.
    """
    told = []
    names = list(WAYS)
    for place in range(count):
        way = names[place % len(names)]
        stage.draw_prompts(stage.draw.randrange(_SHORTEST, _LONGEST))
        reusable = WAYS[way](stage)
        served = serve(stage.cache, stage.asked, {})
        error = error_of(served.logits[-WANTED:], cold_arm(stage))
        told.append(Control(way, reusable, served.usable, error))
    return told
