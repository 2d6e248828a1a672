"""Claim `intersection_satisfiable`: the groups can meet, and never beyond what all of them hold."""

from __future__ import annotations

from typing import Any

import z3

from hitproof.spec.bound import BoundGroup, BoundRulebook
from hitproof.spec.scenario import Event, Expectation, Scenario, SegmentDecl
from hitproof.verification.axioms.truth import Truth, fingerprints, truthful
from hitproof.verification.decode import decode_event, decode_scenario, segment_of, small
from hitproof.verification.model import FAR, GroupModel, Post, World
from hitproof.verification.parts import Part, each_group
from hitproof.verification.run import Claim, Run
from hitproof.verification.steps import Step, make_step

__all__ = ["CLAIM"]

LIFE = ("allocate", "append", "commit")
SAVED = ("recurrent_state", "compressor_state")
STORY, BOUNDARY = "story", "boundary"


def parts(bound: BoundRulebook) -> list[Part]:
    """The story of all groups together, and one a group for its boundary."""
    groups = [group for group in bound.groups if group.rules.mandatory]
    names = tuple(group.id for group in groups)
    story = Part("all groups meet", names, (STORY,), frozenset({"checks", "transitions"}))
    bounded = [group for group in groups if group.object in SAVED or group.constants.get("has_bytes")]
    return [story, *each_group(bounded, "checks", about=(BOUNDARY,), constants=("has_bytes", "row_tokens"))]


def prove(run: Run) -> None:
    """A story in which every group is allocated, written and committed, and all accept one length above 0."""
    if STORY in run.part.about:
        _all_meet(run)
    else:
        _never_beyond(run, run.group)


def _all_meet(run: Run) -> None:
    stories = _Stories(run)
    found = run.must(stories.world.ctx, stories.formulas(), "all groups meet")
    if found is None:
        _conflict(run, stories)
        return
    scenario = stories.scenario(found.model)
    result = None if run.replayer is None else run.replayer.replay(run.whole.rulebook, scenario)
    length = found.model.eval(stories.world.length, model_completion=True).as_long()
    if result is None or not result.passed:
        why = "no engine was given" if result is None else "; ".join(result.differences)
        run.gaps.append(f"the witness did not replay ({why})")
    else:
        run.witness = f"all {len(stories.groups)} groups are committed and accepted at length {length}"


class _Stories:
    """The life of every mandatory group side by side, from discarded to committed, at one length."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.world = World(run.bound)
        self.groups = [group for group in run.bound.groups if group.rules.mandatory]
        self.lives = {group.id: self._life(group) for group in self.groups}

    def _life(self, group: BoundGroup) -> list[Step]:
        model = self.world.group(group.id)
        steps: list[Step] = []
        state: Any = model.own
        for trigger in LIFE:
            transition = next((t for t in group.transitions if t.id == trigger), None)
            if transition is None:
                break
            step = make_step(model, transition, transition.sources[0], state)
            steps.append(step)
            state = step.post
        return steps

    def formulas(self) -> list[Any]:
        """Every event fires, and every group accepts the same length, which is above 0."""
        return [*self._lived(), *self.checks().values(), *self.world.domains()]

    def checks(self) -> dict[tuple[str, str], Any]:
        """What each check of each group says after the group's life."""
        after = {name: steps[-1].post if steps else Post({}) for name, steps in self.lives.items()}
        found: dict[tuple[str, str], Any] = {}
        for group in self.groups:
            committed = _Committed(self.world.group(group.id), after)
            for check in group.checks:
                found[group.id, check.id] = committed.holds(check.id, after[group.id])
        return found

    def _lived(self) -> list[Any]:
        world = self.world
        unit = world.shared("request.granularity").value
        parts: list[Any] = [world.length > 0, *world.usual(), unit == 1]
        for group in self.groups:
            model, steps = world.group(group.id), self.lives[group.id]
            parts += [step.guard for step in steps]
            parts += [domain for step in steps for domain in step.event.assumptions]
            # One piece answers for everything, and it is written for the length in question.
            parts += [model.share_first == 0, model.share_to == FAR]
            parts.append(model.needed(steps[-1].post if steps else model.own))
        # The allocator gives every segment a block of its own.
        places = [steps[0].event("address") for steps in self.lives.values() if steps]
        parts += [place.known for place in places]
        if len(places) > 1:
            parts.append(z3.Distinct([place.value for place in places]))
        return parts

    def conflict(self) -> list[tuple[str, str]]:
        """A smallest set of checks that cannot hold together, as (group, check); empty where the solver gives up."""
        named = self.checks()
        lived = [*self._lived(), *self.world.domains()]
        solver = z3.Solver(ctx=self.world.ctx)
        solver.set("timeout", self.run.asker.timeout_ms)
        solver.add(*lived)
        marks = {}
        for index, (name, formula) in enumerate(named.items()):
            mark = z3.Bool(f"check.{index}", ctx=self.world.ctx)
            solver.add(z3.Implies(mark, formula))
            marks[str(mark)] = (name, mark)
        if solver.check([mark for _, mark in marks.values()]) != z3.unsat:
            return []
        core = [marks[str(mark)] for mark in solver.unsat_core()]
        for entry in list(core):
            fewer = [mark for _, mark in core if mark is not entry[1]]
            if solver.check(fewer) == z3.unsat:
                core = [other for other in core if other is not entry]
        return [name for name, _ in core]

    def scenario(self, found: Any) -> Scenario:
        """The same story with the values that the solver chose."""
        world = self.world
        length = found.eval(world.length, model_completion=True).as_long()
        segments = [
            segment_of(found, world.group(g.id), name=f"s_{g.id}".replace("@", "_r"), length=length)
            for g in self.groups
        ]
        events: list[Event] = []
        for group, segment in zip(self.groups, segments, strict=True):
            for step in self.lives[group.id]:
                events.append(decode_event(found, world.group(group.id), segment.id, step, length=length))
        return decode_scenario(
            found,
            world,
            "intersection_satisfiable",
            "every group is written, committed and reused",
            Expectation(accepted=True, at=length),
            segments=segments,
            events=events,
        )


