"""Objects, their forms, facts, peers, needs and dispositions are read, or refused with their place."""

from __future__ import annotations

from pathlib import Path

import pytest

from hitproof.rules.resolve import resolve
from hitproof.rules.source import RuleSource, read_source
from hitproof.spec.condition import text
from hitproof.spec.errors import BindError, ConditionError, DuplicateError, ReferenceNameError, SchemaError, UnitError
from hitproof.spec.rulebook import Rulebook
from tests.rules.broken_book import Slip, assert_told, edit, slips

TAIL = "objects/uncompressed_tail.yaml"
INDEX = "objects/routing_index.yaml"
FULL = "objects/full_kv.yaml"


class TestObjects:
    """What an object becomes."""

    def test_an_object_has_the_facts_of_every_segment_and_its_own(self, rulebook: Rulebook) -> None:
        """Its own come last."""
        shared = list(rulebook.objects["full_kv"].facts)
        assert [*shared, "window_size"] == list(rulebook.objects["uncompressed_tail"].facts)[: len(shared) + 1]

    def test_a_peer_role_may_have_several_objects(self, rulebook: Rulebook) -> None:
        """One name alone becomes a list of one."""
        peers = rulebook.objects["routing_index"].peers
        assert (("compressed_global", "full_kv"), ("layer_inputs",)) == (peers["kv"], peers["inputs"])

    def test_needs_are_cut_to_the_share_of_a_piece(self, rulebook: Rulebook) -> None:
        """For a span object in its rules; as declared, they stay whole. A point object is one piece."""
        tail, state = rulebook.objects["uncompressed_tail"], rulebook.objects["recurrent_state"]
        covers = next(check for check in tail.checks if check.id == "covers_window")
        assert "share.first" in text(covers.require)
        assert "share.first" not in text(tail.needs["first"])
        assert all("share." not in text(check.require) for check in state.checks)

    def test_home_is_the_object_s_own_form(self, rulebook: Rulebook) -> None:
        """The same inherited check asks each object for its own form."""
        for rules in rulebook.objects.values():
            for check in rules.checks:
                if check.id == "resident":
                    assert f"self.form == {rules.home}" in text(check.require)

    def test_an_object_s_dispositions_come_before_those_of_every_object(self, rulebook: Rulebook) -> None:
        """The first rule that holds decides."""
        ids = {name: [one.id for one in rules] for name, rules in rulebook.dispositions.items()}
        assert ["torn", "void_pool", "replaced"] == ids["full_kv"]
        assert ["orphaned", "torn", "void_pool", "replaced"] == ids["routing_index"]

    def test_a_rulebook_without_objects_is_refused(self, book: Path) -> None:
        """There would be nothing to check."""
        root = (book / "rulebook.yaml").read_text("utf-8")
        kept = [line for line in root.splitlines() if "objects/" not in line]
        (book / "rulebook.yaml").write_text("\n".join(kept), "utf-8")
        for repair in (book / "repairs").glob("*.yaml"):
            repair.unlink()
        with pytest.raises(SchemaError, match="declares no object"):
            resolve(read_source(book))

    @pytest.mark.parametrize("need", ["first", "to"])
    def test_both_ends_of_what_is_read_are_needed(self, source: RuleSource, need: str) -> None:
        """Without one of them nobody knows what a query reads."""
        changed, where = source.edited(("objects", "full_kv", "needs", need), None)
        with pytest.raises(SchemaError, match=f"needs `needs.{need}`") as caught:
            resolve(changed)
        assert ("full_kv", need, where.line) == (caught.value.rule, caught.value.expected, caught.value.where.line)


