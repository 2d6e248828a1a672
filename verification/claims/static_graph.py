"""Claim `static_graph`: a captured graph finds its blocks where it was told."""

from __future__ import annotations

from typing import Any

import z3

from hitproof.spec.bound import BoundGroup
from hitproof.spec.condition import bind
from hitproof.spec.rulebook import Flag
from hitproof.spec.scenario import Expectation
from hitproof.verification.axioms.truth import Truth, truthful
from hitproof.verification.decode import decode_scenario, small
from hitproof.verification.encode import encode
from hitproof.verification.model import GroupModel, World
from hitproof.verification.run import Claim, Run

__all__ = ["CLAIM"]


def prove(run: Run) -> None:
    """Accepted, captured and not flagged eager: pool, layout and stride are those of the capture."""
    eager = next((flag for flag in run.bound.flags if flag.id == "eager"), None)
    groups = [g for g in run.bound.groups if g.rules.mandatory and g.constants.get("has_bytes")]
    for group in groups:
        _captured_is_allowed(run, group, eager)
        if run.done:
            return
    for group in groups:
        _choices_stay_in_pool(run, group)
        if run.done:
            return
    run.covered.append(f"{len(groups)} groups with bytes; every repair leaves its block in the current pool")


def _captured_is_allowed(run: Run, group: BoundGroup, eager: Flag | None) -> None:
    world = World(run.bound)
    model = world.group(group.id)
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
        truth["address"] % alignment == 0,
    )
    allowed = z3.And(allowed, *declared)
    found = run.must_not(
        world.ctx,
        [*base, z3.Not(allowed), *world.domains()],
        f"{group.id}: captured is allowed",
        soft=[z3.And(sealed.known, sealed.value), *small(world, *world.models.values())],
    )
    if found is None:
        if run.witness is None and run.must(world.ctx, [*base, *world.domains()], f"{group.id}: witness") is not None:
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


def _choices_stay_in_pool(run: Run, group: BoundGroup) -> None:
    """A repair that gives a segment a new block takes it from the current pool; no other address may come in."""
    world = World(run.bound)
    model = world.group(group.id)
    epoch = world.shared("runtime.pool_epoch")
    for option in group.options:
        post, promises = model.after(option)
        moved = post("address").value != model.own("address").value
        premise = [
            model.applies(option),
            model.needed(),
            model.identity(),
            *promises,
            moved,
            epoch.known,
            *world.usual(),
        ]
        stays = z3.And(post("pool_epoch").known, post("pool_epoch").value == epoch.value)
        found = run.must_not(
            world.ctx,
            [*premise, z3.Not(stays), *world.domains()],
            f"{group.id}/{option.id} stays in the pool",
            soft=small(world, *world.models.values()),
        )
        if found is not None:
            _report_option(run, world, group, option, found.model, post)
            return


def _report_option(run: Run, world: World, group: BoundGroup, option: Any, found: Any, post: Any) -> None:
    model = world.group(group.id)
    length = found.eval(world.length, model_completion=True).as_long()
    failing = [
        check.id
        for check in group.checks
        if not z3.is_true(found.eval(model.holds(check.id, post), model_completion=True))
    ]
    run.fail(
        f"{group.id}/{option.id} takes a block that is not of the current pool",
        option.rule,
        option.where,
        decode_scenario(
            found,
            world,
            "static_graph",
            f"{option.id} leaves the pool",
            Expectation(option=f"{group.id}/{option.id}", at=length, fails_after=failing),
        ),
    )


CLAIM = Claim(
    id="static_graph",
    sentence="What a captured graph reuses without an eager flag lies in the pool of the capture, in its layout and "
    "stride; no repair brings in a block of another pool.",
    method="validity a group, over truthful facts (claim `sound` keeps them truthful through every transition)",
    assumptions=("writers_tell",),
    prove=prove,
)
