"""What the store answers: receipts, what was found, and refusals with their reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from hitproof.spec.facts import Value

__all__ = [
    "Deleted",
    "Entry",
    "Fault",
    "Found",
    "NotStored",
    "Opened",
    "Receipt",
    "Refusal",
    "Refused",
    "Sizes",
    "Unusable",
]

Fault = Literal["disk_full", "read_only", "not_permitted", "too_large", "pinned", "io_error"]
"""Why nothing was stored: the disk's reasons, or the store's own capacity and pins."""

Refusal = Literal[
    "missing",
    "pinned",
    "torn",
    "wrong_fingerprint",
    "other_schema",
    "other_rulebook",
    "other_meaning",
    "unauthenticated",
    "unreadable",
]
"""Why a segment is not served.

`torn`: bytes are missing or the label cannot be read. `wrong_fingerprint`: label or payload are not what was sealed, or
belong to another key. `other_schema`: a layout of files that this version does not serve. `other_rulebook`: no
migration is declared from the rulebook, or the meaning of the language has changed. `other_meaning`: names or types of
facts differ. `unauthenticated`: a key is set, and the file has no authentication code of it. `unreadable`: the disk
failed.
"""


class Unusable(Exception):
    """Inside the store: a file cannot be served; its reason becomes a `Refused`."""

    def __init__(self, reason: Refusal, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason: Refusal = reason
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Receipt:
    """The segment is on the disk: file, folder and catalogue were synchronised before this was made.

    Args:
        key: The segment's key.
        name: Its file, below the folder of segments.
        bytes: The file's size.
        evicted: Keys of segments that had to leave for it, the longest unused first.
    """

    key: str
    name: str
    bytes: int
    evicted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NotStored:
    """Nothing was stored; what was there under the key before is still there.

    Args:
        key: The segment's key.
        reason: Why.
        detail: The same in words.
        evicted: Keys of segments that had left for it before the fault.
    """

    key: str
    reason: Fault
    detail: str
    evicted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """A segment whose every byte was verified just now.

    Args:
        key: The segment's key.
        group: Its group.
        facts: All facts of the group's object, as they were stored; None is unknown.
        payload: Its bytes; a part of the caller's buffer where one was given.
    """

    key: str
    group: str
    facts: Mapping[str, Value]
    payload: memoryview


@dataclass(frozen=True, slots=True)
class Refused:
    """The store does not do what was asked; `reason` says why, `detail` says it in words."""

    key: str
    reason: Refusal
    detail: str


@dataclass(frozen=True, slots=True)
class Deleted:
    """The segment is gone, also after a restart."""

    key: str


@dataclass(frozen=True, slots=True)
class Entry:
    """What the catalogue says of a segment; a promise only once `get` has found it.

    Args:
        key: The segment's key.
        group: Its group.
        name: Its file, below the folder of segments.
        bytes: The file's size.
        sequence: Grows with every file that is written; 0 is a file of schema 1.
    """

    key: str
    group: str
    name: str
    bytes: int
    sequence: int


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is held: segments, their bytes, the capacity (None: no limit), pinned ones, files in quarantine."""

    segments: int
    bytes: int
    capacity: int | None
    pinned: int
    quarantined: int


@dataclass(frozen=True, slots=True)
class Opened:
    """What opening a store found and mended.

    Args:
        adopted: Keys of whole files that the catalogue did not know.
        missing: Keys that the catalogue knew and no file has.
        upgraded: Keys of files that were rewritten in the current schema.
        swept: Names of temporary and superseded files that were removed.
        quarantined: Names of files that were set aside, each with the reason.
        evicted: Keys that had to leave because the capacity is smaller than before.
        rebuilt: The catalogue was absent or damaged, and was made anew of the files.
    """

    adopted: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    upgraded: tuple[str, ...] = ()
    swept: tuple[str, ...] = ()
    quarantined: tuple[tuple[str, str], ...] = ()
    evicted: tuple[str, ...] = ()
    rebuilt: bool = False
