"""Claim `intersection_satisfiable`: the groups can meet, and never beyond what all of them hold."""

from __future__ import annotations

from typing import Any

import z3

from hitproof.spec.bound import BoundGroup
from hitproof.spec.scenario import Event, Expectation, Scenario, SegmentDecl
from hitproof.verification.axioms.truth import Truth, fingerprints, truthful
from hitproof.verification.decode import decode_event, decode_scenario, segment_of, small
from hitproof.verification.model import GroupModel, Post, World
from hitproof.verification.run import Claim, Run
from hitproof.verification.steps import Step, make_step

__all__ = ["CLAIM"]

LIFE = ("allocate", "append", "commit")


def prove(run: Run) -> None:
    """A story in which every group is allocated, written and committed, and all accept one length above 0."""
    stories = _Stories(run)
    found = run.must(stories.world.ctx, stories.formulas(), "all groups meet")
    if found is None:
        _conflict(run, stories)
        return
    scenario = stories.scenario(found.model)
    result = None if run.replayer is None else run.replayer.replay(run.bound.rulebook, scenario)
    length = found.model.eval(stories.world.length, model_completion=True).as_long()
    if result is None or not result.passed:
        why = "no engine was given" if result is None else "; ".join(result.differences)
        run.gaps.append(f"the witness did not replay ({why})")
    else:
        run.witness = f"all {len(stories.groups)} groups are committed and accepted at length {length}"
    for group in run.bound.groups:
        if group.rules.mandatory:
            _never_beyond(run, group)
            if run.done:
                return
    run.covered.append("written boundaries can be read; no group accepts a length that it has not committed")


class _Stories:
    """The life of every mandatory group side by side, from discarded to committed, at one length."""

    def __init__(self, run: Run, only: tuple[str, ...] | None = None) -> None:
        self.run = run
        self.world = World(run.bound)
        chosen = set(_with_peers(run.bound.groups, only)) if only is not None else None
        self.groups = [
            group for group in run.bound.groups if group.rules.mandatory and (chosen is None or group.id in chosen)
        ]
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
        world = self.world
        parts: list[Any] = [world.length > 0, *world.usual(), world.shared("request.granularity").value >= 1]
        parts.append(world.length % world.shared("request.granularity").value == 0)
        parts.append(world.shared("request.granularity").value == 1)
        after = {name: steps[-1].post if steps else Post({}) for name, steps in self.lives.items()}
        for group in self.groups:
            model = self.world.group(group.id)
            parts += [step.guard for step in self.lives[group.id]]
            parts.append(_Committed(model, after).accepted(after[group.id]))
            parts += [domain for step in self.lives[group.id] for domain in step.event.assumptions]
            # One piece answers for everything.
            parts += [model.share_first == 0, model.share_to == 2**40]
            # A tail or a state is written for the length in question.
            parts += [model.needed(after[group.id])]
        # The allocator gives every segment a block of its own.
        places = [steps[0].event("address") for steps in self.lives.values() if steps]
        parts += [place.known for place in places]
        if len(places) > 1:
            parts.append(z3.Distinct([place.value for place in places]))
        return [*parts, *world.domains()]

    def scenario(self, found: Any) -> Scenario:
        """The same story with the values that the solver chose."""
        world = self.world
        length = found.eval(world.length, model_completion=True).as_long()
        segments = [segment_of(found, world.group(g.id), name=f"s_{g.id}".replace("@", "_r"), length=length) for g in self.groups]
        events: list[Event] = []
        for group, segment in zip(self.groups, segments, strict=True):
            for step in self.lives[group.id]:
                events.append(decode_event(found, world.group(group.id), segment.id, step, length=length))
        return decode_scenario(
            found, world, "intersection_satisfiable", "every group is written, committed and reused",
            Expectation(accepted=True, at=length), segments=segments, events=events,
        )  # fmt: skip


def _with_peers(groups: tuple[BoundGroup, ...], only: tuple[str, ...]) -> list[str]:
    """The chosen groups with all that they read, directly or through others."""
    by_id = {group.id: group for group in groups}
    pending, found = list(only), []
    while pending:
        name = pending.pop()
        if name not in found:
            found.append(name)
            pending += by_id[name].peers.values()
    return found


