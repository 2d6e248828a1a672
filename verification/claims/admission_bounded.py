"""Claim `admission_bounded`: no pool is promised more than it has; who fits is served or waits, and nobody else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import z3

from hitproof.spec.bound import BoundRulebook
from hitproof.spec.condition import Literal, Node, bind, reads, refs, substitute
from hitproof.spec.facts import TOKENS, Fact, Value
from hitproof.spec.plan import PLAN_FACTS
from hitproof.spec.policy import AdmissionRule, Policy, Pool
from hitproof.spec.profile import Group, Profile
from hitproof.spec.scenario import Event, Expectation, Scenario, SegmentDecl
from hitproof.verification.axioms.plans import CONSISTENT, consistent, takes
from hitproof.verification.encode import EnumSorts, Z3Facts, encode, encode_number
from hitproof.verification.parts import Part
from hitproof.verification.run import Claim, Run

__all__ = ["CLAIM"]

ROW_BYTES = 4096
LONG_PROMPT = 2**20
"""Tokens of the prompt for which the worst admitted recovery is told."""


def parts(bound: BoundRulebook) -> list[Part]:
    """One part a policy; no group takes part, so it is proved once for all models."""
    return [Part(name, (), (name,), frozenset({"rulebook"})) for name in bound.rulebook.policy.policies]


def prove(run: Run) -> None:
    """What is admitted fits beside all promises and is promised all that it takes; what fits an idle system goes.

    What fits and finds the system busy waits; what does not fit is turned away.
    """
    name = run.part.about[0]
    model = _Model(run, run.bound.rulebook.policy.policies[name])
    model.promises_are_kept()
    if not run.done:
        model.computing_is_judged_well()
    if not run.done and run.witness is not None and not run.gaps:
        run.covered.append(f"{name}: {model.worst()}")


class _Model:
    def __init__(self, run: Run, policy: Policy) -> None:
        self.run, self.policy = run, policy
        rulebook = run.bound.rulebook
        self.rules = rulebook.policy
        self.ctx = z3.Context()
        lookup: dict[str, Fact] = {f"plan.{name}": fact for name, fact in PLAN_FACTS.items()}
        lookup |= {f"request.{name}": fact for name, fact in rulebook.request.items()}
        lookup |= {f"runtime.{name}": fact for name, fact in rulebook.runtime.items()}
        lookup["length"] = Fact("length", TOKENS, 0, 2**40)
        known = {f"request.{name}" for name in rulebook.door}
        self.names = Z3Facts(EnumSorts(self.ctx), lookup, "", known)
        self.admission = [self.rules.admission[name] for name in policy.admission]
        self.holds = [encode(rule.require, self.names, ctx=self.ctx).T for rule in self.admission]
        self.environment: dict[str, Value] = dict(rulebook.environment)

    def value(self, path: str) -> Any:
        return self.names(path).value

    def promises_are_kept(self) -> None:
        """One admission: used and promised stay within the capacity, and the promise covers what will be taken.

        A request takes no more than its promise and gives it back at its end, so the sum over any number of requests
        keeps what each admission keeps.
        """
        for pool in self.rules.pools.values():
            need = takes(pool.id, self.names)
            if need is None:
                self.run.gaps.append(f"no axiom says what a plan takes of the pool '{pool.id}'")
                continue
            demand, known = encode_number(pool.demand, self.names, ctx=self.ctx)
            promised = z3.If(demand > 0, demand, 0)
            counted = [self.names(path) for path in (pool.capacity, pool.used, pool.reserved)]
            capacity, used, reserved = (fact.value for fact in counted)
            before = [fact.known for fact in counted] + [used + reserved <= capacity]
            premise = [*consistent(self.names), *self.holds, *before, *self.names.assumptions]
            full = z3.And(known, used + reserved + promised > capacity)
            wrong = [
                (f"{self.policy.id}: {pool.id} holds its promises", full),
                (f"{self.policy.id}: {pool.id} promises what is taken", z3.Or(z3.Not(known), promised < need)),
            ]
            found = self.run.must_none(self.ctx, premise, wrong)
            if found is not None:
                self._overcommitted(pool, premise, dict(wrong)[found[0]], found[0])
                if self.run.done:
                    return
            elif self.run.must(self.ctx, [*premise, need > 0], f"{pool.id}: witness") is not None:
                self.run.witness = f"a plan that takes of {pool.id} is admitted beside other requests' promises"

    def computing_is_judged_well(self) -> None:
        """Of plans that reuse nothing: one that fits is admitted when all is idle and else waits; no other one waits.

        Fitting means that what it takes is no more than the capacity of each pool.
        """
        fits, idle, kept = [], [], []
        for pool in self.rules.pools.values():
            need = takes(pool.id, self.names)
            if need is None:
                return
            capacity, used, reserved = (self.value(path) for path in (pool.capacity, pool.used, pool.reserved))
            fits.append(need <= capacity)
            idle += [used == 0, reserved == 0]
            kept.append(used + reserved <= capacity)
        paths = {path for rule in self.admission for path in reads(rule.require)} | self._counted()
        known = [self.names(path).known for path in sorted(paths)]
        plan = [*consistent(self.names), *known, *self._nothing_reused(), *self.names.assumptions]
        waits, leaves = self._broken(waits=True), self._broken(waits=False)
        for label, wrong in (
            ("an idle system admits what fits", [*fits, *idle, z3.Or(waits, leaves)]),
            ("what fits waits on a busy system", [*fits, *kept, leaves]),
            ("what does not fit is turned away", [z3.Not(self._all(fits)), *idle, waits, z3.Not(leaves)]),
        ):
            found = self.run.must_not(self.ctx, [*plan, *wrong], f"{self.policy.id}: {label}")
            if found is not None:
                self._judged_wrongly([*plan, *wrong, *self._story()], f"{self.policy.id}: {label}", found.model)
                return

    def _broken(self, *, waits: bool) -> Any:
        """Some rule of admission does not hold whose breach makes the request wait, or one that does not."""
        broken = [z3.Not(holds) for rule, holds in self._ruled() if (rule.otherwise == "defer") is waits]
        return z3.Or(z3.BoolVal(False, ctx=self.ctx), *broken)

    def _ruled(self) -> list[tuple[AdmissionRule, Any]]:
        return list(zip(self.admission, self.holds, strict=True))

    def _all(self, parts: Sequence[Any]) -> Any:
        return z3.And(z3.BoolVal(True, ctx=self.ctx), *parts)

    def worst(self) -> str:
        """The dearest recovery that an otherwise idle system admits at the stated rates, in words."""
        prefill = self.run.bound.rulebook.prefill.cost
        optimize = z3.Optimize(ctx=self.ctx)
        optimize.set(timeout=self.run.asker.timeout_ms)
        length = self.value("request.length")
        optimize.add(
            *self._at_stated(),
            length == LONG_PROMPT,
            *consistent(self.names),
            *self.holds,
            *self.names.assumptions,
            self.value("plan.recompute_us") == self._price(prefill, 0),
            self.value("plan.prefill_us") >= 0,
        )
        best = optimize.maximize(self.value("plan.recovery_us"))
        if optimize.check() != z3.sat:
            return "the worst admitted recovery was not found"
        top = optimize.upper(best)
        limit = PLAN_FACTS["recovery_us"].hi
        if not z3.is_rational_value(top) or (limit is not None and top.as_fraction() >= limit):
            return "no rule bounds the recovery that is admitted"
        seconds = float(top.as_fraction()) / 1e6
        return f"a prompt of {LONG_PROMPT:,} tokens is admitted with at most {seconds:,.1f} s of recovery"

    def _read_paths(self) -> set[str]:
        nodes = [rule.require for rule in self.admission]
        return {path for node in nodes for path in reads(node)}

    def _at_stated(self) -> list[Any]:
        """Facts that admission reads, at their stated values; the prompt and the pools' counts stay open."""
        fixed = (
            self._read_paths() - self._counted() - {"request.length", "request.granularity", "request.answer_blocks"}
        )
        return [
            self.value(path) == value
            for path, value in self.environment.items()
            if path in fixed and isinstance(value, int | float)
        ]

    def _price(self, prefill: Node, length: int) -> Any:
        """Price of prefill at the stated rates, with the request's length left open."""
        rates = {path: value for path, value in self.environment.items() if path.startswith("runtime.")}
        fixed = bind(_stated(prefill, {**rates, "length": length}), {})
        return encode_number(fixed, self.names, ctx=self.ctx)[0]

    def _nothing_reused(self) -> list[Any]:
        zero = ("length", "held_blocks", "loaded_blocks", "host_bytes", "disk_bytes", "recovery_us", "wait_us")
        return [
            *(self.value(f"plan.{name}") == 0 for name in zero),
            self.value("plan.level") == 3,
            self.value("plan.prefill_us") == self.value("plan.recompute_us"),
        ]

    def _story(self) -> list[Any]:
        """States that a scenario of one group can show: a hash unit of one token, a short prompt, stated rates."""
        length = self.value("request.length")
        prefill = self.run.bound.rulebook.prefill.cost
        return [
            *self._at_stated(),
            self.value("request.granularity") == 1,
            length >= 2,
            length <= 4096,
            self.value("plan.blocks") == length,
            self.value("plan.recompute_us") == self._price(prefill, 0),
            *(self.value(path) <= 2**40 for path in sorted(self._counted())),
        ]

    def _warm_story(self, tier: str) -> list[Any]:
        """The prompt but for its last token lies in a tier; where that is a slower one, coming back is cheap."""
        reused = self.value("request.length") - 1
        held = tier == "device"
        in_tier = {name: reused * ROW_BYTES if name == tier else 0 for name in ("host", "disk")}
        return [
            *self._story(),
            self.value("plan.length") == reused,
            self.value("plan.loaded_blocks") == (0 if held else reused),
            self.value("plan.held_blocks") == (reused if held else 0),
            *(self.value(f"plan.{name}_bytes") == amount for name, amount in in_tier.items()),
            self.value("plan.wait_us") == 0,
            self.value("plan.level") == (0 if held else 1),
            self.value("plan.recovery_us") <= (0 if held else 1000),
            self.value("plan.prefill_us") <= 1000,
        ]

    def _counted(self) -> set[str]:
        return {path for pool in self.rules.pools.values() for path in (pool.capacity, pool.used, pool.reserved)}

    def _overcommitted(self, pool: Pool, premise: Sequence[Any], wrong: Any, label: str) -> None:
        others = [self.names(path).known for path in sorted(self._counted())]
        scenario = None
        for tier in ("host", "disk", "device"):
            answer = self.run.asker.ask(self.ctx, [*premise, wrong, *others, *self._warm_story(tier)])
            if answer.status == "sat":
                reused = answer.model.eval(self.value("plan.length"), model_completion=True).as_long()
                expect = Expectation(length=reused, promised=self._promised(answer.model))
                scenario = self._scenario(answer.model, warm=tier, expect=expect)
                break
        blamed = self._blamed(pool)
        self.run.fail(f"{label}, but not always", blamed[0], blamed[1], scenario)

    def _judged_wrongly(self, formulas: Sequence[Any], label: str, found: Any) -> None:
        answer = self.run.asker.ask(self.ctx, formulas)
        model = answer.model if answer.status == "sat" else found
        broken = [rule for rule, holds in self._ruled() if not z3.is_true(model.eval(holds, model_completion=True))]
        scenario = None
        if answer.status == "sat":
            waits = all(rule.otherwise == "defer" for rule in broken)
            expect = Expectation(verdict="defer" if waits else "refuse", length=0)
            scenario = self._scenario(model, warm=None, expect=expect)
        self.run.fail(f"{label}, but not always", f"admission/{broken[0].id}", broken[0].where, scenario)

    def _blamed(self, pool: Pool) -> tuple[str, object]:
        """The rule that guards the pool, unless the promise itself is too small."""
        guards: list[AdmissionRule] = [rule for rule in self.admission if pool.reserved in reads(rule.require)]
        return (f"pools/{pool.id}", pool.where) if guards else (f"policies/{self.policy.id}", self.policy.where)

    def _promised(self, model: Any) -> dict[str, int]:
        found: dict[str, int] = {}
        for pool in self.rules.pools.values():
            value, _ = encode_number(pool.demand, self.names, ctx=self.ctx)
            found[pool.id] = max(0, model.eval(value, model_completion=True).as_long())
        return found

    def _scenario(self, model: Any, *, warm: str | None, expect: Expectation) -> Scenario:
        def number(path: str) -> int:
            value: int = model.eval(self.value(path), model_completion=True).as_long()
            return value

        length = number("request.length")
        runtime = {path.removeprefix("runtime."): number(path) for path in sorted(self._counted())}
        segments = [SegmentDecl(id="kv", group="kv"), SegmentDecl(id="manifest", group="manifest")] if warm else []
        events = [
            Event(segment="kv", trigger="demote_begin", arguments={"bound_for": warm}),
            Event(segment="kv", trigger="demote_end"),
        ]
        return Scenario(
            scenario=f"admission-bounded-{self.policy.id}".replace("_", "-"),
            title="A request under a policy",
            because="Counterexample to the claim `admission_bounded`.",
            profile=_one_group(),
            policy=self.policy.id,
            request={"length": length, "granularity": 1, "answer_blocks": number("request.answer_blocks")},
            runtime=dict(runtime),
            segments=segments,
            events=events if warm in ("host", "disk") else [],
            expect=expect,
        )


def _stated(node: Node, values: dict[str, Value]) -> Node:
    """The expression with stated values in place of their facts."""
    found: dict[str, Node] = {}
    for ref in refs(node):
        value = values.get(ref.path)
        if isinstance(value, bool | int | float | str):
            found[ref.path] = Literal(value, ref.fact.type)
    return substitute(node, found)


def _one_group() -> Profile:
    constants = {"row_bytes": ROW_BYTES, "alignment": 256, "stride": 4096}
    return Profile(
        profile="one-layer-kind",
        title="Homogeneous attention",
        layers=1,
        groups=(
            Group(id="kv", object="full_kv", layers=(0,), constants=constants),
            Group(id="manifest", object="demoted_prefix", layers=(0,)),
        ),
    )


CLAIM = Claim(
    id="admission_bounded",
    sentence="Used plus reserved never exceeds the capacity of a pool, for any number of requests; a request is "
    "promised all that it takes; what fits an idle system is admitted there and waits on a busy one, and what does not "
    "is turned away.",
    method="one admission under each policy, over all facts of request, run time and plan; optimisation for the worst "
    "recovery that is admitted",
    assumptions=(CONSISTENT, "a request takes no more than its promise"),
    prove=prove,
    parts=parts,
)
