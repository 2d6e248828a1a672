"""The scenarios that ship with the rulebook, and how they compare with the collection of real failures."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from hitproof.engine.scenario import EngineReplayer
from hitproof.rules.resolve import load_rulebook
from hitproof.rules.scenarios import load_scenario, scenario_files
from hitproof.spec.rulebook import Rulebook

SCENARIOS = sorted(scenario_files("mixed_attention"))
CASES = Path(__file__).resolve().parents[3] / "shared/cases"
VERDICTS = {
    "full_segment_recompute": "recompute",
    "in_place_repair": "repair",
    "reuse": "reuse",
    "miss": "miss",
}
"""The collection's words for decisions, and ours."""


@cache
def rulebook() -> Rulebook:
    """The shipped rulebook."""
    return load_rulebook("mixed_attention")


def test_nine_real_failures_are_told() -> None:
    """None of the nine is lost by a change of folders or of names."""
    numbers = [path.name[:3] for path in SCENARIOS]
    assert ["001", "008", "012", "017", "026", "032", "045", "049", "053"] == numbers


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: str(path.stem))
def test_scenario_passes(path: Path) -> None:
    """The engine answers what the scenario expects, and expects something."""
    scenario = load_scenario(path)
    assert scenario.expect.verdict is not None and scenario.expect.length is not None
    result = EngineReplayer().replay(rulebook(), scenario)
    assert [] == result.differences
    assert result.passed


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: str(path.stem))
def test_scenario_agrees_with_the_collected_case(path: Path) -> None:
    """Decision, usable length and what becomes of the stored entry are those of the collected case."""
    case = CASES / path.name
    if not case.exists():
        pytest.skip("the collection of real failures is not beside this checkout")
    expected: dict[str, Any] = yaml.safe_load(case.read_text("utf-8"))["expected"]
    decision = EngineReplayer().replay(rulebook(), load_scenario(path)).decision
    assert decision is not None
    assert VERDICTS[expected["decision"]] == decision.verdict
    assert expected["usable_prefix"] == decision.usable
    kept = not {"purge", "quarantine"} & set(decision.dispositions.values())
    assert expected["keep_stored_entry"] == kept
