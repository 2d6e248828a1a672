"""Manifests: what of an entry lies in slower storage, and whether all of it is still there."""

from __future__ import annotations

import hashlib

from hitproof.engine.cache.slot import Entry

__all__ = ["MANIFEST", "members_digest", "still_below"]

MANIFEST = "demoted_prefix"
"""The object that manifests are of."""


def still_below(entry: Entry) -> list[str]:
    """Members that the manifest tells of and that are found, each as text.

    A member counts as found while it lies in slower storage or is on its way from there, and once it has come back. One
    that was given up, or set apart, is not.
    """
    found = []
    for slot, incarnation in entry.below:
        if slot.incarnation == incarnation and slot.facts.form not in ("discarded", "quarantined"):
            facts = slot.facts
            found.append(f"{slot.group.id} {facts.start} {facts.end} {facts.recorded}")
    return sorted(found)


def members_digest(entry: Entry) -> str:
    """Digest over the members' recorded fingerprints, as found now."""
    return hashlib.blake2b("\n".join(still_below(entry)).encode(), digest_size=16).hexdigest()
