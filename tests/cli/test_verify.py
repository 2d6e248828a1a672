"""`verify` hands the verifier what was asked for and turns its report into text, JSON and an exit code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hitproof.verification
from hitproof.rules.profiles import shipped_profiles
from hitproof.rules.scenarios import load_scenario
from hitproof.rules.source import read_source
from hitproof.spec.proof import ClaimResult, ClaimVerdict, Counterexample, MutantResult, VerifyReport
from hitproof.spec.scenario import Scenario
from tests.cli.running import run

STORY = Scenario(
    scenario="gemma-3-27b-sound",
    title='A story: with "quotes", 1e3 and no',
    profile="gemma-3-27b",
    request={"length": 9, "weights": "1e3", "adapter": "no", "salt": "0x1"},
    segments=[{"id": "kv", "group": "full", "facts": {"end": None, "start": 1}}],  # type: ignore[list-item]
)


def claim(verdict: ClaimVerdict, name: str = "sound", example: Counterexample | None = None) -> ClaimResult:
    """One result."""
    return ClaimResult(
        id=name,
        verdict=verdict,
        seconds=0.25,
        method="questions to a solver",
        profile="gemma-3-27b",
        sentence="what is reused is held",
        assumptions=["writers_tell"],
        obligations=3,
        counterexample=example,
    )


def contradicted(name: str = "sound") -> ClaimResult:
    """A claim against which nothing was found but a story in which the engine does otherwise."""
    example = Counterexample(
        sentence="rows are missing", rule="a/b", place="a.yaml:1:1", scenario=STORY, replayed=False, differences=["no"]
    )
    return claim("unknown", name, example)


def report(verdict: ClaimVerdict, *results: ClaimResult, mutants: tuple[MutantResult, ...] = ()) -> VerifyReport:
    """One report."""
    return VerifyReport(
        rulebook="mixed_attention",
        digest="d" * 64,
        verdict=verdict,
        claims=list(results),
        mutants=list(mutants),
    )


def mutant(verdict: ClaimVerdict) -> MutantResult:
    """A mutant whose claim got this verdict."""
    return MutantResult(
        id="wide",
        claim="sound",
        place="a.yaml:1:1",
        change="dropped",
        killed=verdict == "refuted",
        profile="gemma-3-27b",
        result=claim(verdict),
    )


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Callable[[VerifyReport], dict[str, Any]]:
    """Makes the verifier answer with a report, and returns what it was handed."""

    def answer_with(made: VerifyReport) -> dict[str, Any]:
        handed: dict[str, Any] = {}

        def stand_in(source: object, profiles: object, **settings: Any) -> VerifyReport:
            handed.update(source=source, profiles=profiles, **settings)
            settings["progress"]("working")
            return made

        monkeypatch.setattr(hitproof.verification, "verify", stand_in, raising=False)
        return handed

    return answer_with


@pytest.mark.parametrize(
    ("made", "code"),
    [
        (report("proved", claim("proved")), 0),
        (report("refuted", claim("refuted"), claim("unknown", "complete")), 1),
        (report("unknown", claim("unknown")), 2),
        (report("proved", claim("proved"), mutants=(mutant("refuted"),)), 0),
        (report("proved", claim("proved"), mutants=(mutant("proved"),)), 1),
        (report("proved", claim("proved"), mutants=(mutant("unknown"),)), 2),
        (report("refuted", claim("refuted"), mutants=(mutant("unknown"),)), 1),
        (report("unknown", contradicted()), 4),
        (report("refuted", claim("refuted"), contradicted("complete")), 4),
    ],
    ids=[
        *("proved", "refuted", "unknown", "killed", "alive", "undecided", "refuted outranks"),
        *("contradicted", "contradiction outranks"),
    ],
)
def test_the_verdict_is_the_exit_code(
    made: VerifyReport, code: int, answer: Callable[[VerifyReport], dict[str, Any]]
) -> None:
    """0 proved, 1 refuted or a mutant lives, 2 unknown, 4 contradicted by the engine; JSON is the report itself."""
    answer(made)
    done = run("verify", "--format", "json")
    assert code == done.code
    assert made.model_dump(mode="json") == done.data
    assert code == run("verify").code


def test_the_verifier_gets_what_was_asked_for(answer: Callable[[VerifyReport], dict[str, Any]]) -> None:
    """Claims, profiles, time and mutants are handed on, with the engine as the replayer."""
    handed = answer(report("proved", claim("proved")))
    done = run(
        *("verify", "mixed_attention", "--profile", "gemma-3-27b", "--claim", "sound", "--claim", "complete"),
        *("--mutants", "--timeout-ms", "5000", "--counterexamples", "7"),
    )
    assert 0 == done.code
    assert read_source("mixed_attention").digest == handed["source"].digest
    assert ["gemma-3-27b"] == [profile.name for profile in handed["profiles"]]
    assert (["sound", "complete"], 5000, True) == (handed["claims"], handed["timeout_ms"], handed["mutants"])
    assert 7 == handed["counterexamples"]
    assert hasattr(handed["replayer"], "replay")


def test_a_counterexample_is_told_and_written(answer: Callable[[VerifyReport], dict[str, Any]], tmp_path: Path) -> None:
    """The sentence, rule and place are shown; the scenario file loads as the same scenario."""
    example = Counterexample(
        sentence="the window starts too late",
        rule="uncompressed_tail/covers_window",
        place="tail.yaml:38:18",
        scenario=STORY,
        replayed=True,
    )
    answer(report("refuted", claim("refuted", example=example)))
    out = tmp_path / "new" / "folder"
    done = run("verify", "--out", out)
    path = out / "gemma-3-27b-sound.yaml"
    assert {path.name, "gemma-3-27b-sound.mmd", "gemma-3-27b-sound.itf.json"} == {one.name for one in out.iterdir()}
    assert 1 == done.code
    assert STORY == load_scenario(path)
    for part in (
        "the window starts too late",
        "uncompressed_tail/covers_window",
        "tail.yaml:38:18",
        str(path),
    ):
        assert part in done.out
    assert "Verdict: refuted" in done.out


def test_a_few_profiles_have_a_column_each(answer: Callable[[VerifyReport], dict[str, Any]]) -> None:
    """Their names are headings, and each claim's verdicts stand below."""
    answer(report("refuted", claim("proved"), claim("refuted").model_copy(update={"profile": "gpt-oss-20b"})))
    text = run("verify").out
    heading, row, *_ = (line.split() for line in text.splitlines() if line.split()[:1] in (["claim"], ["sound"]))
    assert ["claim", "gemma-3-27b", "gpt-oss-20b", "questions", "seconds"] == heading
    assert ["sound", "proved", "refuted", "6", "0.50"] == row


def test_many_profiles_are_counted_and_exceptions_named(answer: Callable[[VerifyReport], dict[str, Any]]) -> None:
    """A line a claim tells how many are proved and names those that are not; it fits beside everything else."""
    names = shipped_profiles()
    results = [claim("proved").model_copy(update={"profile": name}) for name in names]
    results[0] = results[0].model_copy(update={"verdict": "unknown", "detail": "no time"})
    results[1] = results[1].model_copy(update={"verdict": "unknown", "detail": "no time"})
    answer(report("unknown", *results, *(one.model_copy(update={"id": "complete"}) for one in results[2:])))
    text = run("verify").out
    table, _, rest = text.partition("sound (")
    assert f"{len(names) - 2} of {len(names)}" in table
    assert f"{len(names) - 2} of {len(names) - 2}" in table
    for name in names[:2]:
        assert name in table
    assert max(map(len, table.splitlines())) <= 120
    assert f"{names[0]}, {names[1]}) is unknown" in rest
    assert 1 == rest.count("no time")
