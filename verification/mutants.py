"""Rulebooks deliberately broken, one place each: a claim that does not refute its mutant proves nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hitproof.rules.source import RuleSource
from hitproof.spec.errors import Position, ReferenceNameError
from hitproof.spec.yaml_tree import plain

__all__ = ["MUTANTS", "Mutant"]

Path = tuple[str | int, ...]
Value = object | Callable[[RuleSource], object]


@dataclass(frozen=True)
class Mutant:
    """One edit of the embedded rulebook.

    Args:
        id: What was done, in kebab case.
        claim: The claim that must be refuted.
        profile: A profile in which it matters.
        path: Place of the edit: keys, and ids of list items.
        value: New value, `None` to delete, or a function of the source.
        change: The edit in words.
    """

    id: str
    claim: str
    profile: str
    path: Path
    value: Value
    change: str

    def of(self, source: RuleSource) -> tuple[RuleSource, Position]:
        """The broken rulebook, and the place of the edit.

        Raises:
            ReferenceNameError: The rulebook has no such place.
        """
        value = self.value(source) if callable(self.value) else self.value
        return source.edited(self.path, value)

    def fits(self, source: RuleSource) -> bool:
        """Whether the rulebook has the place that is edited; one of one's own may not."""
        try:
            self.of(source)
        except ReferenceNameError:
            return False
        return True


def _twin_of_bounce(source: RuleSource) -> object:
    """The option `bounce` once more, with another repair."""
    for tree in source.files.values():
        every = plain(tree).get("every_object")
        for option in (every or {}).get("recovery", ()):
            if option["id"] == "bounce":
                return {**option, "repair": "window_roll"}
    return None


def _check(name: str) -> Path:
    return ("every_object", "checks", name, "require")


MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "window-start-not-asked",
        "sound",
        "gemma-3-27b",
        ("objects", "uncompressed_tail", "checks", "covers_window", "require"),
        "needs.to <= self.end",
        "covers_window no longer asks for self.start <= needs.first",
    ),
    Mutant(
        "aborted-counts-as-committed",
        "sound",
        "qwen3-next-80b-a3b",
        _check("resident"),
        "not self.form == pending and self.tier == device",
        "resident accepts every form but pending, aborted writes included",
    ),
    Mutant(
        "demotion-keeps-the-measurement",
        "sound",
        "qwen3-next-80b-a3b",
        ("transitions", "demote_end", "forgets"),
        ["mapped_generation"],
        "bytes that crossed tiers count as measured",
    ),
    Mutant(
        "recompute-without-its-media",
        "complete",
        "gemma-3-27b",
        ("every_object", "recovery", "recompute", "consumes"),
        ["tokens"],
        "the full recompute no longer asks for the request's media",
    ),
    Mutant(
        "duplicate-rule-with-another-repair",
        "deterministic",
        "qwen3-next-80b-a3b",
        ("every_object", "recovery", "relayout"),
        _twin_of_bounce,
        "a second option named bounce runs another repair",
    ),
    Mutant(
        "unknown-fingerprint-passes",
        "fail_closed",
        "qwen3-next-80b-a3b",
        _check("fingerprint_matches"),
        "not known(self.measured) or self.measured == self.recorded",
        "a fingerprint that nobody measured lets the block through",
    ),
    Mutant(
        "remap-forgets-the-rows",
        "repair_sound",
        "deepseek-v4-flash",
        ("objects", "routing_index", "recovery", "remap", "sets", "kv_generation"),
        None,
        "index_remap no longer records which rows it maps to",
    ),
    Mutant(
        "remap-does-not-read-its-index",
        "repair_sound",
        "deepseek-v4-flash",
        ("objects", "routing_index", "recovery", "remap", "consumes"),
        ["kv"],
        "index_remap no longer asks for its own bytes to be whole",
    ),
    Mutant(
        "rebuild-without-its-inputs",
        "repair_sound",
        "deepseek-v4-flash",
        ("objects", "compressed_global", "recovery", "rebuild_entries", "consumes"),
        [],
        "recompress no longer asks for the kept layer inputs to be whole",
    ),
    Mutant(
        "approximation-is-forgotten",
        "repair_sound",
        "deepseek-v4-flash",
        ("objects", "uncompressed_tail", "recovery", "warm_up", "when"),
        "group.receptive_field < length",
        "a warm-up over history that may be approximate calls itself exact",
    ),
    Mutant(
        "warm-up-inside-the-receptive-field",
        "repair_sound",
        "gemma-3-27b",
        ("objects", "uncompressed_tail", "recovery", "warm_up", "when"),
        "not request.allows_approximate",
        "a warm-up shorter than the stacked windows calls itself exact",
    ),
    Mutant(
        "fill-over-missing-bytes",
        "repair_sound",
        "qwen3-next-80b-a3b",
        ("objects", "full_kv", "recovery", "fill_young_end", "mends"),
        ["covers_prefix", "bytes_whole"],
        "filling the young end also declares whole the rows that it did not write",
    ),
    Mutant(
        "move-without-changing-the-owner",
        "separation",
        "qwen3-next-80b-a3b",
        ("transitions", "defragment", "takes"),
        [],
        "defragmentation moves the bytes, and the segment still names the old block",
    ),
    Mutant(
        "written-beside-a-co-owner",
        "separation",
        "qwen3-next-80b-a3b",
        ("transitions", "append", "owner"),
        "any",
        "rows are appended to a block that another segment owns too",
    ),
    Mutant(
        "shared-extents-may-be-written",
        "separation",
        "gemma-3-27b",
        ("transitions", "share", "when"),
        "donor.form == home",
        "an extent that its owner may still write is shared",
    ),
    Mutant(
        "conflicting-periods",
        "intersection_satisfiable",
        "deepseek-v4-flash",
        ("objects", "compressed_global", "checks", "covers_entries", "require"),
        "self.start <= needs.first and needs.to <= self.end and length % group.ratio == group.ratio // 2",
        "entries of ratio 4 and of ratio 128 can be read at lengths that never coincide",
    ),
    Mutant(
        "length-instead-of-boundary",
        "intersection_satisfiable",
        "qwen3-next-80b-a3b",
        ("objects", "recurrent_state", "resumable"),
        None,
        "a recurrent state is offered at any length up to its own, not at its boundaries",
    ),
    Mutant(
        "pool-epoch-not-asked",
        "static_graph",
        "qwen3-next-80b-a3b",
        ("every_object", "checks", "pool_current"),
        None,
        "a block of an earlier pool passes",
    ),
    Mutant(
        "promote-into-another-pool",
        "static_graph",
        "qwen3-next-80b-a3b",
        ("every_object", "recovery", "promote_from_host", "sets", "pool_epoch"),
        "runtime.pool_epoch + 1",
        "a promoted block comes from a pool that the graph does not know",
    ),
    Mutant(
        "no-way-out-of-quarantine",
        "graph_covers_machine",
        "qwen3-next-80b-a3b",
        ("transitions", "discard", "when"),
        "self.pins < 0",
        "the only exit from quarantine can never be taken",
    ),
)
