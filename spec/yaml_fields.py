"""Typed access to a YAML tree: single values, the keys of a mapping, and whole pydantic models."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from itertools import islice
from typing import Any, TypeVar, get_args

import pydantic

from hitproof.spec.errors import HitproofError, Position, SchemaError
from hitproof.spec.yaml_tree import Mapping, Node, Scalar, Sequence, describe, plain

__all__ = [
    "Fields",
    "expect_list",
    "expect_mapping",
    "expect_text",
    "expect_text_list",
    "suggest",
    "validate",
]

_Model = TypeVar("_Model", bound=pydantic.BaseModel)


def suggest(name: str, known: Iterable[str]) -> str | None:
    """A hint that names the closest known name, or lists the known ones; None where there are none."""
    names = sorted(set(islice(known, 1000)))
    close = get_close_matches(name, names, n=1) if len(name) <= 100 else []
    if close:
        return f"did you mean `{close[0]}`?"
    return f"known: {', '.join(names)}" if names else None


def _wrong(node: Node, what: str, rule: str | None, expected: str, hint: str | None = None) -> SchemaError:
    message = f"{what} has the wrong shape"
    return SchemaError(message, where=node.where, rule=rule, got=describe(node), expected=expected, hint=hint)


def expect_text(node: Node, what: str, rule: str | None = None) -> str:
    """The text of a scalar that is text and not empty; raises SchemaError otherwise."""
    if isinstance(node, Scalar) and isinstance(node.value, str) and node.value.strip():
        return node.value
    hint = "put it in quotes" if isinstance(node, Scalar) and not isinstance(node.value, str | None) else None
    raise _wrong(node, what, rule, "text", hint)


def expect_list(node: Node, what: str, rule: str | None = None) -> tuple[Node, ...]:
    """The items of a list; raises SchemaError otherwise."""
    if isinstance(node, Sequence):
        return node.items
    raise _wrong(node, what, rule, "a list")


def expect_text_list(node: Node, what: str, rule: str | None = None) -> tuple[str, ...]:
    """The items of a list of texts; raises SchemaError otherwise."""
    return tuple(expect_text(item, f"an item of {what}", rule) for item in expect_list(node, what, rule))


def expect_mapping(node: Node, what: str, rule: str | None = None) -> Mapping:
    """The node as a mapping; raises SchemaError otherwise."""
    if isinstance(node, Mapping):
        return node
    raise _wrong(node, what, rule, "a mapping")


class Fields:
    """Typed access to the keys of one mapping; what was never asked for is an unknown key.

    `rule` may be set later, once the rule's id has been read.

    Args:
        mapping: The node; raises SchemaError unless it is a mapping.
        what: What the mapping describes, for messages (`a check`).
        rule: The id of the rule concerned.
    """

    def __init__(self, mapping: Node, what: str, rule: str | None = None) -> None:
        self.where = mapping.where
        self.what = what
        self.rule = rule
        self.entries = expect_mapping(mapping, what, rule).entries
        self._asked: set[str] = set()

    def required(self, key: str) -> Node:
        """The value under `key`; raises SchemaError where there is none."""
        node = self.optional(key)
        if node is None:
            close = get_close_matches(key, [name for name in self.entries if len(name) <= 100], n=1)
            hint = f"is `{close[0]}` meant to be it?" if close else None
            message = f"{self.what} lacks the key `{key}`"
            raise SchemaError(message, where=self.where, rule=self.rule, expected=key, hint=hint)
        return node

    def optional(self, key: str) -> Node | None:
        """The value under `key`, or None; an empty value is a node of its own."""
        self._asked.add(key)
        entry = self.entries.get(key)
        return None if entry is None else entry[1]

    def position(self, key: str) -> Position:
        """The place of the key itself, or of the mapping where the key is absent."""
        entry = self.entries.get(key)
        return self.where if entry is None else entry[0]

    def finish(self) -> None:
        """Raise SchemaError for the first key that nobody asked for."""
        for key, (where, _) in self.entries.items():
            if key not in self._asked:
                message = f"{self.what} has an unknown key `{key}`"
                raise SchemaError(message, where=where, rule=self.rule, got=key, hint=suggest(key, self._asked))


def validate(model: type[_Model], node: Node, rule: str | None = None) -> _Model:
    """Make a pydantic model from a tree, strictly: the text `yes` is no Boolean and `"5"` no number.

    Raises:
        SchemaError: The tree does not fit; an unknown key is told first, as it explains a missing one.
        HitproofError: An error of ours that a validator raised keeps its class and gains the place.
    """
    try:
        return model.model_validate_json(json.dumps(plain(node)), strict=True)
    except pydantic.ValidationError as failed:
        errors = failed.errors(include_url=False)
        unknown = [error for error in errors if error["type"] == "extra_forbidden"]
        raise _explain(model, node, _most_telling(node, unknown or errors), rule) from failed


def _most_telling(node: Node, errors: list[Any]) -> Any:
    """The first error; where a value fits none of several shapes, that of the shape which it fits best."""
    first = errors[0]
    *base, last = first["loc"] or ("",)
    _, found = _locate(node, tuple(base))
    named = isinstance(found, Mapping) and str(last) in found.entries
    if not base or named or isinstance(last, int) or first["type"] in ("missing", "extra_forbidden"):
        return first
    rivals = [error for error in errors if list(error["loc"][: len(base)]) == base]
    return max(rivals, key=lambda error: (isinstance(_cause(error), HitproofError), len(error["loc"])))


def _cause(error: Any) -> object:
    return error.get("ctx", {}).get("error")


def _explain(model: type[pydantic.BaseModel], node: Node, error: Any, rule: str | None) -> HitproofError:
    loc: tuple[str | int, ...] = error["loc"]
    where, found = _locate(node, loc)
    kind = error["type"]
    path = _path(node, loc) + (f".{loc[-1]}" if kind == "missing" else "")
    path = path.lstrip(".")
    if kind == "extra_forbidden":
        key, hint = str(loc[-1]), suggest(str(loc[-1]), _known_keys(model, loc[:-1]))
        return SchemaError(f"unknown key `{path}`", where=where, rule=rule, got=key, hint=hint)
    if kind == "missing":
        return SchemaError(f"the key `{path}` is missing", where=found.where, rule=rule, expected=str(loc[-1]))
    cause = _cause(error)
    subject = f"`{path}`: " if path else ""
    if isinstance(cause, HitproofError):
        place = cause.where if cause.where.line else found.where
        given = {"got": cause.got, "expected": cause.expected, "hint": cause.hint}
        return type(cause)(cause.message, where=place, rule=cause.rule or rule, **given)
    if cause is not None:
        return SchemaError(f"{subject}{cause}", where=found.where, rule=rule, got=describe(found))
    message = f"{subject}the value does not fit"
    return SchemaError(message, where=found.where, rule=rule, got=describe(found), expected=error["msg"])


def _locate(node: Node, loc: tuple[str | int, ...]) -> tuple[Position, Node]:
    """The place of the last key on the way, and the deepest node; names of union members lead nowhere."""
    where = node.where
    for part in loc:
        if isinstance(node, Mapping) and str(part) in node.entries:
            where, node = node.entries[str(part)]
        elif isinstance(node, Sequence) and isinstance(part, int) and part < len(node.items):
            node = node.items[part]
            where = node.where
    return where, node


def _path(node: Node, loc: tuple[str | int, ...]) -> str:
    """The keys and indices on the way, as far as they exist; names of union members are left out."""
    path = ""
    for part in loc:
        if isinstance(node, Mapping) and str(part) in node.entries:
            path, node = f"{path}.{part}", node.entries[str(part)][1]
        elif isinstance(node, Sequence) and isinstance(part, int) and part < len(node.items):
            path, node = f"{path}[{part}]", node.items[part]
    return path


def _known_keys(model: type[pydantic.BaseModel], loc: tuple[str | int, ...]) -> set[str]:
    models = {model}
    for part in loc:
        fields = [m.model_fields[part] for m in models if isinstance(part, str) and part in m.model_fields]
        if fields:
            models = {nested for field in fields for nested in _models_in(field.annotation)}
    return {field.alias or name for m in models for name, field in m.model_fields.items()}


def _models_in(annotation: Any) -> Iterator[type[pydantic.BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, pydantic.BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)
