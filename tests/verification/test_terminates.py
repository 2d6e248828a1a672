"""The claim that recoveries end: each of its questions finds the fault that it is there for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hitproof.engine.scenario import EngineReplayer
from hitproof.rules.bind import bind_rulebook
from hitproof.rules.resolve import resolve
from hitproof.rules.source import RuleSource
from hitproof.spec.profile import Profile
from hitproof.spec.proof import ClaimResult
from hitproof.verification.claims import ALL_CLAIMS
from hitproof.verification.cut import Cutter
from hitproof.verification.judge import Answered, judge
from hitproof.verification.run import Run
from hitproof.verification.solve import Asker

MODEL = "qwen3-next-80b-a3b"
REPAIR_REPORTS = ["done", "failed", "source_lost", "transfer_failed"]


def claimed(source: RuleSource, profile: Profile, edits: list[tuple[tuple[str, ...], Any]]) -> ClaimResult:
    """The claim's verdict on the rulebook with these places of its process edited."""
    for path, value in edits:
        source, _ = source.edited(("recovering", *path), value)
    bound = bind_rulebook(resolve(source), profile)
    claim = ALL_CLAIMS["terminates"]
    (part,) = claim.parts_of(bound)
    run = Run(Cutter(bound).cut(part), Asker(), EngineReplayer(), part)
    claim.prove(run)
    return judge(claim, profile.profile, [Answered(run.outcome(0.0))])


@pytest.mark.parametrize(
    ("edits", "rule"),
    [
        pytest.param([(("steps", "interfered", "sets", "attempts"), "attempts")], "interfered", id="costs nothing"),
        pytest.param([(("steps", "interfered", "sets", "attempts"), "attempts + 1")], "interfered", id="grows"),
        pytest.param([(("steps", "interfered", "when"), "attempts >= 0")], "interfered", id="falls below 0"),
        pytest.param([(("steps", "transfer_failed", "sets"), {})], "transfer_failed", id="retries for ever"),
        pytest.param([(("steps", "mended", "when"), "event.failing <= failing")], "mended", id="believes a lie"),
        pytest.param([(("steps", "source_lost", "bars"), False)], "source_lost", id="bars nothing"),
        pytest.param([(("steps", "given_up", "when"), "attempts == 0")], "given_up", id="recomputes from nothing"),
    ],
)
def test_a_step_that_may_go_on_for_ever_is_refuted(
    edits: list[tuple[tuple[str, ...], Any]], rule: str, source: RuleSource, profiles: dict[str, Profile]
) -> None:
    """The step is named with its place, and the engine was seen to halt there, or to end as it should not."""
    result = claimed(source, profiles[MODEL], edits)
    assert "refuted" == result.verdict, result.detail
    found = result.counterexample
    assert found is not None and found.replayed
    assert f"recovering/{rule}" == found.rule
    assert "recovering.yaml" in found.place


@pytest.mark.parametrize("report", ["moved", "failed", "source_lost", "nothing"])
def test_a_report_without_an_answer_is_refuted(report: str, source: RuleSource, profiles: dict[str, Profile]) -> None:
    """Where the last resort does not know of a report, some state stands still, and the engine halts there."""
    others = [one for one in (*REPAIR_REPORTS, "moved", "ready", "nothing") if one != report]
    edits: list[tuple[tuple[str, ...], Any]] = [(("steps", name, "on"), others) for name in ("given_up", "refused")]
    if report == "failed":
        edits.append((("steps", "repair_failed", "when"), "levels > 1000000"))
    if report == "source_lost":
        edits.append((("steps", "source_lost", "when"), "levels > 1000000"))
    result = claimed(source, profiles[MODEL], edits)
    assert "refuted" == result.verdict, result.detail
    assert result.counterexample is not None
    assert f"'{report}'" in result.counterexample.sentence


def test_a_start_outside_its_domain_is_refuted(source: RuleSource, profiles: dict[str, Profile]) -> None:
    """A counter that cannot begin ends every recovery before it began."""
    result = claimed(source, profiles[MODEL], [(("counters", "attempts", "start"), 4)])
    assert "refuted" == result.verdict, result.detail
    assert result.counterexample is not None
    assert "recovering/attempts" == result.counterexample.rule


@pytest.mark.parametrize(
    ("edits", "rule", "report"),
    [
        pytest.param([(("steps", "mended"), None)], "repair_failed", "done", id="a plan is not gone on with"),
        pytest.param([(("steps", "transfer_failed"), None)], "repair_failed", "transfer_failed", id="no second try"),
        pytest.param([(("steps", "interfered"), None)], "given_up", "moved", id="gives up when interfered with"),
        pytest.param([(("steps", "confirmed"), None)], "given_up", "ready", id="gives up what is ready"),
        pytest.param([(("steps", "given_up"), None)], "refused", "moved", id="refuses what can be computed"),
        pytest.param([(("steps", "repair_failed", "quarantines"), False)], "repair_failed", "done", id="trusts a copy"),
        pytest.param(
            [(("steps", "source_lost", "quarantines"), True)], "source_lost", "source_lost", id="suspects all"
        ),
    ],
)
def test_a_step_that_does_less_than_could_be_done_is_refuted(
    edits: list[tuple[tuple[str, ...], Any]],
    rule: str,
    report: str,
    source: RuleSource,
    profiles: dict[str, Profile],
) -> None:
    """The step that answers the report in its stead is named, and the engine was seen to take it."""
    result = claimed(source, profiles[MODEL], edits)
    assert "refuted" == result.verdict, result.detail
    found = result.counterexample
    assert found is not None and found.replayed
    assert (f"recovering/{rule}", True) == (found.rule, f"'{report}'" in found.sentence)


def test_a_counter_that_loses_its_count_is_refuted_where_it_misleads(
    source: RuleSource, profiles: dict[str, Profile]
) -> None:
    """What failed before a new decision is compared with what fails after it: a repair that mends counts as none."""
    result = claimed(source, profiles[MODEL], [(("steps", "interfered", "takes"), ["levels"])])
    assert "refuted" == result.verdict, result.detail
    assert result.counterexample is not None
    assert "misled" in result.counterexample.sentence
    assert "recovering/interfered" == result.counterexample.rule


def test_a_rulebook_without_a_process_is_unknown(source: RuleSource, profiles: dict[str, Profile]) -> None:
    """Nothing is claimed about how its plans are carried out."""
    bound = bind_rulebook(resolve(source), profiles[MODEL])
    bare = replace(bound, rulebook=replace(bound.rulebook, recovering=None))
    claim = ALL_CLAIMS["terminates"]
    (part,) = claim.parts_of(bare)
    run = Run(bare, Asker(), EngineReplayer(), part)
    claim.prove(run)
    result = judge(claim, MODEL, [Answered(run.outcome(0.0))])
    assert ("unknown", True) == (result.verdict, "does not say" in result.detail)


def test_the_proof_is_one_for_all_models(source: RuleSource, profiles: dict[str, Profile]) -> None:
    """The process reads nothing of a model, so equal keys let it be proved once."""
    rulebook = resolve(source)
    claim = ALL_CLAIMS["terminates"]
    keys = set()
    for profile in list(profiles.values())[:3]:
        bound = bind_rulebook(rulebook, profile)
        (part,) = claim.parts_of(bound)
        keys.add(Cutter(bound).key(part))
    assert 1 == len(keys)
