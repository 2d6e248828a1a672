"""What a story shows of the rules that it is about: each part of a condition with the values that it read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hitproof.engine.event import PINS_ALLOWED, admit_argument
from hitproof.engine.invariants import violated_invariants
from hitproof.engine.reasons import environment_of
from hitproof.spec.bound import BoundCheck, BoundGroup, BoundRulebook
from hitproof.spec.condition import Node, conjuncts, interpret, reads, text
from hitproof.spec.facts import Value
from hitproof.spec.rulebook import Invariant, Transition
from hitproof.spec.scenario import Event, Scenario
from hitproof.spec.seen import ConjunctSeen, FactValue, RuleSeen, told_value

__all__ = ["Play", "rules_seen"]

Play = Callable[[Scenario], Any]
"""Plays a scenario on the engine; the answer is a `ScenarioRun`."""


def rules_seen(play: Play, scenario: Scenario, rule: str) -> list[RuleSeen]:
    """What a scenario shows of the rule that is to blame, and of the rules that it says fail.

    Args:
        play: Plays it, and its beginnings.
        scenario: The story.
        rule: The rule that is to blame, `object/check`, `object/option` or `object/event`; of others only what the
            story says is told.

    Raises:
        HitproofError: The scenario cannot be run.
    """
    return list(_Seeing(play, scenario).all(rule))


class _Seeing:
    """One story that has been played to its end."""

    def __init__(self, play: Play, scenario: Scenario) -> None:
        self.play, self.scenario, self.expect = play, scenario, scenario.expect
        self.run = play(scenario)
        self.bound: BoundRulebook = self.run.bound
        self.state = self.run.state()
        self.at: int = self.run.decide().logical if self.expect.at is None else self.expect.at

    def all(self, rule: str) -> Iterator[RuleSeen]:
        """The rule to blame first, then what the story says of others."""
        kind, _, name = rule.partition("/")
        mine = [group for group in self.bound.groups if group.object == kind]
        group = next((one for one in mine if one.id in self._told_of()), mine[0] if mine else None)
        told = list(self._blamed(group, name)) if group is not None else []
        yield from told
        known = {one.rule for one in told}
        yield from (one for one in (*self._failing(), *self._after_option()) if one.rule not in known)
        yield from self._leases()
        yield from self._invariants()

    def _told_of(self) -> set[str]:
        """Groups of which the story says something: those with a segment that states all of its facts."""
        named = {*(self.expect.ready or ()), *(self.expect.unready or ())}
        if self.expect.option is not None:
            named.add(self.expect.option.partition("/")[0])
        return named or {one.group for one in self.scenario.segments if one.blank}

    def _blamed(self, group: BoundGroup, name: str) -> Iterator[RuleSeen]:
        for check in group.checks:
            if check.id == name:
                yield from self._check(group, check)
        for option in group.options:
            env = self._environment(group) if option.id == name else None
            if env is not None:
                tried = self.run.after_option(f"{group.id}/{name}", self.at)
                left = env if isinstance(tried, str) else tried[0].as_dict("self.")
                yield RuleSeen(
                    rule=f"{group.id}/{name}",
                    place=str(option.where),
                    moment=f"at {self.at} tokens",
                    conjuncts=_judged(option.when, env),
                    changes=_changes(group, env, left),
                )
        yield from self._event(group, name)

    def _event(self, group: BoundGroup, name: str) -> Iterator[RuleSeen]:
        """The last event of this name, with the segment as it was just before, and what has become of it."""
        for index, event in reversed(list(enumerate(self.scenario.events))):
            if isinstance(event, Event) and event.trigger == name:
                before, after = (self._until(end) for end in (index, index + 1))
                segment = before.segments[event.segment]
                leaves = [one for one in group.transitions if one.id == name and segment.form in one.sources]
                if segment.group == group.id and leaves:
                    donor = None if event.donor is None else before.segments[event.donor]
                    env = _environment_of_event(before, segment, event, donor)
                    yield RuleSeen(
                        rule=f"{group.id}/{name}",
                        place=str(leaves[0].where),
                        moment=f"before event {index + 1}",
                        conjuncts=[*_pins(leaves[0], segment), *_judged(leaves[0].when, env)],
                        changes=_changes(group, env, after.segments[event.segment].as_dict("self.")),
                    )
                    return

    def _until(self, end: int) -> Any:
        return self.play(self.scenario.model_copy(update={"events": self.scenario.events[:end]}))

    def _failing(self) -> Iterator[RuleSeen]:
        """Checks that fail where the story says that a group is not ready, or that nothing is reused."""
        unready = set(self.expect.unready or ())
        if self.expect.identity is False:
            unready |= {self.run.segments[name].group for name in self.expect.found_in or {}}
        for group in self.bound.groups:
            if group.id in unready:
                seen = [one for check in group.checks for one in self._check(group, check)]
                yield from (one for one in seen if any(part.holds is not True for part in one.conjuncts))

    def _after_option(self) -> Iterator[RuleSeen]:
        """Checks that fail once the option of the story has run, those that it should have mended first."""
        if self.expect.option is None:
            return
        group = self.bound.group(self.expect.option.partition("/")[0])
        tried, env = self.run.after_option(self.expect.option, self.at), self._environment(group)
        if isinstance(tried, str) or env is None:
            return
        left, failing = tried
        mends = {name for one in group.options if f"{group.id}/{one.id}" == self.expect.option for name in one.mends}
        for check in sorted(group.checks, key=lambda check: check.id not in mends):
            if check.id in failing:
                yield RuleSeen(
                    rule=f"{group.id}/{check.id}",
                    place=str(check.where),
                    moment=f"after {self.expect.option}",
                    conjuncts=_judged(check.require, {**env, **left.as_dict("self.")}),
                )

    def _leases(self) -> Iterator[RuleSeen]:
        """Facts that are not as they were when a lease noted them, where the story says so."""
        for lease, wanted in (self.expect.leases or {}).items():
            for name, facts in (wanted.changed or {}).items():
                noted, now = self.run.leases.noted(lease)[name], self.run.segments[name]
                parts = [
                    ConjunctSeen(
                        text=f"{name}.{fact} is as noted",
                        holds=False,
                        values={"noted": told_value(getattr(noted, fact)), "now": told_value(getattr(now, fact))},
                    )
                    for fact in facts
                ]
                where = self.bound.rulebook.leasing.where if self.bound.rulebook.leasing else ""
                yield RuleSeen(rule="leasing", place=str(where), moment="at the end", conjuncts=parts)

    def _invariants(self) -> Iterator[RuleSeen]:
        """Invariants that are violated at the end, where the story says so, with what they read of its segments."""
        leases = {name: set(one.violates or ()) for name, one in (self.expect.leases or {}).items()}
        broken = {*violated_invariants(self.run.engine, self.state)} & set(self.expect.violates or ())
        stated = {one.id: self.run.segments[one.id] for one in self.scenario.segments if one.blank}
        for one in self.bound.invariants:
            if one.id in broken:
                yield self._violated(one, stated, {})
            for lease, names in leases.items():
                if one.id in names & self.run.leases.violated():
                    noted = self.run.leases.noted(lease)
                    segments = {name: self.run.segments[name] for name in noted}
                    yield self._violated(one, segments, {f"{name}.epoch as noted": noted[name].epoch for name in noted})

    def _violated(self, invariant: Invariant, segments: Mapping[str, Any], more: dict[str, FactValue]) -> RuleSeen:
        conditions = {name: invariant.require.get(self.run.groups[one.group].object) for name, one in segments.items()}
        values = {
            f"{name}.{path.partition('.')[2]}": told_value(segments[name].as_dict("self.").get(path))
            for name, condition in conditions.items()
            for path in _own_reads(condition)
        }
        written = next((text(condition) for condition in conditions.values() if condition is not None), invariant.id)
        part = ConjunctSeen(text=written, holds=False, values={**values, **more})
        return RuleSeen(rule=invariant.id, place=str(invariant.where), moment="at the end", conjuncts=[part])

    def _check(self, group: BoundGroup, check: BoundCheck) -> Iterator[RuleSeen]:
        env = self._environment(group)
        if env is not None:
            yield RuleSeen(
                rule=f"{group.id}/{check.id}",
                place=str(check.where),
                moment=f"at {self.at} tokens",
                conjuncts=_judged(check.require, env),
            )

    def _environment(self, group: BoundGroup) -> Mapping[str, Value] | None:
        """What a rule of the group reads at the story's length: of the first piece that fails, else of the first."""
        judge = self.run.engine.judge
        outcome = judge.outcome(self.state, judge.nothing(), self.at)
        compiled = next(one for one in judge.groups if one.bound.id == group.id)
        masks = outcome.masks[compiled.index]
        if not masks:
            return None
        place = next((index for index, mask in enumerate(masks) if mask), 0)
        return environment_of(judge, self.state, outcome, compiled, place)


