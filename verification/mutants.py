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


def _unpin_first(source: RuleSource) -> object:
    """The steps of a release, with the pins given back first."""
    for tree in source.files.values():
        leasing = plain(tree).get("leasing")
        if leasing:
            return sorted(leasing["release"], key=lambda step: bool(step["does"] != "unpin"))
    return None


def _check(name: str) -> Path:
    return ("every_object", "checks", name, "require")


MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "picture-of-the-entry-not-asked",
        "sound",
        "gemma-3-27b",
        _check("same_media"),
        "self.media == request.media or length <= request.media_from",
        "same_media no longer asks where the first picture of the entry stands",
    ),
    Mutant(
        "window-start-not-asked",
        "sound",
        "gemma-3-27b",
        ("objects", "uncompressed_tail", "checks", "covers_window", "require"),
        "needs.to <= self.end",
        "covers_window no longer asks for self.start <= needs.first",
    ),
    Mutant(
        "chunk-begins-at-its-end",
        "sound",
        "llama-4-scout",
        ("objects", "uncompressed_tail", "needs", "first"),
        "max((length + group.chunk - 1) // group.chunk * group.chunk, length - group.window + 1)",
        "the rows that a chunk needs begin where the chunk ends, so that none is needed",
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
        "open-extent-while-nobody-holds-it",
        "sound",
        "gemma-3-27b",
        _check("sealed"),
        "self.sealed or self.pins == 0",
        "an extent that its owner may still write is handed on while nobody holds it",
    ),
    Mutant(
        "entry-cut-in-two",
        "sound",
        "deepseek-v4-flash",
        ("objects", "compressed_global", "domain"),
        ["self.start % group.ratio == 0"],
        "entries may end inside of one, where the next piece would begin",
    ),
    Mutant(
        "cut-back-in-name-alone",
        "sound",
        "qwen3-next-80b-a3b",
        ("transitions", "rollback", "takes"),
        [],
        "a segment that was cut back still claims the rows behind the cut",
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
        "approximate-rows-are-refused",
        "complete",
        "qwen3-next-80b-a3b",
        _check("exact_enough"),
        "self.exactness == exact",
        "approximate rows are refused to whoever allows them",
    ),
    Mutant(
        "moved-rows-count-as-somebody-elses",
        "complete",
        "qwen3-next-80b-a3b",
        ("transitions", "defragment", "sets", "written_generation"),
        None,
        "rows that were moved together are never good again",
    ),
    Mutant(
        "spilled-from-disk-to-disk",
        "complete",
        "gemma-3-27b",
        ("transitions", "spill", "when"),
        None,
        "what lies on disk already is spilled there again",
    ),
    Mutant(
        "warm-up-for-no-missing-rows",
        "complete",
        "gemma-3-27b",
        ("objects", "uncompressed_tail", "recovery", "warm_up", "mends"),
        ["whole_block", "sequence_committed", "window_wide_enough", "same_boundary"],
        "a warm-up is not wanted where rows of the window are missing",
    ),
    Mutant(
        "nobody-is-warmed-up",
        "complete",
        "gemma-3-27b",
        ("objects", "uncompressed_tail", "recovery", "warm_up", "applies"),
        "not group.warmable",
        "windows whose layers can be warmed up have no option that does, unless the result may be approximate",
    ),
    Mutant(
        "open-extents-are-copied-first",
        "complete",
        "gemma-3-27b",
        ("objects", "full_kv", "recovery", "fill_young_end", "mends"),
        ["covers_prefix"],
        "what is still open is copied first and filled in a second step",
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
        "warm-up-that-cuts-a-picture",
        "repair_sound",
        "gemma-4-12b",
        ("objects", "uncompressed_tail", "recovery", "warm_up", "when"),
        "group.receptive_field < length and not request.allows_approximate",
        "a warm-up that may end inside of a picture calls itself exact",
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
        "rebuilt-state-counts-double",
        "repair_sound",
        "deepseek-v4-flash",
        ("objects", "compressor_state", "recovery", "rebuild_state", "sets", "bytes"),
        "2 * group.state_bytes",
        "a rebuilt state claims twice the bytes that it has",
    ),
    Mutant(
        "approximate-conversion-calls-itself-exact",
        "repair_sound",
        "qwen3-next-80b-a3b",
        ("every_object", "recovery", "requantize", "sets", "exactness"),
        "self.exactness",
        "rows converted to another number format count as exact",
    ),
    Mutant(
        "deciding-again-resets-the-attempts",
        "terminates",
        "qwen3-next-80b-a3b",
        ("recovering", "steps", "interfered", "sets", "attempts"),
        3,
        "whoever is interfered with has all attempts again",
    ),
    Mutant(
        "failed-repair-bars-nothing",
        "terminates",
        "gemma-3-27b",
        ("recovering", "steps", "repair_failed", "bars"),
        False,
        "a repair that failed may be chosen again for the same segment",
    ),
    Mutant(
        "interference-without-an-answer",
        "terminates",
        "qwen3-next-80b-a3b",
        ("recovering", "steps", "refused", "on"),
        ["done", "failed", "source_lost", "transfer_failed", "ready", "nothing"],
        "with no attempts left and nothing to compute from, no step answers that an epoch has moved",
    ),
    Mutant(
        "gives-up-at-the-first-interference",
        "terminates",
        "gemma-3-27b",
        ("recovering", "steps", "interfered", "when"),
        "attempts > 3",
        "whoever is interfered with once gives up, though attempts are left",
    ),
    Mutant(
        "counts-what-failed-before",
        "terminates",
        "gemma-3-27b",
        ("recovering", "steps", "interfered", "takes"),
        ["levels"],
        "a new decision does not count anew what fails",
    ),
    Mutant(
        "order-reversed",
        "cheapest_first",
        "qwen3-next-80b-a3b",
        ("choosing", "order"),
        ["option_id", "fewer_steps", "lower_level", "longer_length", "price"],
        "plans are told apart by their ids first and by their price last",
    ),
    Mutant(
        "a-repair-that-earns",
        "cheapest_first",
        "deepseek-v3.2",
        ("every_object", "recovery", "verify", "cost"),
        "self.bytes * runtime.device_us_per_byte - 2 * runtime.launch_us",
        "measuring a small block again has a price below 0",
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
        _check("pool_current"),
        "self.pool_epoch <= runtime.pool_epoch",
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
        "unpin-before-the-fence",
        "check_to_use",
        "gemma-3-27b",
        ("leasing", "release"),
        _unpin_first,
        "pins are given back before the device has read",
    ),
    Mutant(
        "nothing-is-pinned",
        "check_to_use",
        "gemma-3-27b",
        ("leasing", "take", "pin"),
        None,
        "a lease notes what it holds and pins nothing",
    ),
    Mutant(
        "pins-never-given-back",
        "check_to_use",
        "qwen3-next-80b-a3b",
        ("leasing", "release", "unpin"),
        None,
        "a release leaves the pins where they are",
    ),
    Mutant(
        "epochs-not-compared",
        "check_to_use",
        "qwen3-next-80b-a3b",
        ("leasing", "confirm", "same_epochs"),
        None,
        "a confirmation no longer compares epochs",
    ),
    Mutant(
        "forms-not-compared",
        "check_to_use",
        "qwen3-next-80b-a3b",
        ("leasing", "confirm", "same_forms"),
        None,
        "a confirmation no longer compares forms",
    ),
    Mutant(
        "mapping-not-compared",
        "check_to_use",
        "deepseek-v4-flash",
        ("leasing", "confirm", "same_mapping"),
        None,
        "a confirmation no longer compares the generation of the mapping",
    ),
    Mutant(
        "evicted-while-it-is-read",
        "check_to_use",
        "gemma-3-27b",
        ("transitions", "evict", "pins"),
        "any",
        "a segment is given up whoever holds it",
    ),
    Mutant(
        "moved-while-it-is-read",
        "check_to_use",
        "qwen3-next-80b-a3b",
        ("transitions", "defragment", "pins"),
        "any",
        "rows are moved whoever reads them",
    ),
    Mutant(
        "demoted-while-it-is-held",
        "check_to_use",
        "gemma-3-27b",
        ("transitions", "demote_begin", "pins"),
        "any",
        "a copy to slower storage starts whoever holds the segment",
    ),
    Mutant(
        "spilled-while-it-is-a-source",
        "check_to_use",
        "qwen3-next-80b-a3b",
        ("transitions", "spill", "pins"),
        "any",
        "the host's copy is given up while it is copied to the device",
    ),
    Mutant(
        "evicted-at-the-same-epoch",
        "check_to_use",
        "deepseek-v4-flash",
        ("transitions", "evict", "keeps_prefix"),
        True,
        "the epoch does not grow when a block is freed",
    ),
    Mutant(
        "rolled-at-the-same-epoch",
        "check_to_use",
        "gemma-3-27b",
        ("transitions", "roll_window", "keeps_prefix"),
        True,
        "the epoch does not grow when the oldest rows of a ring are overwritten",
    ),
    Mutant(
        "epoch-begins-anew",
        "check_to_use",
        "qwen3-next-80b-a3b",
        ("transitions", "allocate", "sets", "epoch"),
        0,
        "a slot that is taken again counts its epochs from 0",
    ),
    Mutant(
        "offset-not-asked",
        "alignment",
        "gemma-3-27b",
        _check("base_aligned"),
        "self.address % group.alignment == 0",
        "base_aligned asks for the address of the block and not of its first row",
    ),
    Mutant(
        "copy-behind-the-same-offset",
        "alignment",
        "qwen3-next-80b-a3b",
        ("every_object", "effects", "private_copy", "sets", "offset"),
        "self.offset",
        "a private copy puts its rows as far behind the block's address as they were",
    ),
    Mutant(
        "checksum-from-any-byte",
        "alignment",
        "qwen3-next-80b-a3b",
        ("every_object", "recovery", "verify", "when"),
        "self.form == home and known(self.recorded) and not known(self.measured)",
        "verify no longer asks for rows that its kernel can read",
    ),
    Mutant(
        "disk-key-without-salt",
        "identity_monotone",
        "gemma-3-27b",
        ("keys", "disk", "fields", "salt"),
        None,
        "keys on disk no longer carry the salt",
    ),
    Mutant(
        "rollback-keeps-its-key",
        "identity_monotone",
        "qwen3-next-80b-a3b",
        ("transitions", "rollback", "key"),
        None,
        "a segment that was cut back stays under the key of what it held before",
    ),
    Mutant(
        "evicted-keeps-its-key",
        "identity_monotone",
        "deepseek-v4-flash",
        ("transitions", "evict", "key"),
        None,
        "a segment whose block was freed is still found by its key",
    ),
    Mutant(
        "rebuilt-rows-are-published",
        "identity_monotone",
        "deepseek-v4-flash",
        ("every_object", "effects", "fresh_block", "sets", "published"),
        None,
        "what a repair writes anew stays under the key of what was found",
    ),
    Mutant(
        "private-copy-is-published",
        "identity_monotone",
        "gemma-3-27b",
        ("every_object", "effects", "private_copy", "sets", "published"),
        "self.published",
        "a private copy counts as filed where what was copied is",
    ),
    Mutant(
        "no-way-out-of-quarantine",
        "graph_covers_machine",
        "qwen3-next-80b-a3b",
        ("transitions", "discard", "when"),
        "self.pins < 0",
        "the only exit from quarantine can never be taken",
    ),
    Mutant(
        "loaded-part-reserved-alone",
        "admission_bounded",
        "gemma-3-27b",
        ("pools", "device_blocks", "demand"),
        "plan.loaded_blocks",
        "a request is promised the blocks of its loaded prefix, not those of the rest of its prompt",
    ),
    Mutant(
        "cached-prefix-counts-as-used",
        "admission_bounded",
        "gemma-3-27b",
        ("pools", "device_blocks", "demand"),
        "plan.blocks + request.answer_blocks - plan.held_blocks",
        "blocks of a prefix that only rests in the cache are not promised",
    ),
    Mutant(
        "everything-is-refused",
        "admission_bounded",
        "gemma-3-27b",
        ("admission", "can_ever_fit", "require"),
        "demand.device_blocks < 0",
        "can_ever_fit asks for less than nothing",
    ),
    Mutant(
        "busy-means-refused",
        "admission_bounded",
        "gemma-3-27b",
        ("admission", "fits_beside_promises", "otherwise"),
        "refuse",
        "who would fit later is turned away at once",
    ),
    Mutant(
        "too-large-waits",
        "admission_bounded",
        "gemma-3-27b",
        ("admission", "can_ever_fit", "otherwise"),
        "defer",
        "what is larger than the whole pool waits for it",
    ),
)
