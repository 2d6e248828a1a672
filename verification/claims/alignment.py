"""Claim `alignment`: rows start where every kernel that touches them can read and write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import z3

from hitproof.spec.bound import BoundGroup, BoundOption, BoundRulebook
from hitproof.spec.condition import reads
from hitproof.spec.rulebook import Repair
from hitproof.spec.scenario import Expectation
from hitproof.verification.axioms.truth import Truth, truthful
from hitproof.verification.decode import decode_scenario, option_story, small
from hitproof.verification.model import GroupModel, Post, World
from hitproof.verification.parts import Part, each_group
from hitproof.verification.run import Claim, Run

__all__ = ["CLAIM"]

ATTENTION = "the attention kernel"


def parts(bound: BoundRulebook) -> list[Part]:
    """One part a group with bytes, told apart by the contracts of all who read it."""
    found = []
    for group in bound.groups:
        if group.constants.get("has_bytes"):
            asked = tuple(f"{bytes_} {who}" for who, bytes_ in contracts_of(bound, group).items())
            found += each_group([group], "checks", "options", "rulebook", about=asked)
    return found


def prove(run: Run) -> None:
    """Accepted rows of one group, then rows that its repairs read and write."""
    world = World(run.bound)
    model = world.group(run.group.id)
    truth = Truth.fresh(world.ctx, f"{run.group.id}.")
    contracts = {who: int(bytes_) for bytes_, _, who in (one.partition(" ") for one in run.part.about)}
    run.count += len(contracts)
    _accepted_rows(run, model, truth, contracts)
    if run.group.rules.mandatory and not run.done:
        _repaired_rows(run, model, truth, contracts)


def contracts_of(bound: BoundRulebook, group: BoundGroup) -> dict[str, int]:
    """Who reads this group's rows once it is accepted, and the alignment in bytes that each of them asks for.

    The attention kernel reads them; so does the repair of another group that names this one as a source, or that
    reads the history of all groups.
    """
    found = {ATTENTION: int(group.constants["alignment"])}
    for other in bound.groups:
        for option in other.options:
            named = any(other.peers.get(role) == group.id for role in option.peers)
            if other.id != group.id and (named or option.history):
                found[option.repair] = bound.rulebook.repairs[option.repair].reads_at
    return found


def _accepted_rows(run: Run, model: GroupModel, truth: Truth, contracts: Mapping[str, int]) -> None:
    world, group = model.world, model.group
    base = [
        model.accepted(),
        *model.peers_accepted(),
        model.needed(),
        *(clause for _, clause in truthful(model, model.own, truth)),
        *world.usual(),
        world.length > 0,
    ]
    start = truth["address"] + truth["offset"]
    met = {name: _met(start, truth["stride"], bytes_) for name, bytes_ in contracts.items()}
    found = run.must_not(
        world.ctx,
        [*base, z3.Not(z3.And(list(met.values()))), *world.domains()],
        f"{group.id}: accepted rows are aligned",
        soft=small(world, *world.models.values()),
    )
    if found is None:
        if run.must(world.ctx, [*base, *world.domains()], f"{group.id}: witness") is None:
            run.gaps.append(f"{group.id} is never accepted, so nothing was said about it")
        else:
            run.witness = f"{group.id} can be accepted"
        return
    broken = next(name for name, term in met.items() if not z3.is_true(found.model.eval(term, model_completion=True)))
    stride = found.model.eval(truth["stride"], model_completion=True).as_long()
    rule, place = _blame(group, "stride" if stride % contracts[broken] else "address")
    length = found.model.eval(world.length, model_completion=True).as_long()
    run.fail(
        f"{group.id} is accepted where its rows are not aligned to the {contracts[broken]} bytes of {broken}",
        rule,
        place,
        decode_scenario(
            found.model,
            world,
            "alignment",
            f"{group.id} is accepted at a place that {broken} cannot read",
            Expectation(accepted=True, ready=[group.id], at=length),
        ),
    )


def _repaired_rows(run: Run, model: GroupModel, truth: Truth, contracts: Mapping[str, int]) -> None:
    """What a repair reads of the segment itself, and what it writes for itself and for all who read it afterwards."""
    world, group = model.world, model.group
    told: dict[str, tuple[BoundOption, Post, str]] = {}
    asked = []
    for option in group.options:
        repair = run.bound.rulebook.repairs[option.repair]
        post, promises = model.after(option)
        failing = [z3.Not(model.holds(check)) for check in sorted(option.mends)]
        applies = [model.applies(option), z3.Or([z3.BoolVal(False, ctx=world.ctx), *failing])]
        if option.own_bytes and repair.reads_at > 1:
            label = f"{group.id}/{option.id} runs on rows that are not aligned to the {repair.reads_at} bytes of "
            label += repair.id
            met = _met(truth["address"] + truth["offset"], truth["stride"], repair.reads_at)
            told[label] = option, post, label
            asked.append((label, z3.And(*applies, z3.Not(met))))
        if repair.writes != "nothing":
            label = f"{group.id}/{option.id} leaves rows that are not aligned for all who touch them"
            told[label] = option, post, label
            asked.append((label, z3.And(*applies, *promises, z3.Not(_written(post, repair, contracts)))))
    premise = [
        *(clause for _, clause in truthful(model, model.own, truth)),
        model.needed(),
        model.identity(),
        *world.usual(),
        world.length > 0,
        *world.domains(),
    ]
    found = run.must_none(world.ctx, premise, asked, soft=lambda: small(world, *world.models.values()))
    if found is not None:
        _report(run, model, *told[found[0]], found[1].model)


def _written(post: Post, repair: Repair, contracts: Mapping[str, int]) -> Any:
    """Where the rows are is known, and suits the repair itself and everyone who reads the group."""
    address, offset, stride = (post(name) for name in ("address", "offset", "stride"))
    asked = sorted({repair.alignment, *contracts.values()})
    met = [_met(address.value + offset.value, stride.value, bytes_) for bytes_ in asked]
    return z3.And(address.known, offset.known, stride.known, *met)


def _met(start: Any, stride: Any, alignment: int) -> Any:
    return z3.And(start % alignment == 0, stride % alignment == 0)


def _blame(group: BoundGroup, fact: str) -> tuple[str, object]:
    checks = [c for c in group.checks if c.layer == "hardware_alignment" and f"self.{fact}" in reads(c.require)]
    return (checks[0].rule, checks[0].where) if checks else (group.object, group.rules.where)


def _report(run: Run, model: GroupModel, option: BoundOption, post: Post, sentence: str, found: Any) -> None:
    story = option_story(found, model, option, post, "alignment", sentence)
    run.fail(sentence, option.rule, option.where, story)


CLAIM = Claim(
    id="alignment",
    sentence="Rows that are reused, that a repair reads and that a repair writes start and step by the alignment that "
    "every kernel which touches them declares, counted from the address of the first row.",
    method="validity a group and a contract, over truthful facts; one-step obligations an option for what it reads and "
    "for what it writes",
    assumptions=("writers_tell", "the claim sound"),
    prove=prove,
    parts=parts,
    covers="{count} contracts",
)