@slips(
    Slip(
        "object twice",
        INDEX,
        "objects:\n",
        "objects:\n  full_kv: ¶{form: full, pieces: span, title: t, source: s}\n",
        DuplicateError,
        rule="full_kv",
        got="full_kv",
        expected="full_kv.yaml:4:5",
        message="object full_kv stands twice",
    ),
    Slip("unknown form", FULL, "form: full", "form: ¶ful", ReferenceNameError, rule="full_kv", got="ful", hint="full"),
    Slip(
        "unknown kind of pieces",
        FULL,
        "pieces: span",
        "pieces: ¶spans",
        SchemaError,
        got="spans",
        expected="'span'",
    ),
    Slip(
        "fact that every segment has",
        TAIL,
        "window_size: {type",
        "start: ¶tokens\n      window_size: {type",
        DuplicateError,
        rule="uncompressed_tail",
        message="every segment has a fact 'start' already",
    ),
    Slip(
        "fact with the name of a peer's state",
        "objects/compressed_global.yaml",
        "seed: {type: identity, healthy:",
        "ready: ¶bool\n      seed: {type: identity, healthy:",
        SchemaError,
        rule="compressed_global",
        got="ready",
    ),
    Slip(
        "fact of an unknown type",
        TAIL,
        "window_size: {type: tokens,",
        "window_size: ¶{type: token,",
        ReferenceNameError,
        rule="uncompressed_tail.window_size",
        got="token",
        hint="tokens",
    ),
    Slip(
        "unknown constant",
        "objects/window_boundary.yaml",
        "{has_bytes: false}",
        "{has_bites: ¶false}",
        ReferenceNameError,
        rule="window_boundary",
        got="has_bites",
        hint="has_bytes",
    ),
    Slip(
        "constant of another type",
        "objects/window_boundary.yaml",
        "{has_bytes: false}",
        "{has_bytes: ¶0}",
        SchemaError,
        rule="window_boundary",
        got="0",
        expected="bool",
    ),
    Slip(
        "unknown peer",
        INDEX,
        "kv: [compressed_global, full_kv]",
        "kv: ¶[compressed_global, ful_kv]",
        ReferenceNameError,
        rule="routing_index",
        got="ful_kv",
        hint="full_kv",
        message="peer 'kv' refers to no object",
    ),
    Slip(
        "peer with the name of a scope",
        INDEX,
        "peers: {kv: [",
        "peers: {request: ¶layer_inputs, kv: [",
        SchemaError,
        rule="routing_index",
        got="request",
        expected="another name",
    ),
    Slip(
        "peer called self",
        INDEX,
        "peers: {kv: [",
        "peers: {self: ¶layer_inputs, kv: [",
        SchemaError,
        rule="routing_index",
        got="self",
        expected="another name",
    ),
    Slip(
        "peer called like a source",
        INDEX,
        "peers: {kv: [",
        "peers: {history: ¶layer_inputs, kv: [",
        SchemaError,
        rule="routing_index",
        got="history",
        expected="another name",
    ),
    Slip(
        "own peer",
        INDEX,
        "peers: {kv:",
        "peers: ¶{others: routing_index, kv:",
        SchemaError,
        rule="routing_index",
        message="peers form a circle: routing_index -> routing_index",
    ),
    Slip(
        "needs reads the segment",
        FULL,
        'needs: {first: "0", to: length}',
        'needs: {first: "0", to: ¶self.end}',
        ConditionError,
        rule="full_kv",
        got="self.end",
    ),
    Slip(
        "needs in bytes",
        FULL,
        'needs: {first: "0", to: length}',
        'needs: {first: "0", to: ¶group.row_bytes}',
        UnitError,
        rule="full_kv",
        got="bytes",
        expected="tokens",
    ),
    Slip(
        "needed is no condition",
        FULL,
        "needed: needs.first < needs.to",
        "needed: ¶needs.to",
        ConditionError,
        rule="full_kv",
        got="a value of type tokens",
        expected="a condition",
    ),
    Slip(
        "domain reads an unknown fact",
        "objects/compressed_global.yaml",
        "domain: [self.start % group.ratio == 0,",
        "domain: [¶self.stard % group.ratio == 0,",
        ConditionError,
        rule="compressed_global",
        got="self.stard",
        hint="self.start",
    ),
    Slip(
        "disposition reads an unknown fact",
        INDEX,
        "when: self.kv_content != kv.recorded",
        "when: self.kv_content != ¶kv.recorted",
        ConditionError,
        rule="routing_index/orphaned",
        got="kv.recorted",
        hint="kv.recorded",
    ),
    Slip(
        "disposition twice",
        INDEX,
        "    disposition:\n      - id: orphaned",
        "    disposition:\n      - {id: orphaned, when: self.sealed, then: keep, because: b, source: s}\n"
        "      - id: ¶orphaned",
        DuplicateError,
        rule="routing_index/orphaned",
        got="orphaned",
    ),
    Slip(
        "unknown disposition",
        INDEX,
        "then: purge",
        "then: ¶burn",
        SchemaError,
        got="burn",
        expected="quarantine",
    ),
    Slip(
        "no title",
        FULL,
        "title: Full key-value cache",
        "title: ¶7",
        SchemaError,
        got="7",
        expected="string",
    ),
)
def test_a_slip_in_an_object_is_told(slip: Slip, tmp_path: Path) -> None:
    """Each is refused with its place, the object, what stood there and what would have been right."""
    assert_told(tmp_path, slip)


def test_peers_in_a_circle_are_refused(book: Path) -> None:
    """Peers are evaluated in order, so there must be one; the circle is spelled out where it begins."""
    manifest = "peers: {manifest: demoted_prefix}"
    edit(book, "objects/layer_inputs.yaml", manifest, "peers: {index: routing_index, manifest: demoted_prefix}")
    with pytest.raises(SchemaError, match="peers form a circle: ") as caught:
        resolve(read_source(book))
    circle = caught.value.message.removeprefix("peers form a circle: ").split(" -> ")
    assert {"routing_index", "layer_inputs"} <= set(circle)
    assert circle[0] == circle[-1] == caught.value.rule == Path(caught.value.where.file).stem


def test_what_cannot_be_told_before_a_model_is_known_is_left_to_binding(source: RuleSource) -> None:
    """A divisor may be any constant while the rules are read."""
    changed, _ = source.edited(("objects", "full_kv", "needs", "to"), "length // group.chunk * group.chunk")
    assert not isinstance(resolve(changed), BindError)
