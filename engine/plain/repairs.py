"""Checks that fail, options that may run, and what a repair leaves behind."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from hitproof.spec.bound import BoundGroup, BoundOption
from hitproof.spec.condition import Node, Ref, interpret
from hitproof.spec.facts import Value, admit
from hitproof.spec.price import ticks
from hitproof.spec.rulebook import LEVELS

__all__ = ["Env", "failing", "may_run", "of_self", "options_of", "run"]

Env = dict[str, Value]
"""Values by path or, of a segment alone, by fact; what is missing is unknown."""

TOUCHED = ("identity", "block_integrity")
"""Layers that must hold of bytes before a repair reads them."""


def failing(group: BoundGroup, env: Env) -> tuple[str, ...]:
    """Checks that do not surely hold, unless the group is surely not needed."""
    if interpret(group.needed, env) is False:
        return ()
    return tuple(check.id for check in group.checks if interpret(check.require, env) is not True)


def may_run(group: BoundGroup, option: BoundOption, failed: Sequence[str], env: Env) -> bool:
    """An option runs if it mends something that fails, its sources are ready and sound, and its condition holds."""
    spoilt = {check.id for check in group.checks if check.layer in TOUCHED} & set(failed) - option.mends
    return (
        bool(option.mends & set(failed))
        and all(env[f"{role}.ready"] for role in option.peers)
        and not (option.own_bytes and spoilt)
        and interpret(option.when, env) is True
    )


def options_of(group: BoundGroup, failed: Sequence[str], env: Env) -> list[tuple[int, BoundOption]]:
    """The options that may run, with their prices in ticks; cheapest first, then the lower level, then by id."""
    found = [
        (ticks(interpret(option.cost, env)), option) for option in group.options if may_run(group, option, failed, env)
    ]
    return sorted(found, key=lambda one: (one[0], LEVELS.index(one[1].level), one[1].id))


def run(group: BoundGroup, option: BoundOption, env: Env, owned: Collection[str] = ()) -> Env | None:
    """The segment's facts after a repair; None where one that the engine owns would not stay known.

    All changes read the state before. What is neither changed nor kept is lost, and so is what leaves its domain.
    """
    after = {fact: admit(declared, _changed(group, option, fact, env)) for fact, declared in group.facts.items()}
    return None if any(after[fact] is None for fact in owned) else after


def _changed(group: BoundGroup, option: BoundOption, fact: str, env: Env) -> Value:
    effect, was = option.effect, env.get(f"self.{fact}")
    if fact in effect.sets:
        return interpret(effect.sets[fact], env)  # type: ignore[no-any-return]
    if fact in effect.resets:
        return _set_of(interpret(effect.resets[fact], env))
    if fact in effect.adds:
        more = _set_of(interpret(effect.adds[fact], env))
        return was | more if isinstance(was, frozenset) and more is not None else None
    if fact in effect.chooses:
        return _any_that_keeps(effect.chooses[fact], Ref(f"self.{fact}", group.facts[fact]))
    if effect.renews and fact in ("recorded", "measured"):
        return f"fingerprint of {group.id} by {option.id} from {env['share.first']}"
    return was if fact in effect.keeps else None


def of_self(segment: Env) -> Env:
    """A segment's facts as conditions of its own group read them."""
    return {f"self.{fact}": value for fact, value in segment.items()}


def _set_of(item: Any) -> frozenset[int] | None:
    return None if item is None else frozenset({item})


def _any_that_keeps(promise: Node, chosen: Ref) -> Value:
    """An allocator's choice: the least value of the fact's domain that keeps the promise."""
    lo, hi = chosen.fact.lo, chosen.fact.hi
    values = range(int(lo), int(hi) + 1) if lo is not None and hi is not None else ()
    return next((value for value in values if interpret(promise, {chosen.path: value}) is True), None)
