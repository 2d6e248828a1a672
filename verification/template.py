"""What holds of a holder and a segment in every state that they can reach: goals, and a template that carries them.

The template is the same for every rulebook and linear in its events. A rulebook for which it does not carry may still
be right, and is then asked in other ways.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hitproof.spec.condition import Node
from hitproof.verification.encode import Z3Fact, encode
from hitproof.verification.holder import Program, State, at_rest
from hitproof.verification.terms import all_of, equal, implies, negated

__all__ = ["Clause", "goals", "template"]

Clause = tuple[str, Any]
"""What it says in a word or two, and the formula."""


def goals(program: Program, state: State, declared: Sequence[tuple[str, Node]]) -> list[Clause]:
    """What must never fail, whatever happened before.

    Args:
        program: The lease.
        state: The state.
        declared: The rulebook's own invariants over leases, for the segment's object.
    """
    model, holder, true = program.model, state.holder, program.model.true
    honest, pinned = program.honest(holder), program.pinned(holder)
    form, epoch = state.facts("form").value, state.facts("epoch").value
    unmoved = all_of((program.noted(holder), equal(epoch, holder.epoch), negated(holder.diverted)), true)
    resting = at_rest(model, holder.form)
    found = [
        ("read as checked", implies(all_of((holder.reading, honest), true), holder.intact)),
        ("confirmation tells", negated(holder.misled)),
        (
            "epoch tells",
            implies(all_of((unmoved, resting), true), all_of((holder.intact, equal(form, holder.form)), true)),
        ),
        ("pins stay", implies(all_of((pinned, negated(holder.robbed)), true), state.facts("pins").value >= 1)),
        ("pins given back", implies(holder.at == program.over, negated(pinned))),
    ]
    under_way = all_of((holder.confirmed, honest, holder.at <= program.held), true)
    read = all_of((holder.reading, honest), true)
    names = _names(program, state)
    for name, node in declared:
        holds = encode(node, names, ctx=model.world.ctx, enums=model.world.enums).T
        found.append((name, all_of((implies(under_way, holds), implies(read, holds)), true)))
    return found


def template(program: Program, state: State) -> list[Clause]:
    """Clauses that together with the goals are kept by every step."""
    model, holder, true = program.model, state.holder, program.model.true
    noted, pinned, honest = program.noted(holder), program.pinned(holder), program.honest(holder)
    form, epoch = state.facts("form").value, state.facts("epoch").value
    resting, same_epoch = at_rest(model, holder.form), equal(epoch, holder.epoch)
    early = all_of([negated(term) for term in (holder.checked, holder.confirmed, holder.reading)], true)
    held = [holder.intact, same_epoch, equal(form, holder.form), resting]
    return [
        ("steps in order", all_of((holder.at >= 0, holder.at <= program.over), true)),
        ("nothing before it is held", implies(holder.at < program.held, early)),
        ("confirmed after checked", implies(holder.confirmed, holder.checked)),
        (
            "read after confirmed",
            implies(holder.reading, all_of((holder.confirmed, program.may_read(holder)), true)),
        ),
        ("read while pinned", implies(all_of((holder.reading, honest), true), pinned)),
        ("form tells", implies(all_of((noted, resting, same_epoch), true), equal(form, holder.form))),
        ("epochs grow", implies(noted, holder.epoch <= epoch)),
        (
            "mapping tells",
            implies(all_of((noted, holder.diverted, resting, same_epoch), true), negated(program.same_mapping(state))),
        ),
        (
            "commits are told",
            implies(all_of((noted, holder.checked, negated(resting), same_epoch), true), at_rest(model, form)),
        ),
        (
            "fit since checked",
            implies(all_of((noted, holder.checked, resting, same_epoch), true), program.fit(state)),
        ),
        ("held as noted", implies(all_of((holder.confirmed, pinned, honest), true), all_of(held, true))),
    ]


def _names(program: Program, state: State) -> Any:
    """Facts of an invariant over leases by path."""

    def names(path: str) -> Z3Fact:
        if path == "lease.confirmed":
            return Z3Fact(program.model.true, program.model.true)
        if path == "lease.epoch":
            return Z3Fact(state.holder.epoch, program.model.true)
        return program.model.resolve(path, state.facts)

    return names
