"""Runs scenarios on the real engine: builds segments, plays events, decides, and compares with what was expected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hitproof.engine.decide import Engine
from hitproof.engine.event import EventContext, ImpossibleEventError
from hitproof.engine.healthy import healthy_segment
from hitproof.engine.invariants import owns_block, violated_invariants
from hitproof.engine.keys import request_key, segment_key
from hitproof.engine.lease_story import LeaseStory
from hitproof.engine.machine import FormMachine
from hitproof.engine.plain import why_not_cheaper
from hitproof.engine.policy import PolicyEngine
from hitproof.engine.reasons import deciding_rules
from hitproof.engine.recovery import Recovered, Recovery
from hitproof.engine.recovery.story import Story, recovered_differences
from hitproof.engine.seeing import rules_seen
from hitproof.engine.state import FAR, Resolved
from hitproof.rules.bind import bind_rulebook
from hitproof.rules.scenarios import scenario_profile
from hitproof.spec.bound import BoundGroup, BoundRulebook
from hitproof.spec.condition import interpret, reads
from hitproof.spec.decision import Decision
from hitproof.spec.errors import ReferenceNameError
from hitproof.spec.facts import admit
from hitproof.spec.scenario import Event, Fault, LeaseEvent, Scenario, ScenarioResult, SegmentDecl
from hitproof.spec.seen import RuleSeen

__all__ = ["EngineReplayer", "ScenarioRun", "reversed_options", "run_scenario"]


USUAL_ADDRESS = 9 * 2**17
"""Segments that do not state an address lie at multiples of this, one each; it suits every alignment in use."""


class ScenarioRun:
    """One scenario set up on a bound rulebook."""

    def __init__(self, bound: BoundRulebook, scenario: Scenario) -> None:
        self.bound, self.scenario = bound, scenario
        self.engine = Engine(bound)
        self.machine = FormMachine(bound, self.engine.types)
        types = self.engine.types
        usual = bound.rulebook.environment
        self.request = self._carrier("request", {**_of(usual, "request."), **scenario.request})
        self.runtime = self._carrier("runtime", {**_of(usual, "runtime."), **scenario.runtime})
        self.kernels = {
            group.id: self._carrier(
                "kernel",
                {**_of(usual, "kernel."), **scenario.kernel, **scenario.kernels.get(group.id, {})},
            )
            for group in bound.groups
        }
        self.segments: dict[str, Any] = {}
        self.groups = {group.id: group for group in bound.groups}
        self._build(types)
        self.refused: int | None = None
        self.leases = LeaseStory(bound, self.segments, self._all_ready)
        self._play()

    def state(self) -> Resolved:
        """The resolved state after the events."""
        pieces: dict[str, list[Any]] = {group.id: [] for group in self.bound.groups}
        for segment in self.segments.values():
            pieces[segment.group].append(segment)
        matched = max((s.matched for s in self.segments.values() if s.matched is not None), default=0)
        return Resolved(self.request, self.runtime, self.kernels, pieces, matched)

    def decide(self) -> Decision:
        """The engine's decision on the state after the events."""
        if self.scenario.policy is None:
            return self.engine.decide(self.state())
        return PolicyEngine(self.bound, self.scenario.policy).decide(self.state())

    def recover(self) -> tuple[Recovered, list[str]]:
        """The decision carried out as the scenario tells, and what it tells in vain; the segments are free again."""
        facts = {name: (one, self.groups[one.group].facts) for name, one in self.segments.items()}
        story = Story(self.bound.rulebook.repairs, self.scenario.recovery, facts)
        recovery = Recovery(self.engine)
        if self.scenario.policy is not None:
            policy = PolicyEngine(self.bound, self.scenario.policy)
            recovery = Recovery(policy.engine, policy.decide)
        ended = recovery.run(self.state(), story.repair, story.at)
        if ended.lease is not None:
            ended.lease.release()
        return ended, story.differences

    def accepted_at(self, length: int) -> bool:
        """Whether every mandatory group accepts this length without repair."""
        outcome = self.engine.judge.outcome(self.state(), self.engine.judge.nothing(), length)
        return outcome.clean and not outcome.steps

    def ready_at(self, names: list[str], length: int) -> list[str]:
        """Those of these groups, optional ones too, whose segments pass every check at this length."""
        outcome = self.engine.judge.outcome(self.state(), self.engine.judge.nothing(), length)
        ready = {g.bound.id for g in self.engine.judge.groups if not any(outcome.masks[g.index])}
        return [name for name in names if name in ready]

    def _all_ready(self, names: Sequence[str], length: int) -> bool:
        return self.ready_at([*names], length) == [*names]

    def after_option(self, name: str, length: int) -> tuple[Any, list[str]] | str:
        """The segment once an option has run at this length, and checks that then fail; a text where it cannot run."""
        group_id, _, option_id = name.partition("/")
        outcome = self.engine.judge.outcome(self.state(), self.engine.judge.nothing(), length)
        group = next((g for g in self.engine.judge.groups if g.bound.id == group_id), None)
        option = next((o for o in group.options if o.bound.id == option_id), None) if group else None
        if group is None or option is None:
            return "no such option"
        return self.engine.judge.try_option(self.state(), group, option, length, outcome)

    def idle_at(self, name: str, length: int) -> bool:
        """Whether an option cannot run at this length; of a group that is named, whether none can."""
        names = [name]
        if "/" not in name:
            names = [f"{name}/{option.id}" for option in self.engine.bound.group(name).options]
        return all(isinstance(self.after_option(one, length), str) for one in names)

    def beside(self, decision: Decision) -> list[str]:
        """Ids of failed checks of optional groups, and of disposition rules that applied, at the logical length."""
        if not decision.logical:
            return []
        judge, state = self.engine.judge, self.state()
        outcome = judge.outcome(state, judge.nothing(), decision.logical)
        found = {f"{group.id}/{rule.id}" for group, _, rule in deciding_rules(judge, state, outcome)}
        for group, masks in zip(judge.groups, outcome.masks, strict=True):
            if not group.mandatory:
                bits = [check.id for bit, check in enumerate(group.bound.checks) if any(m & 1 << bit for m in masks)]
                found.update(f"{group.id}/{check}" for check in bits)
        return sorted(found)

    def found_in(self, name: str) -> list[str]:
        """Tiers in which this request's key is the one under which a segment is filed."""
        segment = self._segment(name)
        group, matched = self.groups[segment.group], segment.matched

        def asked(count: int) -> str:
            return f"{count} tokens" if matched is not None and count <= matched else f"{count} other tokens"

        found = []
        for key in group.keys:
            own = segment_key(group, key.tier, segment, "{} tokens".format)
            if own is not None and own == request_key(group, key.tier, self.request, segment.end, asked):
                found.append(key.tier)
        return found

    def identical_at(self, name: str, length: int) -> bool:
        """Whether a segment passes every identity check of its group at this length."""
        segment = self._segment(name)
        group = self.groups[segment.group]
        env = {
            **self.state().environment(),
            **segment.as_dict("self."),
            **self.kernels[group.id].as_dict("kernel."),
            "length": length,
            "share.first": 0,
            "share.to": FAR,
        }
        checks = [check.require for check in group.checks if check.layer == "identity"]
        return all(interpret(require, {path: env.get(path) for path in reads(require)}) is True for require in checks)

    def _carrier(self, scope: str, values: dict[str, Any]) -> Any:
        try:
            return self.engine.types.make(scope, {name: _value(value) for name, value in values.items()})
        except AttributeError as error:
            raise ReferenceNameError(
                f"'{error}' is no fact of the {scope}", rule=self.scenario.scenario, got=str(error)
            ) from error

    def _build(self, types: Any) -> None:
        declared: dict[str, list[SegmentDecl]] = {}
        for one in self.scenario.segments:
            if one.group not in self.groups:
                raise ReferenceNameError(
                    f"'{one.group}' is no group of the profile",
                    rule=self.scenario.scenario,
                    got=one.group,
                    expected=", ".join(self.groups),
                )
            declared.setdefault(one.group, []).append(one)
        for group in self.bound.groups:
            for one in declared.get(group.id, ()):
                facts = {name: _value(value) for name, value in one.facts.items()}
                if not one.blank and "address" in group.facts:
                    facts.setdefault("address", (len(self.segments) + 1) * USUAL_ADDRESS)
                try:
                    if one.blank:
                        self.segments[one.id] = types.segment_of(group.id, facts)
                    else:
                        self.segments[one.id] = healthy_segment(
                            types, group, facts, self._context(group), self._peers(group)
                        )
                except AttributeError as error:
                    raise ReferenceNameError(
                        f"'{error}' is no fact of {group.object}",
                        rule=f"{self.scenario.scenario}/{one.id}",
                        got=str(error),
                    ) from error

    def _context(self, group: BoundGroup) -> dict[str, Any]:
        return {"request": self.request, "runtime": self.runtime, "kernel": self.kernels[group.id]}

    def _peers(self, group: BoundGroup) -> dict[str, Any]:
        found = {}
        for role, peer in group.peers.items():
            held = [segment for segment in self.segments.values() if segment.group == peer]
            if held:
                found[role] = held[0]
        return found

    def _play(self) -> None:
        for index, event in enumerate(self.scenario.events):
            if isinstance(event, LeaseEvent):
                for name in event.segments:
                    self._segment(name)
                self.leases.play(event)
            elif isinstance(event, Fault):
                self._spoil(event)
            elif not self._fire(event) and self.refused is None:
                self.refused = index

    def _fire(self, event: Event) -> bool:
        segment = self._segment(event.segment)
        donor = None if event.donor is None else self._segment(event.donor)
        sole = not any(
            other is not segment and other.address == segment.address and owns_block(other)
            for other in self.segments.values()
        )
        context = EventContext(
            runtime=self.runtime,
            kernel=self.kernels[segment.group],
            arguments={name: _value(value) for name, value in event.arguments.items()},
            donor=donor,
            sole=sole,
        )
        try:
            return self.machine.fire(segment, event.trigger, context)
        except ImpossibleEventError:
            # A story that expects a refusal is told of one; elsewhere it is a mistake in the story.
            if self.scenario.expect.refused_event is None:
                raise
            return False

    def _spoil(self, fault: Fault) -> None:
        """Something outside of the rules changes facts."""
        segment = self._segment(fault.segment)
        facts = self.groups[segment.group].facts
        for name, value in fault.leaves.items():
            if name not in facts:
                raise ReferenceNameError(
                    f"'{name}' is no fact of {self.groups[segment.group].object}",
                    rule=f"{self.scenario.scenario}/{fault.segment}",
                    got=name,
                )
            setattr(segment, name, admit(facts[name], _value(value)))

    def _segment(self, name: str) -> Any:
        if name not in self.segments:
            raise ReferenceNameError(
                f"'{name}' is no segment of the scenario",
                rule=self.scenario.scenario,
                got=name,
                expected=", ".join(self.segments),
            )
        return self.segments[name]


