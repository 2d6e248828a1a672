"""The scenarios that ship with the rulebook, and how they compare with the collection of real failures."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from hitproof.engine.scenario import EngineReplayer, ScenarioRun
from hitproof.rules.bind import bind_rulebook
from hitproof.rules.resolve import load_rulebook
from hitproof.rules.scenarios import load_scenario, scenario_files, scenario_profile
from hitproof.spec.rulebook import Rulebook

SCENARIOS = sorted(scenario_files("mixed_attention"))
CASES = Path(__file__).resolve().parents[3] / "shared/cases"
VERDICTS = {
    "full_segment_recompute": "recompute",
    "in_place_repair": "repair",
    "reuse": "reuse",
    "miss": "miss",
    "refuse_admission": "defer",
}
"""The collection's words for decisions, and ours."""

JUDGED_OTHERWISE = {
    "006": "verdict",  # What matched and cannot be used is recomputed; a miss is where nothing matched.
}
"""Where our answer differs from the collection's judgement, in what, and why; `test_overruled` has the grounds."""


@cache
def rulebook() -> Rulebook:
    """The shipped rulebook."""
    return load_rulebook("mixed_attention")


def test_the_first_nine_real_failures_are_told() -> None:
    """None of them is lost by a change of folders or of names."""
    first = {"001", "008", "012", "017", "026", "032", "045", "049", "053"}
    assert set() == first - {path.name[:3] for path in SCENARIOS}


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: str(path.stem))
def test_scenario_passes(path: Path) -> None:
    """The engine answers what the scenario expects, and expects something."""
    scenario = load_scenario(path)
    assert scenario.expect.verdict is not None and scenario.expect.length is not None
    result = EngineReplayer().replay(rulebook(), scenario)
    assert [] == result.differences
    assert result.passed


@pytest.mark.parametrize(
    "path", [path for path in SCENARIOS if path.name[:3].isdigit()], ids=lambda path: str(path.stem)
)
def test_scenario_agrees_with_the_collected_case(path: Path) -> None:
    """Verdict, usable length and what becomes of the stored entry are the case's, but where we judge otherwise."""
    case = CASES / path.name
    if not CASES.is_dir():
        pytest.skip("the collection of real failures is not beside this checkout")
    expected: dict[str, Any] = yaml.safe_load(case.read_text("utf-8"))["expected"]
    scenario = load_scenario(path)
    run = ScenarioRun(bind_rulebook(rulebook(), scenario_profile(scenario)), scenario)
    decision = run.decide()
    held = [run.segments[name] for name in expected["affected"] if name in run.segments]
    ours = {
        "verdict": decision.verdict,
        "usable": decision.usable,
        "kept": not {"purge", "quarantine"} & set(decision.dispositions.values())
        and not any(segment.form == "discarded" for segment in held),
    }
    theirs = {
        "verdict": VERDICTS.get(expected["decision"]),
        "usable": expected["usable_prefix"],
        "kept": expected["keep_stored_entry"],
    }
    other = JUDGED_OTHERWISE.get(path.name[:3])
    assert ([] if other is None else [other]) == [name for name in ours if ours[name] != theirs[name]]
