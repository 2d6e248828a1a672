"""Rulebooks with one protection switched off, for a soak to show that without it wrong bytes are used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from hitproof.rules.edit import TreePath, edit
from hitproof.rules.resolve import resolve
from hitproof.rules.source import RuleSource, read_source
from hitproof.spec.errors import UsageError
from hitproof.spec.rulebook import Rulebook
from hitproof.spec.yaml_tree import plain

__all__ = ["PROTECTIONS", "without"]

PROTECTIONS: dict[str, str] = {
    "identity": "every check of the layer holds, whoever asks",
    "block_integrity": "every check of the layer holds, whatever the bytes are",
    "kernel_interface": "every check of the layer holds, whichever kernel reads",
    "group_intersection": "every check of the layer holds, whatever the other groups have",
    "hardware_alignment": "every check of the layer holds, wherever the bytes lie",
    "lease": "nothing is pinned from check to use, and nothing compared before it",
    "postcondition": "what repairs establish is taken as promised, and not as measured",
}
"""What can be switched off, with what the edited rulebook then does."""

_HOLDS = "0 <= length"


def without(protection: str, rulebook: str = "mixed_attention") -> Rulebook:
    """A rulebook without one protection.

    Args:
        protection: One of `PROTECTIONS`.
        rulebook: An embedded rulebook's name, or a folder.

    Raises:
        UsageError: There is no such protection.
        HitproofError: The rulebook cannot be read.
    """
    if protection not in PROTECTIONS:
        raise UsageError("there is no such protection", got=protection, expected=", ".join(PROTECTIONS))
    source = read_source(rulebook)
    if protection == "postcondition":
        return resolve(_promised(source))
    edits = _no_lease(source) if protection == "lease" else _checks(source, protection)
    for path, value in list(edits):
        source = source.edited(path, value)[0]
    return resolve(source)


def _checks(source: RuleSource, layer: str) -> Iterator[tuple[TreePath, object]]:
    for tree in source.files.values():
        part = plain(tree)
        owners: dict[TreePath, Any] = {("every_object",): part.get("every_object") or {}}
        owners |= {("objects", name): rules for name, rules in (part.get("objects") or {}).items()}
        for owner, rules in owners.items():
            for check in rules.get("checks") or ():
                if check["layer"] == layer:
                    yield (*owner, "checks", check["id"], "require"), _HOLDS


def _promised(source: RuleSource) -> RuleSource:
    """Repairs that keep content are told that its fingerprint and place need no measuring."""
    repairs = dict(source.repairs)
    for name, tree in source.repairs.items():
        established = plain(tree).get("establishes", {})
        if "recorded" not in established:
            for fact in (fact for fact, how in established.items() if how == "measured"):
                repairs[name] = edit(repairs[name], ("establishes", fact), "assigned")
    return replace(source, repairs=repairs)


def _no_lease(source: RuleSource) -> Iterator[tuple[TreePath, object]]:
    for tree in source.files.values():
        leasing = plain(tree).get("leasing")
        if leasing is not None:
            yield ("leasing", "take"), [step for step in leasing["take"] if step["does"] != "pin"]
            yield ("leasing", "confirm"), []
