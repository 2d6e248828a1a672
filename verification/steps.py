"""Transitions as Z3 steps: guard, facts after, and the arguments of the event."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import z3

from hitproof.spec.bound import BoundGroup
from hitproof.spec.rulebook import Transition
from hitproof.verification.encode import Z3Fact, Z3Facts, encode, encode_number
from hitproof.verification.model import GroupModel, Post
from hitproof.verification.terms import all_of, equal

__all__ = ["Step", "machines", "make_step", "steps"]


@dataclass(frozen=True)
class Step:
    """One transition from one source form.

    Args:
        transition: The rule.
        source: Form before.
        guard: It may fire: form, pins and condition; the owner rule stands apart, for it speaks of other segments.
        post: Facts after.
        event: Arguments.
        donor: Facts of the donor, where there is one.
        before_address: The block that the facts named before.
    """

    transition: Transition
    source: str
    guard: Any
    post: Post
    event: Z3Facts
    donor: Z3Facts | None
    before_address: Any


def machines(groups: Iterable[BoundGroup]) -> Iterator[BoundGroup]:
    """One group for each form machine: groups of one object whose transitions bind to the same rules need one proof."""
    seen: set[tuple[str, str]] = set()
    for group in groups:
        key = (group.object, repr(group.transitions))
        if key not in seen:
            seen.add(key)
            yield group


def steps(model: GroupModel) -> Iterator[Step]:
    """Every transition of a group from each of its source forms."""
    for transition in model.group.transitions:
        for source in transition.sources:
            yield make_step(model, transition, source)


def make_step(model: GroupModel, transition: Transition, source: str, own: Any = None, tag: str = "") -> Step:
    """One transition on the group's segment, or on another state `own` of it."""
    world, facts = model.world, dict(model.group.facts)
    state = model.own if own is None else own
    prefix = f"{model.own.prefix}{tag}{transition.id}."
    event = Z3Facts(world.enums, facts, f"{prefix}event.")
    donor = (
        Z3Facts(world.enums, facts, f"{prefix}donor.", world.bound.rulebook.engine_owned) if transition.donor else None
    )

    def names(path: str) -> Z3Fact:
        scope, _, name = path.partition(".")
        if scope == "event":
            return event(name)
        if scope == "donor" and donor is not None:
            return donor(name)
        return model.resolve(path, state)

    def number(node: Any) -> tuple[Any, Any]:
        return encode_number(node, names, ctx=world.ctx, enums=world.enums)

    form = facts["form"].type
    guard = [equal(state("form").value, world.enums.member(form, source))]
    pins = state("pins").value
    guard += {"unpinned": [pins == 0], "exclusive": [pins == 1], "any": []}[transition.pins]
    if transition.when is not None:
        guard.append(encode(transition.when, names, ctx=world.ctx, enums=world.enums).T)
    after: dict[str, Z3Fact] = {}
    for name, fact in facts.items():
        if name == "form":
            after[name] = Z3Fact(world.enums.member(form, transition.target), world.true)
        elif name in transition.forgets:
            after[name] = model.forgotten(name) if state is model.own else Z3Fact(state(name).value, world.false)
        elif name in transition.sets:
            value, known = number(transition.sets[name])
            after[name] = Z3Fact(value, all_of((known, world.enums.within(fact, value)), world.true))
        elif name in transition.takes:
            after[name] = event(name)
        elif name == "epoch":
            before = state(name)
            after[name] = before if transition.keeps_prefix else Z3Fact(before.value + 1, world.true)
        elif donor is not None:
            after[name] = Z3Fact(z3.IntVal(0, ctx=world.ctx), world.true) if name == "pins" else donor(name)
        else:
            after[name] = state(name)
    for name in world.bound.rulebook.engine_owned & set(facts):
        guard.append(after[name].known)
    return Step(transition, source, all_of(guard, world.true), Post(after), event, donor, state("address").value)
