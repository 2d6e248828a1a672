"""The best exact plan by brute force: every byte measured first, then every length and every combination of repairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hitproof.engine.cache.look import look, view_again
from hitproof.engine.cache.prompt import Prompt
from hitproof.engine.plain import plain_decide
from hitproof.engine.state import Resolved
from hitproof.integrations.transformers.prefix_cache import PrefixCache

__all__ = ["best_exact", "known_state"]


def known_state(cache: PrefixCache, prompt: Prompt) -> Resolved:
    """All that a look-up finds, with what measuring every byte of it would tell.

    Args:
        cache: The prefix cache; nothing of it changes.
        prompt: The request.
    """
    core = cache.manager._core
    with core.lock:
        found = look(core, prompt)
        state = view_again(core, found)
        for group, pieces in found.pieces.items():
            for piece, view in zip(pieces, state.pieces[group], strict=True):
                slot = piece.slot
                if slot.host is not None:
                    view.measured = cache.memory.digest(group, bytes(cache.memory.payload(slot.host)))
                elif slot.mapped is not None:
                    view.measured = cache.memory.fingerprint(slot.mapped)
    return state


def best_exact(cache: PrefixCache, state: Resolved) -> float:
    """Price in microseconds of the best plan and of the prefill behind it.

    It asks the engine's plain twin, which skips nothing. Repairs that no transformers model can be given here are no
    plans: rows in another layout or number format cannot be read by the library's code.
    """
    bound = cache.engine.bound
    groups = tuple(
        replace(group, options=tuple(one for one in group.options if one.id not in _NOT_HERE)) for group in bound.groups
    )
    return plain_decide(replace(bound, groups=groups), state).total_us


_NOT_HERE: Mapping[str, str] = {
    "relayout": "the library reads one layout",
    "requantize": "the library reads one number format",
}