def run_scenario(bound: BoundRulebook, scenario: Scenario) -> ScenarioResult:
    """Run a scenario and compare.

    Raises:
        HitproofError: The scenario names something that does not exist, or an event that is impossible.
    """
    run = ScenarioRun(bound, scenario)
    expect = scenario.expect
    decision = run.decide()
    violated = sorted({*violated_invariants(run.engine, run.state()), *run.leases.violated()})
    differences: list[str] = []

    def compare(what: str, wanted: object, got: object) -> None:
        if wanted is not None and wanted != got:
            differences.append(f"{what}: expected {wanted}, got {got}")

    compare("verdict", expect.verdict, decision.verdict)
    compare("length", expect.length, decision.usable)
    compare("logical", expect.logical, decision.logical)
    compare("failed", _sorted(expect.failed), _sorted(decision.failed))
    compare("plan", expect.plan, [f"{step.group}/{step.option}" for step in decision.plan])
    compare("execution", expect.execution, decision.execution)
    compare("admission", _sorted(expect.admission), sorted(reason.rule for reason in decision.admission))
    compare("promised", expect.promised, dict(decision.promised))
    compare("flags", _sorted(expect.flags), _sorted(decision.flags))
    compare("dispositions", expect.dispositions, dict(decision.dispositions))
    compare("violates", _sorted(expect.violates), _sorted(violated))
    if expect.refused_event != run.refused:
        differences.append(f"refused event: expected {expect.refused_event}, got {run.refused}")
    if expect.at is not None:
        compare("accepted", expect.accepted, run.accepted_at(expect.at))
        compare("ready", expect.ready, run.ready_at(expect.ready or [], expect.at))
        ready = run.ready_at(expect.unready or [], expect.at)
        compare("unready", expect.unready, [name for name in expect.unready or [] if name not in ready])
        idle = [name for name in expect.unwanted or [] if run.idle_at(name, expect.at)]
        compare("unwanted", expect.unwanted, idle)
        found = [run.identical_at(name, expect.at) for name in expect.found_in or {}]
        compare("identity", expect.identity, all(found))
    if expect.option is not None and expect.at is not None:
        tried = run.after_option(expect.option, expect.at)
        left, failing = (None, tried) if isinstance(tried, str) else tried
        compare("fails after", _sorted(expect.fails_after), failing)
        if expect.leaves is not None and left is None:
            differences.append(f"leaves: {failing}")
        for fact, wanted in (expect.leaves or {}).items() if left is not None else ():
            compare(f"{fact} after it", _known(wanted), _known(getattr(left, fact, None)))
    if expect.competing is not None:
        backwards = reversed_options(run.engine).decide(run.state())
        repairs = [step.repair for answer in (decision, backwards) for step in answer.plan]
        compare("competing", sorted(expect.competing), sorted(repairs))
    if expect.cheaper is not None:
        why_not = why_not_cheaper(bound, run.state(), decision, expect.at or 0, expect.cheaper)
        if why_not is not None:
            differences.append(f"cheaper: {', '.join(expect.cheaper) or 'no reuse'}: {why_not}")
    for name, tiers in (expect.found_in or {}).items():
        compare(f"{name} found in", sorted(tiers), sorted(run.found_in(name)))
    for path, wanted in (expect.facts or {}).items():
        name, _, fact = path.partition(".")
        got = getattr(run._segment(name), fact, None)
        if _value(wanted) != got:
            differences.append(f"{path}: expected {wanted}, got {got}")
    differences += run.leases.differences(expect.leases or {})
    steps: list[str] = []
    reports: list[str] = []
    if scenario.recovery or expect.recovered is not None:
        ended, idle = run.recover()
        differences += idle
        steps, reports = [step.step for step in ended.steps], [step.report for step in ended.steps]
        if expect.recovered is not None:
            differences += recovered_differences(expect.recovered, ended)
    return ScenarioResult(
        scenario=scenario.scenario,
        passed=not differences,
        differences=differences,
        decision=decision,
        violated=violated,
        beside=run.beside(decision),
        steps=steps,
        reports=reports,
    )


