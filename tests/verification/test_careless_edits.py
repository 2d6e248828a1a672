"""Edits that a careless engineer might make: what breaks a claim is refuted, and what does not is still proved."""

from __future__ import annotations

from typing import Any

import pytest

from hitproof.engine.scenario import EngineReplayer
from hitproof.rules.resolve import resolve
from hitproof.rules.source import RuleSource
from hitproof.spec.profile import Profile
from hitproof.verification import Mutant, run_mutant

GEMMA, QWEN, FLASH = "gemma-3-27b", "qwen3-next-80b-a3b", "deepseek-v4-flash"
EFFECTS, OPTIONS = ("every_object", "effects"), ("every_object", "recovery")
STEPS = ("recovering", "steps")
FITS = "runtime.used_blocks + runtime.reserved_blocks + demand.device_blocks"

BROKEN: dict[str, tuple[str, str, tuple[str, ...], Any]] = {
    "only the offset is aligned": (
        "alignment",
        GEMMA,
        ("every_object", "checks", "base_aligned", "require"),
        "self.offset % group.alignment == 0",
    ),
    "an unknown offset passes": (
        "alignment",
        GEMMA,
        ("every_object", "checks", "base_aligned", "require"),
        "not known(self.offset) or (self.address + self.offset) % group.alignment == 0",
    ),
    "a copy keeps its row pitch": ("alignment", QWEN, (*EFFECTS, "private_copy", "sets", "stride"), "self.stride"),
    "a copy goes anywhere": (
        "alignment",
        QWEN,
        (*EFFECTS, "private_copy", "chooses"),
        {"address": "self.address >= 0"},
    ),
    "a fresh block suits the repair alone": (
        "alignment",
        FLASH,
        (*EFFECTS, "fresh_block", "chooses"),
        {"address": "self.address % 16 == 0"},
    ),
    "promotion reports no offset": (
        "sound",
        QWEN,
        ("transitions", "promote_end", "takes"),
        ["address", "stride", "measured"],
    ),
    "defragmentation keeps the offset": (
        "sound",
        QWEN,
        ("transitions", "defragment", "sets", "offset"),
        "self.offset",
    ),
    "a measurement tells what was recorded": (
        "sound",
        QWEN,
        ("transitions", "measure", "takes"),
        ["measured", "recorded"],
    ),
    "keys on disk take the adapter for the weights": (
        "identity_monotone",
        GEMMA,
        ("keys", "disk", "fields", "weights"),
        "request.adapter",
    ),
    "a salt counts behind pictures only": (
        "identity_monotone",
        GEMMA,
        ("keys", "disk", "begins"),
        {"media": "media_from", "salt": "media_from"},
    ),
    "what is set apart is still found": ("identity_monotone", GEMMA, ("transitions", "quarantine", "key"), None),
    "rows are found before they are committed": (
        "identity_monotone",
        QWEN,
        ("transitions", "append", "key"),
        "publish",
    ),
    "a copy stays under the key": ("identity_monotone", QWEN, (*EFFECTS, "private_copy", "sets", "published"), True),
    "promises of others are not counted": (
        "admission_bounded",
        GEMMA,
        ("admission", "fits_beside_promises", "require"),
        "runtime.used_blocks + demand.device_blocks <= runtime.capacity_blocks",
    ),
    "bytes from disk need no buffer": (
        "admission_bounded",
        GEMMA,
        ("pools", "staging", "demand"),
        "plan.host_bytes",
    ),
    "room is left that nobody gets": (
        "admission_bounded",
        GEMMA,
        ("admission", "fits_beside_promises", "require"),
        f"({FITS}) * 100 <= runtime.capacity_blocks * 95",
    ),
    "a full pool clamps": ("admission_bounded", GEMMA, ("admission", "fits_beside_promises", "otherwise"), "clamp"),
    "a copy may fail for ever": ("terminates", GEMMA, (*STEPS, "transfer_failed", "when"), None),
    "what is mended is decided anew": ("terminates", GEMMA, (*STEPS, "mended", "then"), "decide"),
    "entries claim twice their bytes": (
        "repair_sound",
        FLASH,
        ("objects", "compressed_global", "recovery", "rebuild_entries", "sets", "bytes"),
        "(needs.to - needs.first) // group.row_tokens * group.row_bytes * 2",
    ),
    "a warm-up claims one row more": (
        "repair_sound",
        GEMMA,
        ("objects", "uncompressed_tail", "recovery", "warm_up", "sets", "bytes"),
        "(needs.to - needs.first) // group.row_tokens * group.row_bytes + group.row_bytes",
    ),
    "shared rows are moved": ("separation", QWEN, ("transitions", "defragment", "owner"), "any"),
    "shared rings are opened": ("separation", GEMMA, ("transitions", "unseal", "owner"), "any"),
}
HARMLESS: dict[str, tuple[str, str, tuple[str, ...], Any]] = {
    "an open ring was under no key before it rolled": (
        "identity_monotone",
        GEMMA,
        ("transitions", "roll_window", "key"),
        None,
    ),
    "a pending segment was under no key before it was aborted": (
        "identity_monotone",
        GEMMA,
        ("transitions", "abort", "key"),
        None,
    ),
    "who clamps lets the request be computed": (
        "admission_bounded",
        GEMMA,
        ("admission", "within_the_budget", "otherwise"),
        "refuse",
    ),
    "fewer attempts end too": ("terminates", GEMMA, ("recovering", "counters", "attempts", "start"), 0),
}
Edit = tuple[str, str, tuple[str, ...], Any]


def mutant(edit: Edit) -> Mutant:
    """The edit as a mutant."""
    claim, profile, path, value = edit
    return Mutant("careless", claim, profile, path, value, "a careless edit")


@pytest.mark.parametrize("edit", BROKEN.values(), ids=BROKEN)
def test_a_broken_rulebook_is_refuted_by_what_only_it_does(
    edit: Edit, source: RuleSource, profiles: dict[str, Profile], replayer: EngineReplayer
) -> None:
    """The engine replays the story under the edited rules, and under the shipped ones it ends otherwise."""
    result = run_mutant(mutant(edit), source, profiles[edit[1]], replayer).result
    assert "refuted" == result.verdict, result.detail
    assert result.counterexample is not None and result.counterexample.scenario is not None
    assert not replayer.replay(resolve(source), result.counterexample.scenario).passed


@pytest.mark.parametrize("edit", HARMLESS.values(), ids=HARMLESS)
def test_what_keeps_the_claim_is_still_proved(
    edit: Edit, source: RuleSource, profiles: dict[str, Profile], replayer: EngineReplayer
) -> None:
    """A claim that refuted these would ask for more than its sentence says."""
    result = run_mutant(mutant(edit), source, profiles[edit[1]], replayer).result
    assert "proved" == result.verdict, result.detail