class _Committed(GroupModel):
    """A group read after its life, its peers after theirs."""

    def __init__(self, model: GroupModel, after: dict[str, Post]) -> None:
        self.__dict__.update(model.__dict__)
        self.after, self._ready = after, {}

    def resolve(self, path: str, own: Any) -> Any:
        scope, _, name = path.partition(".")
        if scope in self.peers and name != "ready":
            return self.after[self.peers[scope].group.id](name)
        return super().resolve(path, own)

    def ready(self, role: str) -> Any:
        peer = self.peers[role]
        accepted = _Committed(peer, self.after).accepted(self.after[peer.group.id])
        return type(peer.own("form"))(accepted, z3.BoolVal(True, ctx=self.world.ctx))


def _conflict(run: Run, stories: _Stories) -> None:
    """Find a smallest set of groups that cannot meet, and show it to the engine on faultless segments."""
    if run.gaps:
        return
    chosen = [group.id for group in stories.groups]
    for name in list(chosen):
        fewer = tuple(other for other in chosen if other != name)
        smaller = _Stories(run, fewer)
        if fewer and run.asker.ask(smaller.world.ctx, smaller.formulas(), f"without {name}").status == "unsat":
            chosen = list(fewer)
    blamed = next((group for group in stories.groups if group.id in chosen), stories.groups[0])
    check = next((c for c in blamed.checks if c.layer == "group_intersection"), None)
    scenario = Scenario(
        scenario=f"intersection-satisfiable-{run.bound.profile.profile}",
        title=f"{', '.join(chosen)} can never be reused together",
        because="Counterexample to the claim `intersection_satisfiable`.",
        profile=run.bound.profile,
        request={"length": 1025, "granularity": 1},
        segments=[SegmentDecl(id=f"s_{g.id}".replace("@", "_r"), group=g.id) for g in stories.groups],
        expect=Expectation(length=0),
    )
    run.fail(
        f"no length above 0 is accepted by {', '.join(chosen)} together, whatever they hold",
        check.rule if check else blamed.object,
        _edited(blamed, check),
        scenario,
    )


def _edited(group: BoundGroup, check: Any) -> object:
    """The group's boundary rule where it has one, else its first intersection check."""
    if group.rules.resumable.condition is not None:
        return group.rules.resumable.where
    return check.where if check else group.rules.where


def _never_beyond(run: Run, group: BoundGroup) -> None:
    """No acceptance passes the group's own committed boundary: a saved state's length, or the end of its rows."""
    world = World(run.bound)
    model = world.group(group.id)
    truth = Truth.fresh(world.ctx, f"{group.id}.")
    to, _ = model.number(model.group.raw_to)
    base = [
        model.accepted(), model.needed(), *world.usual(), world.length > 0,
        *(clause for _, clause in truthful(model, model.own, truth)), *fingerprints(truth, run.assumptions),
        model.share_first == 0, model.share_to == 2**40,
    ]  # fmt: skip
    if group.object in ("recurrent_state", "compressor_state"):
        committed = z3.Select(truth["states"], world.length)
    elif group.constants.get("has_bytes"):
        committed = to <= truth["hi"]
    else:
        return
    found = run.must_not(
        world.ctx, [*base, z3.Not(committed), *world.domains()], f"{group.id}: never beyond its boundary",
        soft=small(world, *world.models.values()),
    )  # fmt: skip
    if found is None:
        return
    length = found.model.eval(world.length, model_completion=True).as_long()
    check = next((c for c in group.checks if c.layer == "group_intersection"), None)
    run.fail(
        f"{group.id} is accepted at length {length}, beyond what it has committed",
        check.rule if check else group.object,
        check.where if check else group.rules.where,
        decode_scenario(
            found.model, world, "intersection_satisfiable", f"{group.id} is accepted beyond its boundary",
            Expectation(accepted=True, at=length),
        ),
    )  # fmt: skip


CLAIM = Claim(
    id="intersection_satisfiable",
    sentence="All groups of a model can be written, committed and reused together at some length above 0, and no verdict "
    "passes the largest boundary that all of them have committed.",
    method="bounded story of every group's life (the witness is replayed), then validity a group",
    assumptions=("writers_tell",),
    prove=prove,
)