def _judged(condition: Node | None, env: Mapping[str, Value]) -> list[ConjunctSeen]:
    """Every part of a condition, with its truth and what it read; none where there is no condition."""
    return [
        ConjunctSeen(
            text=text(part),
            holds=interpret(part, env),
            values={path: told_value(env.get(path)) for path in sorted(reads(part))},
        )
        for part in (() if condition is None else conjuncts(condition))
    ]


def _pins(event: Transition, segment: Any) -> list[ConjunctSeen]:
    """How many pins the event allows, as the first part of its condition."""
    allowed = PINS_ALLOWED[event.pins]
    holds = allowed is None or segment.pins == allowed
    return [ConjunctSeen(text=f"pins: {event.pins}", holds=holds, values={"self.pins": segment.pins})]


def _environment_of_event(before: Any, segment: Any, event: Event, donor: Any) -> dict[str, Value]:
    """What the condition of an event reads."""
    facts = before.groups[segment.group].facts
    return {
        **before.runtime.as_dict("runtime."),
        **before.kernels[segment.group].as_dict("kernel."),
        **segment.as_dict("self."),
        **({} if donor is None else donor.as_dict("donor.")),
        **{f"event.{name}": admit_argument(facts[name], value) for name, value in event.arguments.items()},
    }


def _changes(
    group: BoundGroup, before: Mapping[str, Value], after: Mapping[str, Value]
) -> dict[str, tuple[FactValue, FactValue]]:
    """Facts of the segment that are not what they were."""
    paths = {name: f"self.{name}" for name in group.facts}
    return {
        path: (told_value(before.get(path)), told_value(after.get(path)))
        for path in sorted(paths.values())
        if before.get(path) != after.get(path, before.get(path))
    }


def _own_reads(condition: Node | None) -> list[str]:
    return [] if condition is None else sorted(path for path in reads(condition) if path.startswith("self."))
