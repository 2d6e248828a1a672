"""Every claim is proved for models that bind every rule, and says what it rests on."""

from __future__ import annotations

import pytest

from hitproof.engine.scenario import EngineReplayer
from hitproof.rules.source import RuleSource
from hitproof.spec.profile import Profile
from hitproof.spec.proof import CLAIMS, joint_verdict
from hitproof.verification import verify
from hitproof.verification.claims import ALL_CLAIMS
from tests.models import REPRESENTATIVE


class TestProved:
    """The embedded rulebook."""

    @pytest.mark.parametrize("name", REPRESENTATIVE)
    def test_every_claim_is_proved(
        self, name: str, source: RuleSource, profiles: dict[str, Profile], replayer: EngineReplayer
    ) -> None:
        """All nine, each with a witness that its premise can hold; rules dead in one model may live in another."""
        report = verify(source, [profiles[name]], replayer=replayer, jobs=1)
        assert list(CLAIMS) == [result.id for result in report.claims]
        for result in report.claims:
            if result.id == "deterministic" and result.verdict == "unknown":
                assert result.detail.startswith("never decisive in any of these profiles")
            else:
                assert ("proved", None) == (result.verdict, result.counterexample), (result.id, result.detail)
            assert result.witness, result.id
            assert result.obligations > 0

    def test_every_rule_decides_in_some_profile(
        self, source: RuleSource, profiles: dict[str, Profile], replayer: EngineReplayer
    ) -> None:
        """Over these profiles no rule is dead."""
        chosen = [profiles[name] for name in REPRESENTATIVE]
        report = verify(source, chosen, claims=["deterministic"], replayer=replayer, jobs=1)
        assert ["proved"] * len(chosen) == [result.verdict for result in report.claims]


class TestWithoutAnEngine:
    """Nothing is refuted by words alone."""

    def test_a_failure_that_nobody_replays_is_unknown(self, source: RuleSource, profiles: dict[str, Profile]) -> None:
        """Without a replayer the verdict on a broken rulebook is unknown, never refuted."""
        broken, _ = source.edited(("transitions", "discard", "when"), "self.pins < 0")
        report = verify(
            broken, [profiles["qwen3-next-80b-a3b"]], claims=["graph_covers_machine"], replayer=None, jobs=1
        )
        assert "unknown" == report.verdict
        assert report.claims[0].counterexample is not None
        assert not report.claims[0].counterexample.replayed


class TestHonesty:
    """Verdicts say no more than was found."""

    def test_a_solver_that_gives_up_leaves_the_claim_unknown(
        self,
        source: RuleSource,
        profiles: dict[str, Profile],
        replayer: EngineReplayer,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """A time-out is unknown, never proved."""
        from hitproof.verification.solve import Answer, Asker

        monkeypatch.setattr(Asker, "answer", lambda *_: Answer("unknown", reason="timeout"))
        report = verify(source, [profiles["gemma-3-27b"]], replayer=replayer, jobs=1)
        assert {"unknown"} == {result.verdict for result in report.claims}

    def test_refuted_outranks_unknown_and_nothing_is_unknown(self) -> None:
        """The joint verdict."""
        assert "refuted" == joint_verdict(["proved", "unknown", "refuted"])
        assert "unknown" == joint_verdict(["proved", "unknown"])
        assert "unknown" == joint_verdict([])

    def test_every_claim_tells_its_sentence_method_and_assumptions(self) -> None:
        """Told in the order of the required list."""
        assert list(CLAIMS) == list(ALL_CLAIMS)
        for claim in ALL_CLAIMS.values():
            assert claim.sentence.endswith(".")
            assert claim.method

    def test_an_event_without_an_axiom_leaves_sound_unknown(
        self, source: RuleSource, profiles: dict[str, Profile], replayer: EngineReplayer
    ) -> None:
        """Nobody says what a new event does to bytes, so nothing is claimed about it."""
        renamed, _ = source.edited(("transitions", "spill", "id"), "teleport")
        report = verify(renamed, [profiles["qwen3-next-80b-a3b"]], claims=["sound"], replayer=replayer, jobs=1)
        assert "unknown" == report.verdict
        assert "no axiom says what the event 'teleport' does" in report.claims[0].detail

    @pytest.mark.parametrize(
        ("assumption", "claim"),
        [("fingerprints_tell", "sound"), ("writers_tell", "sound"), ("exclusive_allocator", "separation")],
    )
    def test_removing_an_assumption_changes_a_verdict(
        self,
        assumption: str,
        claim: str,
        source: RuleSource,
        profiles: dict[str, Profile],
        replayer: EngineReplayer,
    ) -> None:
        """No assumption is idle: without it the claim is no longer proved."""
        without, _ = source.edited(("assume", assumption), None)
        report = verify(without, [profiles["gemma-3-27b"]], claims=[claim], replayer=replayer, jobs=1)
        assert "proved" != report.verdict