class EngineReplayer:
    """The engine as a `Replayer`: binds the rulebook to the scenario's profile and runs it."""

    def replay(self, rulebook: Any, scenario: Scenario) -> ScenarioResult:
        """Run one scenario under a resolved rulebook."""
        return run_scenario(bind_rulebook(rulebook, scenario_profile(scenario)), scenario)

    def seen(self, rulebook: Any, scenario: Scenario, rule: str) -> list[RuleSeen]:
        """What a scenario shows of the rule that is to blame, and of the rules that it says fail."""
        bound = bind_rulebook(rulebook, scenario_profile(scenario))
        return rules_seen(lambda story: ScenarioRun(bound, story), scenario, rule)


def reversed_options(engine: Engine) -> Engine:
    """The same engine with every group's options in reverse order; a deterministic choice does not notice."""
    groups = tuple(replace(group, options=group.options[::-1]) for group in engine.bound.groups)
    return Engine(replace(engine.bound, groups=groups))


def _of(values: Any, prefix: str) -> dict[str, Any]:
    return {name.removeprefix(prefix): value for name, value in values.items() if name.startswith(prefix)}


def _sorted(values: Any) -> Any:
    return None if values is None else sorted(values)


def _known(value: Any) -> Any:
    return "unknown" if value is None else _value(value)


def _value(value: Any) -> Any:
    return frozenset(value) if isinstance(value, list) else value
