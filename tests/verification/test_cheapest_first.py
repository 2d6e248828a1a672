"""The claim that the cheapest plan comes first: each of its questions finds the fault that it is there for."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import pytest
import z3

from hitproof.engine.scenario import EngineReplayer
from hitproof.rules.bind import bind_rulebook
from hitproof.rules.resolve import resolve
from hitproof.rules.source import RuleSource
from hitproof.spec.profile import Profile
from hitproof.spec.proof import ClaimResult
from hitproof.spec.rulebook import ORDER
from hitproof.verification.claims import cheapest_first
from hitproof.verification.cut import Cutter
from hitproof.verification.judge import Answered, judge
from hitproof.verification.run import Run
from hitproof.verification.solve import Asker

MODEL = "gemma-3-27b"


def claimed(source: RuleSource, profile: Profile, *edits: tuple[tuple[str | int, ...], Any]) -> ClaimResult:
    """The claim's verdict on an edited rulebook."""
    for path, value in edits:
        source, _ = source.edited(path, value)
    bound = bind_rulebook(resolve(source), profile)
    claim, cutter, answered = cheapest_first.CLAIM, Cutter(bound), []
    for part in claim.parts_of(bound):
        run = Run(cutter.cut(part), Asker(), EngineReplayer(), part)
        claim.prove(run)
        answered.append(Answered(run.outcome(0.0)))
    return judge(claim, profile.profile, answered)


@pytest.mark.parametrize("first", ORDER[1:])
def test_an_order_that_starts_elsewhere_is_refuted(
    first: str, source: RuleSource, profiles: dict[str, Profile]
) -> None:
    """Whatever stands before the price, the engine was seen to choose a dearer plan than another one."""
    order = [first, *(part for part in ORDER if part != first)]
    result = claimed(source, profiles[MODEL], (("choosing", "order"), order))
    assert "refuted" == result.verdict, result.detail
    found = result.counterexample
    assert found is not None and found.replayed
    assert found.scenario is not None and found.scenario.expect.cheaper is not None
    assert "decision.yaml" in found.place


@pytest.mark.parametrize("rest", list(permutations(ORDER[1:]))[::7])
def test_what_settles_ties_may_stand_in_any_order(
    rest: Sequence[str], source: RuleSource, profiles: dict[str, Profile]
) -> None:
    """Behind the price no part can make a plan dearer."""
    result = claimed(source, profiles[MODEL], (("choosing", "order"), ["price", *rest]))
    assert "proved" == result.verdict, result.detail


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("every_object", "recovery", "bounce", "cost"), "runtime.launch_us - self.bytes * runtime.device_us_per_byte"),
        (
            ("objects", "full_kv", "recovery", "fill_young_end", "cost"),
            "(self.end - needs.to) * group.layer_count * runtime.layer_us_per_token",
        ),
        (("prefill", "cost"), "(length - request.length) * runtime.prefill_us_per_token"),
        (("runtime", "launch_us"), {"type": "us", "domain": [-5.0, 1000000.0], "healthy": 10.0}),
        (("every_object", "recovery", "promote_from_host", "cost"), "self.address * runtime.host_us_per_byte"),
    ],
    ids=["less the bytes", "less than none are missing", "the more is reused", "a rate below 0", "what may be unknown"],
)
def test_a_price_below_zero_or_unknown_is_no_proof(
    path: tuple[str | int, ...], value: Any, source: RuleSource, profiles: dict[str, Profile]
) -> None:
    """The rule is told; where no story shows a dearer decision, the claim is unknown and not proved."""
    result = claimed(source, profiles[MODEL], (path, value))
    assert result.verdict in ("refuted", "unknown")
    assert result.counterexample is not None
    assert "below 0" in result.counterexample.sentence


def _by_sum(sums: dict[tuple[int, ...], tuple[Any, Any]], better: tuple[int, ...], ways: tuple[int, ...]) -> Any:
    """Drops what costs no less in all, whatever part of it is shared."""
    (own, joint), (others_own, others_joint) = sums[better], sums[ways]
    no_dearer = own + joint <= others_own + others_joint
    return z3.And(
        better != ways, no_dearer if better < ways else z3.And(no_dearer, own + joint < others_own + others_joint)
    )


def test_a_search_that_compares_sums_alone_is_refuted(
    source: RuleSource, profiles: dict[str, Profile], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What costs more by now may cost less in the end, where the joint repair is paid anyway."""
    monkeypatch.setattr(cheapest_first, "_drops", _by_sum)
    result = claimed(source, profiles[MODEL])
    assert result.counterexample is not None
    assert "the search drops the cheapest plan" == result.counterexample.sentence
    assert "proved" != result.verdict


def test_without_known_rates_nothing_is_proved(
    source: RuleSource, profiles: dict[str, Profile], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The assumption `rates_known` is needed: an unknown rate leaves a price unknown."""
    monkeypatch.setattr(cheapest_first, "_known_rates", lambda cost, names: [])
    assert "proved" != claimed(source, profiles[MODEL]).verdict
