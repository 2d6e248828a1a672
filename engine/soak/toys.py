"""Profiles made small: real groups, windows and ratios on one layer and rows of some bytes, so that soaks are fast."""

from __future__ import annotations

from hitproof.spec.profile import Constant, Group, Profile
from hitproof.spec.rows import page_rows

__all__ = ["toy"]

WINDOW = 128
"""Longest window of a small profile, in tokens."""


def toy(profile: Profile) -> Profile:
    """The same groups with one layer each, short rows and short windows.

    What the rules read stays as it is: objects, peers, ratios, overlaps, rows of a state, alignments, which groups are
    scaled or have V. A page has as many rows as before, or more where its stride must be rounded up.
    """
    groups = tuple(_group(profile, group) for group in profile.groups)
    constants = dict(profile.constants)
    windows = [int(group.constants["window"]) for group in groups if "window" in group.constants]
    if constants.get("receptive_field"):
        constants["receptive_field"] = max(windows, default=1) - 1
    return profile.model_copy(update={"groups": groups, "constants": constants})


def _group(profile: Profile, group: Group) -> Group:
    old = profile.constants_of(group)
    new: dict[str, Constant] = dict(group.constants)
    if "window" in new:
        new["window"] = min(int(new["window"]), WINDOW)
    whole = int(old.get("row_bytes", old.get("state_bytes", 0)))
    if whole:
        alignment, layers = int(old["alignment"]), len(group.layers)
        # A word is four bytes; nine of them fill pages of 576 bytes without a rest, eight those of powers of two.
        row = 36 if alignment % 9 == 0 else 32
        rows = page_rows(whole // layers, int(old["stride"]), alignment)
        new["stride"] = -(-rows * row // alignment) * alignment
        if "state_bytes" in new:
            new["state_bytes"] = row * (int(old["state_bytes"]) // whole)
        if "row_bytes" in new:
            new["row_bytes"] = row
    return group.model_copy(update={"layers": group.layers[:1], "consumers": (), "constants": new})
