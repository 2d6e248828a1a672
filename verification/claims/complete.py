"""Claim `complete`: no matching state is a dead end, and nothing that is there in full and told is refused."""

from __future__ import annotations

from typing import Any

import z3

from hitproof.spec.bound import BoundRulebook
from hitproof.spec.condition import Literal
from hitproof.spec.scenario import Expectation
from hitproof.verification.axioms.held import HELD
from hitproof.verification.axioms.repairs import SOURCES
from hitproof.verification.decode import decode_scenario, small
from hitproof.verification.mendable import mendable_is_mended, reading_contracts
from hitproof.verification.model import GroupModel, World
from hitproof.verification.parts import Part, each_group
from hitproof.verification.run import Claim, Run
from hitproof.verification.usable import events_tell, whole_is_accepted

__all__ = ["CLAIM", "EVENTS", "MENDABLE", "WHOLE"]

WHOLE, EVENTS, MENDABLE = "what is whole", "events", "what could be mended"


def parts(bound: BoundRulebook) -> list[Part]:
    """A group: its way down to length 0, what could be mended, what its checks let pass, and its events."""
    groups = [group for group in bound.groups if group.rules.mandatory]
    eventful = [group for group in bound.groups if group.transitions]
    return [
        *each_group(groups, "checks", "options", constants=("row_tokens",)),
        *(
            part
            for group in groups
            if group.options
            for part in each_group([group], "checks", "options", about=(MENDABLE, *reading_contracts(bound, group)))
        ),
        *each_group(bound.groups, "checks", about=(WHOLE,), constants=(*HELD, "stored_boundaries")),
        *each_group(eventful, "transitions", about=(EVENTS,), constants=("has_bytes",), free=("stride",)),
    ]


def prove(run: Run) -> None:
    """At length 0 nothing is read, and what recomputes from there has its sources whenever it claims to apply.

    What is whole and told is accepted, and events that can be carried out happen and leave what they can tell.
    """
    if MENDABLE in run.part.about:
        mendable_is_mended(run)
        return
    if WHOLE in run.part.about:
        whole_is_accepted(run)
        return
    if EVENTS in run.part.about:
        events_tell(run)
        return
    model = World(run.bound).group(run.group.id)
    run.count += 1
    _nothing_is_read_at_zero(run, model)
    _recompute_has_sources(run, model)
    if not run.done:
        _refusal_is_possible(run, model)


def _nothing_is_read_at_zero(run: Run, model: GroupModel) -> None:
    world, group = model.world, model.group
    premise = [world.length == 0, *world.usual()]
    needed = model.needed()
    found = run.must_not(world.ctx, [*premise, needed, *world.domains()], f"{group.id}: nothing is read at 0")
    if found is not None:
        run.fail(
            f"{group.id} still needs something when nothing is reused, so a state without it has no way out",
            f"{group.object}/needed",
            group.rules.where,
            decode_scenario(
                found.model,
                world,
                "complete",
                f"{group.id} is asked for when nothing is reused",
                Expectation(accepted=False, at=0),
                segments=[],
                fill=False,
            ),
        )


def _recompute_has_sources(run: Run, model: GroupModel) -> None:
    """Whoever has the sources may recompute; whoever may recompute has the sources."""
    world, group = model.world, model.group
    option = group.recompute
    if option is None:
        run.fail(
            f"{group.id} has no full recompute: where nothing else applies, it is stuck",
            f"{group.object}/recompute",
            group.rules.where,
            None,
        )
        return
    facts = {name: world.shared(f"request.has_{name}") for name in ("media", "tokens") if name in SOURCES["forward"]}
    have = z3.And([z3.And(fact.known, fact.value) for fact in facts.values()])
    applies = model.dual(option.when).T
    base = [*world.usual(), *(fact.known for fact in facts.values())]
    stuck = run.must_not(world.ctx, [*base, have, z3.Not(applies), *world.domains()], f"{group.id}: sources suffice")
    if stuck is not None:
        run.fail(
            f"{group.id} cannot be recomputed although tokens and media are at hand",
            option.rule,
            option.where,
            _at_zero(run, world, stuck.model, "refuse", "recompute does not apply although its sources are at hand"),
        )
        return

    def wishes() -> list[Any]:
        return [*small(world), *(z3.Or(z3.Not(f.known), f.value) for n, f in sorted(facts.items()) if n == "tokens")]

    lies = run.must_not(
        world.ctx, [*base, applies, z3.Not(have), *world.domains()], f"{group.id}: sources exist", soft=wishes
    )
    if lies is not None:
        gone = [n for n, f in facts.items() if not z3.is_true(lies.model.eval(f.value, model_completion=True))]
        run.fail(
            f"{group.id} claims that it can be recomputed without {', '.join(sorted(gone))}",
            option.rule,
            option.where,
            _at_zero(run, world, lies.model, "miss", "recompute is promised without its sources"),
        )


def _at_zero(run: Run, world: World, found: Any, verdict: Any, title: str) -> Any:
    """A request that finds nothing: the engine either recomputes or refuses."""
    return decode_scenario(
        found, world, "complete", title, Expectation(verdict=verdict, length=0), segments=[], fill=False
    )


def _refusal_is_possible(run: Run, model: GroupModel) -> None:
    """The premise: identity matches, yet some check fails and nothing mends it; only the length can fall."""
    world, group = model.world, model.group
    if isinstance(group.needed, Literal) and not group.needed.value:
        return
    stuck = [z3.Not(model.applies(option)) for option in group.options]
    premise = [model.identity(), z3.Not(model.accepted()), *stuck, world.length > 0, *world.usual()]
    if run.must(world.ctx, [*premise, *world.domains()], f"{group.id}: witness") is not None:
        run.witness = f"{group.id} can match and be beyond repair, so that the length must fall"


CLAIM = Claim(
    id="complete",
    sentence="Every state whose identity matches and which is not accepted has a recovery option whose sources "
    "exist, or the reused length falls, down to 0, where nothing is read and tokens and media suffice; one step is "
    "taken where one is enough, and windows that a pass over the last tokens would bring are not left; what is there "
    "in full and told is accepted, and an event happens where it can be carried out and leaves what can be told.",
    method="validity a group at length 0; agreement of the recompute condition with the sources of a forward pass; "
    "validity of acceptance for states that are whole; inductive step an event over what facts tell",
    assumptions=("a request's claim to hold tokens and media is true",),
    prove=prove,
    parts=parts,
    covers="{count} groups fall back to length 0, and forward has its tokens and media",
)
