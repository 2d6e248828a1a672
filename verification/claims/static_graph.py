"""Claim `static_graph`: a captured graph finds its blocks where it was told."""

from __future__ import annotations

from typing import Any

import z3

from hitproof.spec.bound import BoundGroup, BoundOption, BoundRulebook
from hitproof.spec.condition import bind
from hitproof.spec.rulebook import Flag
from hitproof.spec.scenario import Expectation
from hitproof.verification.axioms.truth import Truth, truthful
from hitproof.verification.decode import decode_scenario, option_story, small
from hitproof.verification.encode import encode
from hitproof.verification.model import GroupModel, Post, World
from hitproof.verification.parts import Part, each_group
from hitproof.verification.run import Claim, Run
from hitproof.verification.terms import all_of, equal, negated

__all__ = ["CLAIM"]


def parts(bound: BoundRulebook) -> list[Part]:
    """One a group that has bytes."""
    groups = [group for group in bound.groups if group.rules.mandatory and group.constants.get("has_bytes")]
    constants = ("alignment", "has_bytes", "row_tokens")
    return each_group(groups, "checks", "options", "flags", "invariants", constants=constants)


def prove(run: Run) -> None:
    """Accepted, captured and not flagged eager: pool, layout and stride are those of the capture."""
    eager = next((flag for flag in run.bound.flags if flag.id == "eager"), None)
    model = World(run.bound).group(run.group.id)
    run.count += 1
    _captured_is_allowed(run, model, eager)
    if not run.done:
        _choices_stay_in_pool(run, model)


def _captured_is_allowed(run: Run, model: GroupModel, eager: Flag | None) -> None:
    world, group = model.world, model.group
    truth = Truth.fresh(world.ctx, f"{group.id}.")
    request = world.shared
    captured, graph = request("request.captured"), request("request.graph_epoch")
    quiet = (
        z3.BoolVal(True, ctx=world.ctx) if eager is None else encode(eager.unless["*"], world.shared, ctx=world.ctx).T
    )
    base = [
        model.accepted(),
        *model.peers_accepted(),
        model.needed(),
        captured.known,
        captured.value,
        quiet,
        *(clause for _, clause in truthful(model, model.own, truth)),
        *world.usual(),
        world.length > 0,
    ]
    alignment = int(group.constants["alignment"])
    declared = _declared(run, group, model)
    sealed = model.own("sealed")
    # What a capture bakes in: addresses of one pool, the layout of rows, the stride between them.
    kernel_layout = model.kernel("layout")
    allowed = z3.And(
        graph.known,
        truth["pool"] == graph.value,
        kernel_layout.known,
        truth["layout"] == kernel_layout.value,
        truth["stride"] % alignment == 0,
        (truth["address"] + truth["offset"]) % alignment == 0,
    )
    allowed = z3.And(allowed, *declared)
    found = run.must_not(
        world.ctx,
        [*base, z3.Not(allowed), *world.domains()],
        f"{group.id}: captured is allowed",
        soft=lambda: [z3.And(sealed.known, sealed.value), *small(world, *world.models.values())],
    )
    if found is None:
        if run.must(world.ctx, [*base, *world.domains()], f"{group.id}: witness") is not None:
            run.witness = f"{group.id} can be reused under a captured graph"
        return
    length = found.model.eval(world.length, model_completion=True).as_long()
    place = eager.where if eager is not None else group.rules.where
    guilty = next((c for c in group.checks if c.id == "pool_current"), None)
    run.fail(
        f"{group.id} is reused by a captured graph although its block is not where the graph was captured",
        f"{group.object}/{guilty.id}" if guilty else "flags/eager",
        place if guilty else group.rules.where,
        decode_scenario(
            found.model,
            world,
            "static_graph",
            "a captured graph is not sent to eager, and its blocks have moved",
            Expectation(accepted=True, at=length, flags=[]),
        ),
    )


def _declared(run: Run, group: BoundGroup, model: GroupModel) -> list[Any]:
    """The rulebook's own invariants over used segments."""
    constants = {f"group.{name}": value for name, value in group.constants.items()}
    return [
        model.dual(bind(invariant.require[group.object], constants, where=invariant.where, rule=invariant.id)).T
        for invariant in run.bound.invariants
        if invariant.over == "used"
    ]


def _choices_stay_in_pool(run: Run, model: GroupModel) -> None:
    """A repair that gives a segment a new block takes it from the current pool; no other address may come in."""
    world, group = model.world, model.group
    epoch = world.shared("runtime.pool_epoch")
    leaving: dict[str, tuple[BoundOption, Post]] = {}
    questions: list[tuple[str, Any]] = []
    for option in group.options:
        post, promises = model.after(option)
        moved = negated(equal(post("address").value, model.own("address").value))
        stays = all_of([post("pool_epoch").known, equal(post("pool_epoch").value, epoch.value)], model.true)
        label = f"{group.id}/{option.id} stays in the pool"
        leaving[label] = option, post
        questions.append((label, all_of([model.applies(option), *promises, moved, negated(stays)], model.true)))
    premise = [model.needed(), model.identity(), epoch.known, *world.usual(), *world.domains()]
    found = run.must_none(world.ctx, premise, questions, soft=lambda: small(world, *world.models.values()))
    if found is not None:
        _report_option(run, model, *leaving[found[0]], found[1].model)


def _report_option(run: Run, model: GroupModel, option: BoundOption, post: Post, found: Any) -> None:
    run.fail(
        f"{model.group.id}/{option.id} takes a block that is not of the current pool",
        option.rule,
        option.where,
        option_story(found, model, option, post, "static_graph", f"{option.id} leaves the pool"),
    )


CLAIM = Claim(
    id="static_graph",
    sentence="What a captured graph reuses without an eager flag lies in the pool of the capture, in its layout and "
    "stride; no repair brings in a block of another pool.",
    method="validity a group, over truthful facts (claim `sound` keeps them truthful through every transition)",
    assumptions=("writers_tell", "the claim sound"),
    prove=prove,
    parts=parts,
    covers="{count} groups with bytes; every repair leaves its block in the current pool",
)
