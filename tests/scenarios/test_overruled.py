"""Where the collection of real failures is overruled: what queries read, by the verifier's axioms, and what follows."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
import z3

from hitproof.engine.scenario import ScenarioRun
from hitproof.rules.bind import bind_rulebook
from hitproof.rules.resolve import load_rulebook
from hitproof.rules.scenarios import load_scenario, scenario_profile
from hitproof.spec.scenario import Scenario
from hitproof.verification.axioms.reading_sets import reads
from tests.scenarios.test_shipped import CASES, JUDGED_OTHERWISE, SCENARIOS

AT = 6
"""The length that the drafter leaves in case 006."""


def story(number: str) -> Scenario:
    """The scenario of that number."""
    return load_scenario(next(path for path in SCENARIOS if path.name.startswith(number)))


def expected(number: str) -> dict[str, Any]:
    """What the collection expects of a case."""
    if not CASES.is_dir():
        pytest.skip("the collection of real failures is not beside this checkout")
    (path,) = CASES.glob(f"{number}-*.yaml")
    found: dict[str, Any] = yaml.safe_load(path.read_text("utf-8"))["expected"]
    return found


def run_of(scenario: Scenario, tail_starts_at: int | None = None) -> ScenarioRun:
    """The scenario on the engine, with another first row in the tail where one is given."""
    if tail_starts_at is not None:
        segments = [
            one.model_copy(update={"facts": {**one.facts, "start": tail_starts_at}}) if one.id == "tail" else one
            for one in scenario.segments
        ]
        scenario = scenario.model_copy(update={"segments": segments})
    return ScenarioRun(bind_rulebook(load_rulebook("mixed_attention"), scenario_profile(scenario)), scenario)


def rows_read(kind: str, constants: dict[str, int]) -> set[int]:
    """Rows that a query at or after the length reads, by the axioms."""
    return {
        row
        for row in range(-2, AT + 3)
        if z3.is_true(z3.simplify(reads(kind, constants, z3.IntVal(AT), z3.IntVal(row))))
    }


def test_at_most_three_are_overruled_and_the_scenario_says_so() -> None:
    """Each differs in one respect, and its own text speaks of what the report says."""
    assert len(JUDGED_OTHERWISE) <= 3
    for number in JUDGED_OTHERWISE:
        assert "report" in story(number).because


class TestCase006:
    """The report calls the answer a miss, and counts the window from row 2 on."""

    def test_the_row_before_the_window_is_read_by_nobody(self) -> None:
        """A window of 4 includes the query: rows 3 to 5. A ring from 3 on is reused, which row 2 would forbid."""
        assert {3, 4, 5} == rows_read("uncompressed_tail", {"window": 4})
        assert "2..6" in expected("006")["reason"]
        decision = run_of(story("006"), tail_starts_at=3).decide()
        assert ("reuse", AT) == (decision.verdict, decision.usable)

    def test_every_row_that_the_full_layers_read_is_there(self) -> None:
        """To call this a miss is to say that nothing matched, and the axioms find all rows of the full layers held."""
        run = run_of(story("006"))
        full = run.segments["full"]
        assert set(range(AT)) == rows_read("full_kv", {}) <= set(range(full.start, full.end))
        assert full.matched >= AT + 2
        assert ("recompute", AT) == (run.decide().verdict, run.decide().logical)

    def test_the_collection_calls_the_same_situation_a_recompute(self) -> None:
        """Case 008: the full layers match, the window does not reach; one name for both, or neither means anything."""
        assert ("miss", "full_segment_recompute") == (expected("006")["decision"], expected("008")["decision"])
        assert [["tail"]] * 2 == [expected(number)["affected"] for number in ("006", "008")]
        for number in ("006", "008"):
            decision = run_of(story(number)).decide()
            assert ("recompute", ("tail/covers_window",)) == (decision.verdict, decision.failed)
            assert decision.logical > 0
