"""What a segment's file says of itself, as canonical JSON: its key, its group, and its facts with their types."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hitproof.engine.store.answers import Unusable
from hitproof.spec.errors import InputTooLargeError, UsageError

__all__ = ["LARGEST_KEY", "LARGEST_LABEL", "Label", "Stored", "check_name"]

LARGEST_LABEL = 1 << 20
"""Bytes; nothing longer is written, and nothing longer is parsed."""

LARGEST_KEY = 1024
"""Characters of a key or of a group's id."""


@dataclass(frozen=True, slots=True)
class Stored:
    """One fact in a file: its type as text, and its value; sets are sorted lists, None is unknown."""

    type: str
    value: bool | int | float | str | list[int] | None


@dataclass(frozen=True, slots=True)
class Label:
    """What a file says of its segment.

    Args:
        key: The key under which it was put.
        group: Its group.
        object: The group's object.
        rulebook: Digest of the rulebook whose vocabulary the facts are of.
        semantics: Version of the rule language's meaning.
        sequence: Grows with every file that the store writes; the larger one of two files of a key counts.
        facts: Every fact of the object at that time.
    """

    key: str
    group: str
    object: str
    rulebook: str
    semantics: int
    sequence: int
    facts: Mapping[str, Stored]

    def encoded(self) -> bytes:
        """Canonical JSON: sorted keys, no spaces, ASCII alone.

        Raises:
            InputTooLargeError: It is longer than the format allows.
            UsageError: A number has more digits than can be read back.
        """
        facts = {name: [one.type, one.value] for name, one in self.facts.items()}
        try:
            text = _canonical({**_plain(self), "facts": facts})
        except ValueError as error:
            raise UsageError("a fact cannot be stored", got=error) from error
        if len(text) > LARGEST_LABEL:
            raise InputTooLargeError("the facts are too long", got=len(text), expected=f"{LARGEST_LABEL} bytes")
        return text

    @classmethod
    def decoded(cls, text: bytes, schema: int) -> Label:
        """Reads a label; files of schema 1 carry no sequence, theirs is 0.

        Raises:
            Unusable: It is no canonical label of that schema.
        """
        try:
            found = json.loads(text)
            if type(found) is not dict or _canonical(found) != text:
                raise ValueError("not canonical")
            if schema == 1 and found.setdefault("sequence", 0) != 0:
                raise ValueError("a sequence in schema 1")
            label = cls(**{**found, "facts": {name: _stored(one) for name, one in found["facts"].items()}})
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise Unusable("torn", f"the label cannot be read: {type(error).__name__}") from error
        if any(type(value) is not _KINDS[name] for name, value in _plain(label).items()):
            raise Unusable("torn", "the label has a value of another type")
        return label


_KINDS = {"key": str, "group": str, "object": str, "rulebook": str, "semantics": int, "sequence": int}


def _plain(label: Label) -> dict[str, Any]:
    return {name: getattr(label, name) for name in _KINDS}


def _canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def _stored(one: object) -> Stored:
    if type(one) is not list or len(one) != 2 or type(one[0]) is not str:
        raise ValueError("not a fact")
    kind, value = one
    if type(value) is list:
        if any(type(item) is not int for item in value) or value != sorted(set(value)):
            raise ValueError("not a set")
    elif value is not None and type(value) not in (bool, int, float, str):
        raise ValueError("not a value")
    return Stored(kind, value)


def check_name(what: str, text: str) -> None:
    """Refuses what can be no key and no group's id.

    Raises:
        UsageError: It is no text, empty, too long, or not valid Unicode.
    """
    if not isinstance(text, str) or not 0 < len(text) <= LARGEST_KEY or not text.isprintable():
        raise UsageError(
            f"the {what} cannot be used",
            got=f"{len(text)} characters" if isinstance(text, str) else type(text).__name__,
            expected=f"1 to {LARGEST_KEY} printable characters",
        )
