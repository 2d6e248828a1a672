"""Repairs, joint repairs, invariants, flags and the price of prefill are read, or refused with their place."""

from __future__ import annotations

from pathlib import Path

import pytest

from hitproof.rules.resolve import load_rulebook, resolve
from hitproof.rules.source import RuleSource
from hitproof.spec.errors import ConditionError, DuplicateError, ReferenceNameError, SchemaError, UnitError
from hitproof.spec.rulebook import ORDER, Rulebook
from tests.rules.broken_book import Slip, assert_told, edit, slips


class TestWhole:
    """The rulebook as a whole."""

    def test_resolving_is_deterministic(self, source: RuleSource, rulebook: Rulebook) -> None:
        """The same files give an equal rulebook, read anew or not."""
        assert rulebook == resolve(source)
        assert rulebook == load_rulebook("mixed_attention")

    def test_the_rulebook_carries_the_digest_of_its_files(self, source: RuleSource, rulebook: Rulebook) -> None:
        """What was decided can be traced to what was read."""
        assert (source.digest, "mixed_attention") == (rulebook.digest, rulebook.name)

    def test_a_price_of_prefill_is_needed(self, source: RuleSource) -> None:
        """Without one no length can be chosen."""
        changed, _ = source.edited(("prefill", "cost"), None)
        with pytest.raises(SchemaError, match=r"prefill\.cost` is missing"):
            resolve(changed)

    def test_a_rulebook_without_prefill_is_refused(self, book: Path) -> None:
        """The root file is where it could stand."""
        path = edit(book, "rulebook.yaml", "  - decision.yaml\n", "")
        with pytest.raises(SchemaError, match="no `prefill:` cost") as caught:
            load_rulebook(book)
        assert (str(path), "prefill") == (caught.value.where.file, caught.value.expected)

    def test_an_order_of_choosing_is_needed(self, source: RuleSource) -> None:
        """Without one, equal states could get different plans."""
        changed, _ = source.edited(("choosing",), None)
        with pytest.raises(SchemaError, match="no `choosing:` order") as caught:
            resolve(changed)
        assert "choosing" == caught.value.expected

    @pytest.mark.parametrize(
        "order",
        [ORDER[:-1], [*ORDER, "price"], ["price", "price", *ORDER[2:]]],
        ids=["one missing", "one too many", "one twice"],
    )
    def test_the_order_of_choosing_names_each_part_once(self, source: RuleSource, order: list[str]) -> None:
        """What is left out would decide nothing, and what stands twice nothing more."""
        changed, _ = source.edited(("choosing", "order"), list(order))
        with pytest.raises(SchemaError, match="does not name each of its parts once") as caught:
            resolve(changed)
        assert (", ".join(order), ", ".join(ORDER)) == (caught.value.got, caught.value.expected)

    def test_an_order_by_something_else_is_refused(self, source: RuleSource) -> None:
        """The parts that there are, are told."""
        changed, _ = source.edited(("choosing", "order"), [*ORDER[:-1], "colour"])
        with pytest.raises(SchemaError, match="choosing"):
            resolve(changed)

    def test_the_order_of_choosing_is_that_of_the_file(self, source: RuleSource) -> None:
        """In whatever order it stands."""
        changed, _ = source.edited(("choosing", "order"), list(ORDER[::-1]))
        assert ORDER[::-1] == resolve(changed).choosing.order

    def test_leniently_a_faulty_rulebook_resolves(self, source: RuleSource) -> None:
        """The verifier is shown a `known` under a negation; the engine is not."""
        path = ("every_object", "checks", "resident", "require")
        changed, _ = source.edited(path, "not known(self.tier) or self.tier == device")
        resolve(changed, lenient=True)
        with pytest.raises(ConditionError, match="under a negation"):
            resolve(changed)

    def test_leniently_a_check_may_be_gone_that_options_mend(self, source: RuleSource) -> None:
        """The verifier is shown what follows; the engine is not."""
        changed, _ = source.edited(("every_object", "checks", "base_aligned"), None)
        resolve(changed, lenient=True)
        with pytest.raises(ReferenceNameError, match="'base_aligned' is no check of any object"):
            resolve(changed)


def test_a_second_price_of_prefill_is_refused(book: Path) -> None:
    """The place of the first is told, whichever file it is in."""
    first = edit(book, "vocabulary.yaml", "enums:", "prefill: {cost: runtime.launch_us, because: b, source: s}\nenums:")
    with pytest.raises(DuplicateError, match="section prefill stands twice") as caught:
        load_rulebook(book)
    assert caught.value.where.file == str(book / "decision.yaml")
    assert f"{first}:" in str(caught.value.expected)


