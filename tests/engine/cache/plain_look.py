"""The look-up written to be read: every key that is filed is looked at, and every segment compared with every other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hitproof.engine.cache.core import Core
from hitproof.engine.cache.prompt import Prompt
from hitproof.engine.cache.slot import Slot
from hitproof.spec.condition import interpret
from hitproof.spec.facts import admit

__all__ = ["plain_find", "plain_look"]

Agreed = Mapping[Slot, int]


def plain_find(core: Core, prompt: Prompt) -> dict[Slot, int]:
    """Every segment to which a key of the prompt leads, with the deepest end of such a key."""
    facts = prompt.request.as_dict("request.")
    found: dict[Slot, int] = {}
    for (_, end, digest, *parts), slot in core.index.filed():
        key = next(one for one in slot.group.keys if one.tier == "device")
        named = interpret(key.tokens, {"length": end})
        if end > prompt.length or digest != prompt.digest(named):
            continue
        wanted = []
        for fact, node in key.fields.items():
            begins = key.begins.get(fact)
            if begins is not None and facts[f"request.{begins}"] >= named:
                continue
            wanted += [] if begins is None else [(begins, facts[f"request.{begins}"])]
            wanted.append((fact, admit(slot.group.facts[fact], interpret(node, facts))))
        if parts == wanted:
            found[slot] = max(end, found.get(slot, 0))
    return found


def plain_look(core: Core, prompt: Prompt) -> dict[str, list[tuple[int, int]]]:
    """Numbers of the segments of each group in token order, each with the tokens on which it and the prompt agree."""
    agreed = plain_find(core, prompt)
    seen = [
        slot
        for slot in agreed
        if slot.facts.form not in ("pending", "moving", "quarantined", "discarded") and not slot.suspect
    ]
    chosen: dict[str, list[tuple[int, int]]] = {}
    for group, bound in core.groups.items():
        of_group = sorted((slot for slot in seen if slot.group.id == group), key=lambda slot: _rank(slot, agreed))
        in_order = _ends if bound.rules.pieces == "point" else _chain
        chosen[group] = [(slot.number, agreed[slot]) for slot in in_order(of_group, _end_of(agreed))]
    return chosen


def _rank(slot: Slot, agreed: Agreed) -> tuple[Any, ...]:
    """On the device first, then whole ones, then the further, then the younger."""
    facts = slot.facts
    whole = facts.recorded is None or facts.measured == facts.recorded
    entry = 0 if slot.entry is None else slot.entry.number
    return not _at_home(slot), not whole, -agreed[slot], -entry, -slot.number


def _at_home(slot: Slot) -> bool:
    return bool(slot.facts.tier == "device" and slot.facts.form == slot.group.home)


def _end_of(agreed: Agreed) -> Callable[[Slot], int]:
    return lambda slot: min(agreed[slot], slot.facts.end)


def _ends(ranked: list[Slot], end: Callable[[Slot], int]) -> list[Slot]:
    """The best segment of each end."""
    best: dict[int, Slot] = {}
    for slot in ranked:
        best.setdefault(end(slot), slot)
    return [best[one] for one in sorted(best)]


def _chain(ranked: list[Slot], end: Callable[[Slot], int]) -> list[Slot]:
    """From the first token on, whatever reaches furthest, from the device if it can be; gaps stay gaps."""
    chain: list[Slot] = []
    reached = -1
    while left := [slot for slot in ranked if slot.facts.start is not None and end(slot) > reached]:
        touching = [slot for slot in left if slot.facts.start <= max(reached, 0)]
        if touching:
            best = max([slot for slot in touching if _at_home(slot)] or touching, key=end)
        else:
            best = min(left, key=lambda slot: (slot.facts.start, -end(slot)))
        chain.append(best)
        reached = end(best)
    return chain
