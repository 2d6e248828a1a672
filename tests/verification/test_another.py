"""Several counterexamples, each for a reason of its own; the same report whatever works on it; a contradicted story."""

from __future__ import annotations

from typing import Any

import pytest
import z3
from hypothesis import given
from hypothesis import strategies as st

from hitproof.engine.scenario import EngineReplayer
from hitproof.rules.source import RuleSource
from hitproof.spec.profile import Profile
from hitproof.spec.proof import VerifyReport
from hitproof.spec.scenario import Scenario, ScenarioResult
from hitproof.spec.seen import RuleSeen
from hitproof.verification import MUTANTS, Mutant, solve, verify
from hitproof.verification.another import Cause, cause_of, distinct, without
from hitproof.verification.solve import Asker

QWEN = "qwen3-next-80b-a3b"
ABORTED: Mutant = next(mutant for mutant in MUTANTS if mutant.id == "aborted-counts-as-committed")


@pytest.fixture(scope="module")
def broken(source: RuleSource) -> RuleSource:
    """Rules that take every form but one for committed."""
    return ABORTED.of(source)[0]


def asked(rules: RuleSource, profiles: dict[str, Profile], **settings: Any) -> VerifyReport:
    """Claim `sound` for one model, with nothing in the report that time decides."""
    settings = {"replayer": EngineReplayer(), "jobs": 1, "claims": ["sound"], **settings}
    report = verify(rules, [profiles[QWEN]], **settings)
    return report.model_copy(update={"claims": [one.model_copy(update={"seconds": 0}) for one in report.claims]})


class Formula:
    """Formulas over three numbers and a truth, made from a number."""

    def __init__(self, choice: int) -> None:
        self.ctx = z3.Context()
        x, y = z3.Ints("x y", ctx=self.ctx)
        p = z3.Bool("p", ctx=self.ctx)
        self.constants = (x, y, p)
        atoms = [x < y, x == 3, y <= 5, p, x + y > 4]
        self.whole = atoms[choice % 5]
        for step in range(3):
            choice //= 5
            other = atoms[choice % 5]
            self.whole = (z3.And, z3.Or, z3.Implies)[step % 3](self.whole, z3.Not(other) if choice % 2 else other)

    def model(self) -> Any:
        """Some model, or None."""
        solver = z3.Solver(ctx=self.ctx)
        solver.add(self.whole)
        return solver.model() if solver.check() == z3.sat else None


@given(st.integers(0, 5**4 * 2))
def test_a_cause_is_enough_for_its_formula(choice: int) -> None:
    """Whatever satisfies the literals satisfies the formula, and the formula without them is another one."""
    made = Formula(choice)
    model = made.model()
    if model is None:
        return
    cause = cause_of("one", made.whole, model)
    rest = without("one", made.whole, [cause])
    holds = [constant == model.eval(constant, model_completion=True) for constant in made.constants]
    solver = z3.Solver(ctx=made.ctx)
    solver.add(*holds)
    assert (z3.sat, z3.unsat) == (solver.check(made.whole), solver.check(rest))
    solver = z3.Solver(ctx=made.ctx)
    # The literals are exactly what is taken away: what satisfies one formula and not the other satisfies all of them.
    solver.add(z3.Xor(made.whole, rest))
    atoms = {
        str(name): z3.parse_smt2_string(f"{DECLARED}(assert {name})", ctx=made.ctx)[0] for name, _ in cause.literals
    }
    literals = [atoms[name] if held else z3.Not(atoms[name]) for name, held in cause.literals]
    assert z3.unsat == solver.check(z3.Not(z3.And([*literals, z3.BoolVal(True, ctx=made.ctx)])))
    solver = z3.Solver(ctx=made.ctx)
    solver.add(*literals, z3.Not(made.whole))
    assert z3.unsat == solver.check()


DECLARED = "(declare-const x Int)(declare-const y Int)(declare-const p Bool)"


def test_a_cause_of_another_obligation_takes_nothing_away() -> None:
    """Causes are those of one obligation, by its label."""
    x = z3.Int("x", ctx=z3.Context())
    assert (x > 1).eq(without("mine", x > 1, [Cause("yours", frozenset({("(> x 1)", True)}))]))


def test_as_many_as_are_asked_for_and_each_another(broken: RuleSource, profiles: dict[str, Profile]) -> None:
    """Three are told where one was, the first is the same, all differ, and the engine has replayed each."""
    (one,) = asked(broken, profiles).claims
    (three,) = asked(broken, profiles, counterexamples=3).claims
    assert one.counterexample is not None and not one.more
    assert one.counterexample == three.counterexample
    assert 2 == len(three.more)
    told = [one.counterexample, *three.more]
    assert told == distinct(told)
    assert all(example.replayed and example.seen for example in told)


def test_a_report_does_not_depend_on_the_number_of_processes(broken: RuleSource, profiles: dict[str, Profile]) -> None:
    """One process and two say the same, counterexamples, values and counts included."""
    settings: dict[str, Any] = {"claims": ["sound", "fail_closed"], "counterexamples": 2}
    assert asked(broken, profiles, jobs=1, **settings) == asked(broken, profiles, jobs=2, **settings)


def test_effort_ends_a_question_and_not_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """With all the time there is and no effort left, a question is unknown, twice the same."""
    monkeypatch.setattr(solve, "MAX_EFFORT", 1)
    ctx = z3.Context()
    numbers = z3.Ints("a b c d e f", ctx=ctx)
    question = [z3.Distinct(*numbers), *(z3.And(0 <= one, one < 5) for one in numbers)]
    assert ["unknown", "unknown"] == [Asker(86_400_000).ask(ctx, question).status for _ in range(2)]


class Contrary(EngineReplayer):
    """An engine that never does what a story says."""

    def replay(self, rulebook: object, scenario: Scenario) -> ScenarioResult:
        """The engine's result, and yet a difference."""
        result = super().replay(rulebook, scenario)
        return result.model_copy(update={"passed": False, "differences": ["accepted: expected True, got False"]})

    def seen(self, rulebook: object, scenario: Scenario, rule: str) -> list[RuleSeen]:
        """Never asked: what does not replay shows nothing."""
        raise NotImplementedError


def test_a_story_that_the_engine_contradicts_refutes_nothing(broken: RuleSource, profiles: dict[str, Profile]) -> None:
    """The claim is unknown, and what the engine did otherwise is told."""
    (result,) = asked(broken, profiles, replayer=Contrary(), counterexamples=3).claims
    assert ("unknown", []) == (result.verdict, result.more)
    assert result.counterexample is not None and not result.counterexample.replayed
    assert ["accepted: expected True, got False"] == result.counterexample.differences