@slips(
    Slip(
        "unknown section",
        "rulebook.yaml",
        "language: 1",
        "language: 1\n¶langage: 2",
        SchemaError,
        got="langage",
        hint="language",
        message="unknown key `langage`",
    ),
    Slip(
        "another language",
        "rulebook.yaml",
        "language: 1",
        "language: ¶2",
        SchemaError,
        got="2",
        expected="1",
    ),
    Slip(
        "prefill in tokens",
        "decision.yaml",
        "(request.length - length) * runtime.prefill_us_per_token",
        "¶request.length - length",
        UnitError,
        rule="prefill",
        got="tokens",
        expected="us",
    ),
    Slip(
        "prefill reads a segment",
        "decision.yaml",
        "(request.length - length) *",
        "(request.length - ¶self.end) *",
        ConditionError,
        rule="prefill",
        got="self.end",
        message="not known here",
    ),
    Slip(
        "joint repair twice",
        "decision.yaml",
        "joint:\n  - id: warm_up",
        "joint:\n  - {id: warm_up, level: in_place, because: b, source: s}\n  - id: ¶warm_up",
        DuplicateError,
        rule="warm_up",
        got="warm_up",
        message="joint repair warm_up stands twice",
    ),
    Slip(
        "unknown joint repair",
        "objects/uncompressed_tail.yaml",
        "- id: warm_up\n        level: intra_layer\n        repair: forward\n        joint: warm_up",
        "- id: ¶warm_up\n        level: intra_layer\n        repair: forward\n        joint: warmup",
        ReferenceNameError,
        rule="uncompressed_tail/warm_up",
        got="warmup",
        hint="warm_up",
        message="no joint repair",
    ),
    Slip(
        "joint repair of another level",
        "objects/uncompressed_tail.yaml",
        "- id: warm_up\n        level: intra_layer",
        "- id: ¶warm_up\n        level: in_place",
        SchemaError,
        rule="uncompressed_tail/warm_up",
        got="in_place",
        expected="intra_layer",
    ),
    Slip(
        "unknown assumption",
        "consistency.yaml",
        "id: writers_tell",
        "id: ¶writers_lie",
        SchemaError,
        got="writers_lie",
        expected="writers_tell",
    ),
    Slip(
        "assumption about a segment",
        "consistency.yaml",
        "id: writers_tell\n    about: environment",
        "id: writers_tell\n    about: ¶segment",
        SchemaError,
        got="segment",
        expected="environment",
    ),
    Slip(
        "assumption twice",
        "consistency.yaml",
        "id: writers_tell",
        "id: ¶fingerprints_tell",
        DuplicateError,
        rule="fingerprints_tell",
        got="fingerprints_tell",
        expected="first at",
    ),
    Slip(
        "invariant twice",
        "consistency.yaml",
        "id: rows_where_captured",
        "id: ¶addresses_of_captured_pool",
        DuplicateError,
        rule="addresses_of_captured_pool",
        got="addresses_of_captured_pool",
    ),
    Slip(
        "invariant on an unknown fact",
        "consistency.yaml",
        "lease.epoch == self.epoch",
        "lease.epoch == ¶self.epok",
        ConditionError,
        rule="use_what_was_checked",
        got="self.epok",
        hint="self.epoch",
    ),
    Slip(
        "invariant over the run time reads a segment",
        "consistency.yaml",
        "runtime.used_blocks + runtime",
        "¶self.used_blocks + runtime",
        ConditionError,
        rule="capacity_kept",
        got="self.used_blocks",
    ),
    Slip(
        "flag twice",
        "decision.yaml",
        "id: copy_on_write",
        "id: ¶eager",
        DuplicateError,
        rule="eager",
        got="eager",
    ),
    Slip(
        "flag over the request reads a segment",
        "decision.yaml",
        "unless: implies(request.captured,",
        "unless: implies(¶self.sealed,",
        ConditionError,
        rule="eager",
        got="self.sealed",
    ),
)
def test_a_slip_beside_the_objects_is_told(slip: Slip, tmp_path: Path) -> None:
    """Each is refused with its place, the rule, what stood there and what would have been right."""
    assert_told(tmp_path, slip)


@slips(
    Slip(
        "repair twice",
        "repairs/relayout.yaml",
        "repair: relayout",
        "repair: ¶promote",
        DuplicateError,
        rule="promote",
        message="repair promote stands twice",
    ),
    Slip(
        "repair consumes an unknown thing",
        "repairs/promote.yaml",
        "[[self, demoted_prefix]]",
        "[[self, ¶demoted_suffix]]",
        ReferenceNameError,
        rule="repairs/promote",
        got="demoted_suffix",
        hint="demoted_prefix",
    ),
    Slip(
        "repair produces an unknown object",
        "repairs/tail_fill.yaml",
        "produces: [full_kv,",
        "produces: [¶ful_kv,",
        ReferenceNameError,
        rule="repairs/tail_fill",
        got="ful_kv",
        hint="full_kv",
    ),
    Slip(
        "repair establishes an unknown fact",
        "repairs/checksum.yaml",
        "{measured: measured}",
        "{¶mesured: measured}",
        ReferenceNameError,
        rule="repairs/checksum",
        got="mesured",
        hint="measured",
    ),
    Slip(
        "repair establishes by magic",
        "repairs/checksum.yaml",
        "{measured: measured}",
        "{measured: ¶guessed}",
        SchemaError,
        got="guessed",
        expected="assigned",
    ),
    Slip(
        "repair keeps an unknown fact",
        "repairs/checksum.yaml",
        "keeps: [identity, span,",
        "keeps: [identity, ¶spam,",
        ReferenceNameError,
        rule="repairs/checksum",
        got="spam",
        hint="span",
    ),
    Slip(
        "repair clobbers an unknown fact",
        "repairs/promote.yaml",
        "clobbers: [generations,",
        "clobbers: [¶generation_s,",
        ReferenceNameError,
        rule="repairs/promote",
        got="generation_s",
        hint="generations",
    ),
    Slip(
        "repair runs nowhere",
        "repairs/promote.yaml",
        "runs: kernel",
        "runs: ¶cloud",
        SchemaError,
        got="cloud",
        expected="model",
    ),
    Slip(
        "repair with no alignment",
        "repairs/promote.yaml",
        "alignment: 16",
        "alignment: ¶0",
        SchemaError,
        got="0",
        expected="greater than or equal to 1",
    ),
    Slip(
        "repair without a source",
        "repairs/promote.yaml",
        "source: article 3.5",
        "source: ¶''",
        SchemaError,
        got='""',
        expected="at least 1",
    ),
)
def test_a_slip_in_a_repair_is_told(slip: Slip, tmp_path: Path) -> None:
    """A declaration may name only what the rulebook has."""
    assert_told(tmp_path, slip)