class _Committed(GroupModel):
    """A group read after its life, its peers after theirs."""

    def __init__(self, model: GroupModel, after: dict[str, Post]) -> None:
        self.__dict__.update(model.__dict__)
        self.ends, self._ready, self._duals = after, {}, {}

    def resolve(self, path: str, own: Any) -> Any:
        scope, _, name = path.partition(".")
        if scope in self.peers and name != "ready":
            return self.ends[self.peers[scope].group.id](name)
        return super().resolve(path, own)

    def ready(self, role: str) -> Any:
        peer = self.peers[role]
        accepted = _Committed(peer, self.ends).accepted(self.ends[peer.group.id])
        return type(peer.own("form"))(accepted, z3.BoolVal(True, ctx=self.world.ctx))


def _conflict(run: Run, stories: _Stories) -> None:
    """Name the checks that cannot hold together, and show the engine faultless segments that it cannot join."""
    if run.gaps:
        return
    core = stories.conflict()
    by_id = {group.id: group for group in stories.groups}
    guilty = [next(c for c in by_id[name].checks if c.id == check) for name, check in core]
    blamed = ", ".join(f"{name}/{check}" for name, check in core)
    scenario = Scenario(
        scenario=f"intersection-satisfiable-{run.bound.profile.profile}",
        title="faultless segments that can never be reused together",
        because="Counterexample to the claim `intersection_satisfiable`.",
        profile=run.bound.profile,
        request={"length": 1025, "granularity": 1},
        segments=[SegmentDecl(id=f"s_{g.id}".replace("@", "_r"), group=g.id) for g in stories.groups],
        expect=Expectation(length=0),
    )
    rule, place = (guilty[0].rule, guilty[0].where) if guilty else ("*", run.bound.rulebook.where)
    run.fail(f"no length above 0 satisfies all of {blamed}, whatever the segments hold", rule, place, scenario)


def _never_beyond(run: Run, group: BoundGroup) -> None:
    """No acceptance passes the group's own committed boundary: a saved state's length, or the end of its rows."""
    world = World(run.bound)
    model = world.group(group.id)
    truth = Truth.fresh(world.ctx, f"{group.id}.")
    to, _ = model.number(model.group.raw_to)
    base = [
        model.accepted(),
        model.needed(),
        *world.usual(),
        world.length > 0,
        *(clause for _, clause in truthful(model, model.own, truth)),
        *fingerprints(truth, run.assumptions),
        model.share_first == 0,
        model.share_to == FAR,
    ]
    committed = z3.Select(truth["states"], world.length) if group.object in SAVED else to <= truth["hi"]
    found = run.must_not(
        world.ctx,
        [*base, z3.Not(committed), *world.domains()],
        f"{group.id}: never beyond its boundary",
        soft=lambda: small(world, *world.models.values()),
    )
    if found is None:
        if run.must(world.ctx, [*base, *world.domains()], f"{group.id}: witness") is not None:
            run.witness = f"{group.id} can be accepted at a length above 0"
        return
    length = found.model.eval(world.length, model_completion=True).as_long()
    check = next((c for c in group.checks if c.layer == "group_intersection"), None)
    run.fail(
        f"{group.id} is accepted at length {length}, beyond what it has committed",
        check.rule if check else group.object,
        check.where if check else group.rules.where,
        decode_scenario(
            found.model,
            world,
            "intersection_satisfiable",
            f"{group.id} is accepted beyond its boundary",
            Expectation(accepted=True, at=length),
        ),
    )


CLAIM = Claim(
    id="intersection_satisfiable",
    sentence="All groups of a model can be written, committed and reused together at some length above 0, and no "
    "verdict passes the largest boundary that all of them have committed.",
    method="bounded story of every group's life (the witness is replayed), then validity a group",
    assumptions=("writers_tell", "the claim sound"),
    prove=prove,
    parts=parts,
    covers="written boundaries can be read; no group accepts a length that it has not committed",
)
