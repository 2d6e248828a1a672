"""Contracts of kernels and keys that no shipped profile has are proved or refuted just the same."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hitproof.engine.scenario import EngineReplayer
from hitproof.rules.edit import edit
from hitproof.rules.source import RuleSource
from hitproof.spec.profile import Group, Profile
from hitproof.spec.proof import ClaimResult
from hitproof.spec.yaml_tree import plain
from hitproof.verification import verify

ROWS = {"row_bytes": 64, "alignment": 64, "stride": 4096}
GUARD = "(self.address + self.offset) % repair.reads_at == 0 and self.stride % repair.reads_at == 0"


def profile(**constants: int) -> Profile:
    """One full group with kept inputs and a manifest, and constants of its own."""
    kinds = {"kv": "full_kv", "inputs": "layer_inputs", "manifest": "demoted_prefix"}
    groups = [
        Group(id=name, object=kind, layers=["0-3"], constants={**ROWS, **constants} if name != "manifest" else {})  # type: ignore[arg-type]
        for name, kind in kinds.items()
    ]
    return Profile(profile="small", title="small", layers=4, groups=tuple(groups))


def verdict(source: RuleSource, model: Profile, claim: str, replayer: EngineReplayer) -> ClaimResult:
    """The answer on one claim for one model."""
    return verify(source, [model], claims=[claim], replayer=replayer, jobs=1).claims[0]


def with_relayout(source: RuleSource, contract: str, alignment: int) -> RuleSource:
    """The same rules with another contract of the repair that copies rows."""
    tree = edit(source.repairs["relayout.yaml"], (contract,), alignment)
    return replace(source, repairs={**source.repairs, "relayout.yaml": tree})


def guarded(source: RuleSource) -> RuleSource:
    """The same rules with every option of that repair asking for rows that it can read."""
    every = next(tree for name, tree in source.files.items() if name.endswith("every_object.yaml"))
    for option in plain(every)["every_object"]["recovery"]:
        if option["repair"] == "relayout":
            path = ("every_object", "recovery", option["id"], "when")
            source = source.edited(path, f"{option['when']} and {GUARD}")[0]
    return source


class TestAlignment:
    """The attention kernel and every repair ask for an alignment of their own."""

    def test_a_repair_that_asks_for_less_is_served(self, source: RuleSource, replayer: EngineReplayer) -> None:
        """Rows at 64 bytes suit kernels that read 16."""
        assert "proved" == verdict(source, profile(), "alignment", replayer).verdict

    def test_a_group_that_asks_for_less_than_its_readers_is_refuted(
        self, source: RuleSource, replayer: EngineReplayer
    ) -> None:
        """Kept inputs at 8 bytes are accepted, and the repair that reads them wants 16."""
        result = verdict(source, profile(alignment=8), "alignment", replayer)
        assert "refuted" == result.verdict
        assert result.counterexample is not None
        assert "16 bytes of tail_fill" in result.counterexample.sentence

    def test_a_repair_that_asks_for_more_is_refuted_unless_its_options_are_guarded(
        self, source: RuleSource, replayer: EngineReplayer
    ) -> None:
        """A copy that reads 256 bytes at once does not do for rows at 64."""
        strict = with_relayout(source, "reads_at", 256)
        assert "refuted" == verdict(strict, profile(), "alignment", replayer).verdict
        assert "proved" == verdict(guarded(strict), profile(), "alignment", replayer).verdict

    @pytest.mark.parametrize(("alignment", "answer"), [(32, "proved"), (256, "refuted")])
    def test_a_repair_writes_rows_that_suit_itself(
        self, alignment: int, answer: str, source: RuleSource, replayer: EngineReplayer
    ) -> None:
        """The allocator promises what the group asks for, and no more."""
        strict = with_relayout(source, "alignment", alignment)
        assert answer == verdict(guarded(strict), profile(), "alignment", replayer).verdict


class TestKeys:
    """Groups that look ahead have rows that depend on tokens behind their end."""

    @pytest.mark.parametrize(("ahead", "answer"), [(0, "proved"), (3, "refuted")])
    def test_a_key_names_the_tokens_that_were_looked_at(
        self, ahead: int, answer: str, source: RuleSource, replayer: EngineReplayer
    ) -> None:
        """A key that ends where the rows end does for a group without look-ahead alone."""
        model = profile(lookahead=ahead)
        assert "proved" == verdict(source, model, "identity_monotone", replayer).verdict
        short = source.edited(("keys", "host", "tokens"), "length")[0]
        assert answer == verdict(short, model, "identity_monotone", replayer).verdict

    @pytest.mark.parametrize("tier", ["device", "host", "disk"])
    @pytest.mark.parametrize("field", ["weights", "attention_config", "adapter", "media", "salt"])
    def test_a_key_without_a_field_is_refuted_in_every_tier(
        self, tier: str, field: str, source: RuleSource, replayer: EngineReplayer
    ) -> None:
        """Each field of identity is missed wherever it is left out."""
        poor = source.edited(("keys", tier, "fields", field), None)[0]
        if field == "media":
            poor = poor.edited(("keys", tier, "begins"), {})[0]
        result = verdict(poor, profile(), "identity_monotone", replayer)
        assert "refuted" == result.verdict
        assert result.counterexample is not None
        assert f"on {tier}" in result.counterexample.sentence

    @pytest.mark.parametrize("event", ["evict", "quarantine", "rollback", "transfer_failed"])
    def test_an_event_that_keeps_the_key_of_what_is_gone_is_refuted(
        self, event: str, source: RuleSource, replayer: EngineReplayer
    ) -> None:
        """Whatever ends or cuts a segment takes its key out of the index."""
        kept = source.edited(("transitions", event, "key"), None)[0]
        result = verdict(kept, profile(), "identity_monotone", replayer)
        assert "refuted" == result.verdict
        assert result.counterexample is not None
        assert result.counterexample.rule.endswith(f"/{event}")

    def test_a_repair_that_keeps_a_key_over_other_rows_is_refuted(
        self, source: RuleSource, replayer: EngineReplayer
    ) -> None:
        """A private copy with more rows is not what the key names, and the engine is seen to leave it published."""
        kept = source.edited(("every_object", "effects", "rewritten_copy", "sets", "published"), "self.published")[0]
        assert "refuted" == verdict(kept, profile(), "identity_monotone", replayer).verdict
