"""Digests of rules: equal for rules that mean the same, wherever they stand."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

from hitproof.spec.condition import Literal, Ref
from hitproof.spec.errors import InternalError, Position
from hitproof.spec.facts import FactType
from hitproof.verification.withheld import Withheld

__all__ = ["SILENT", "digest_of", "values_of"]

SILENT = frozenset({"because", "source", "title"})
"""Fields that only tell a reader something; no proof rests on them. Places in files are passed over by their type."""

_PLAIN = frozenset({str, int, float, bool, type(None)})


def values_of(thing: Any) -> dict[str, Any]:
    """The fields of a dataclass."""
    return {field.name: getattr(thing, field.name) for field in fields(thing)}


def digest_of(*things: object) -> str:
    """The digest of rules and plain values.

    Raises:
        InternalError: Rules hold a value of a kind that a digest cannot tell.
    """
    return hashlib.sha256(repr(_canonical(things)).encode()).hexdigest()


def _canonical(value: Any) -> Any:
    """Nested tuples of plain values: equal for rules that mean the same, wherever they stand."""
    kind: type = type(value)
    if kind in _PLAIN:
        return value
    if kind is tuple or kind is list:
        return tuple([_canonical(part) for part in value])
    if kind is Ref:
        return value.path
    if kind is Literal:
        return value.value, kind.__name__, _type_name(value.type)
    if kind is Withheld:
        return "withheld"
    if kind is Position:
        return ""
    if is_dataclass(value):
        return kind.__name__, *[_canonical(getattr(value, name)) for name in _telling(kind)]
    if isinstance(value, Mapping):
        return "mapping", *sorted((str(name), _canonical(part)) for name, part in value.items())
    if isinstance(value, frozenset):
        return "set", *sorted(map(str, value))
    raise InternalError(f"rules hold a value of type {kind.__name__}, which no key can tell")


@cache
def _telling(kind: type) -> tuple[str, ...]:
    """Fields of a class of rules that say what they mean."""
    return tuple(field.name for field in fields(kind) if field.name not in SILENT)


@cache
def _type_name(kind: FactType) -> str:
    return f"{kind.kind} {kind.enum} {kind.unit}"
