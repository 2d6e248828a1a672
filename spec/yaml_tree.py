"""YAML read as a tree in which every key and value knows its place, with everything ambiguous refused."""

from __future__ import annotations

import json
import math
import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar, get_args

import pydantic
import yaml

from hitproof.spec.errors import (
    DuplicateError,
    HitproofError,
    InputTooLargeError,
    MissingFileError,
    Position,
    SchemaError,
    YamlError,
)

__all__ = [
    "Fields",
    "Mapping",
    "Node",
    "Scalar",
    "Sequence",
    "describe",
    "expect_bool",
    "expect_choice",
    "expect_expression",
    "expect_int",
    "expect_list",
    "expect_mapping",
    "expect_number",
    "expect_text",
    "expect_text_list",
    "parse_tree",
    "plain",
    "read_tree",
    "suggest",
    "validate",
]

LIMIT_BYTES = 4 * 1024 * 1024
MAX_DEPTH = 40
MAX_NODES = 200_000
_MAX_NUMBER = 40

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Value = str | int | bool | float | None
_Model = TypeVar("_Model", bound=pydantic.BaseModel)

# The breaks U+0085, U+2028 and U+2029 end a line for YAML 1.1 and not for 1.2: positions would be wrong.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_UNUSABLE = re.compile("[\0\ud800-\udfff]")
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_ENDLESS = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]")
_CONTENT = re.compile(r"[^\r\n]*\r?\n(?: *\r?\n)*( *)")
_CONSTANTS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


@dataclass(frozen=True, slots=True)
class Node:
    """A value of a YAML document and the place where it starts."""

    where: Position


@dataclass(frozen=True, slots=True)
class Scalar(Node):
    """A single value.

    `text` is what the author wrote, after quotes and folding are undone; `quoted` is also true of the block
    styles `|` and `>`. `content` is the place of the text's first character, inside the quotes if any.
    """

    value: _Value
    text: str
    quoted: bool
    content: Position


@dataclass(frozen=True, slots=True)
class Sequence(Node):
    """A list of values."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Mapping(Node):
    """Keys in file order, each with its own place and its value."""

    entries: dict[str, tuple[Position, Node]]


def plain(node: Node) -> Any:
    """The tree as Python dicts, lists and scalars, without places."""
    if isinstance(node, Mapping):
        return {key: plain(value) for key, (_, value) in node.entries.items()}
    if isinstance(node, Sequence):
        return [plain(item) for item in node.items]
    return node.value if isinstance(node, Scalar) else None


def read_tree(
    path: Path, *, limit_bytes: int = LIMIT_BYTES, max_depth: int = MAX_DEPTH, max_nodes: int = MAX_NODES
) -> Node:
    """Read one YAML file; the size is checked before a byte is read.

    Args:
        path: A regular file (links to one are followed).
        limit_bytes: Largest file, in bytes.
        max_depth: Deepest nesting of lists and mappings.
        max_nodes: Most values and keys.

    Raises:
        MissingFileError: There is no such file, or it is a folder, a device or a pipe.
        InputTooLargeError: A cap is passed.
        YamlError, DuplicateError: As `parse_tree`.
    """
    where = Position(str(path))
    # Without O_NONBLOCK, opening a pipe that nobody writes would wait for ever.
    flags = (
        os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
    )
    try:
        with open(os.open(path, flags), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise MissingFileError("this is not a regular file", where=where, expected="a YAML file")
            if status.st_size > limit_bytes:
                raise _too_large(
                    "the file is too large", where, f"{status.st_size} bytes", f"{limit_bytes} bytes"
                )
            data = file.read(limit_bytes + 1)
    except FileNotFoundError as error:
        raise MissingFileError("there is no such file", where=where) from error
    except IsADirectoryError as error:
        raise MissingFileError("this is not a regular file", where=where, expected="a YAML file") from error
    except OSError as error:
        raise MissingFileError("the file cannot be read", where=where, got=error.strerror) from error
    except HitproofError:
        raise
    except ValueError as error:
        raise MissingFileError("the file's name cannot be used", where=where, got=error) from error
    return parse_tree(data, str(path), limit_bytes=limit_bytes, max_depth=max_depth, max_nodes=max_nodes)


def parse_tree(
    text: str | bytes,
    file: str = "<memory>",
    *,
    limit_bytes: int = LIMIT_BYTES,
    max_depth: int = MAX_DEPTH,
    max_nodes: int = MAX_NODES,
) -> Node:
    """Read one YAML document by the core schema of YAML 1.2.

    `no`, `on`, `12:30` and `1_000` are text; `0x1F` and `0o17` are whole numbers; `010`, `.inf` and `.nan`
    are refused. A value is never reached by two ways, so anchors, aliases, tags and merge keys are refused.

    Args:
        text: The document; bytes must be UTF-8, with or without a byte order mark.
        file: The name that errors show.
        limit_bytes: Largest document, in bytes of UTF-8.
        max_depth: Deepest nesting of lists and mappings.
        max_nodes: Most values and keys.

    Raises:
        YamlError: It is no YAML, or uses a feature that is refused, or an unquoted expression was split.
        DuplicateError: A key stands twice in one mapping.
        InputTooLargeError: A cap is passed.
    """
    if len(text) > limit_bytes:
        raise _too_large("the document is too large", Position(file), f"{len(text)}", f"{limit_bytes} bytes")
    source = (_decode(text, file) if isinstance(text, bytes) else text).removeprefix("\ufeff")
    bad = _FORBIDDEN.search(source)
    if bad:
        message = "this character cannot stand in a YAML file"
        where = _place(source[: bad.start()], file)
        raise YamlError(message, where=where, got=f"U+{ord(bad.group()):04X}", hint="remove it")
    if len(source.encode()) > limit_bytes:
        raise _too_large("the document is too large", Position(file), None, f"{limit_bytes} bytes")
    return _build(source, file, max_depth, max_nodes)


def _decode(data: bytes, file: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        where = _place(data[: error.start].decode("utf-8"), file)
        got = f"byte 0x{data[error.start]:02X}"
        raise YamlError("the file is not UTF-8 text", where=where, got=got, expected="UTF-8") from error


def _place(before: str, file: str) -> Position:
    lines = re.split(r"\r\n|\r|\n", before.removeprefix("\ufeff"))
    return Position(file, len(lines), len(lines[-1]) + 1)


def _too_large(message: str, where: Position, got: str | None, limit: str) -> InputTooLargeError:
    return InputTooLargeError(message, where=where, got=got, expected=f"at most {limit}")


def _at(file: str, mark: Any) -> Position:
    return Position(file, mark.line + 1, mark.column + 1)


def _events(source: str, file: str) -> Iterator[Any]:
    try:
        yield from yaml.parse(source, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(error, source, file) from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise YamlError("this is not YAML", where=Position(file), got=error) from error


def _syntax_error(error: yaml.MarkedYAMLError, source: str, file: str) -> HitproofError:
    mark, hint = error.problem_mark or error.context_mark, None
    where = Position(file) if mark is None else _at(file, mark)
    began = where if error.context_mark is None else _at(file, error.context_mark)
    if "nesting depth" in str(error.problem):
        return InputTooLargeError("the document is nested too deeply", where=where)
    line = source.splitlines()[where.line - 1 : where.line] if where.line else []
    if line and "\t" in line[0][: where.column]:
        hint = "indent with spaces, not with tabs"
    elif any(
        words in str(error.problem) for words in ("cannot start any token", "mapping values are not allowed")
    ):
        hint = "quote the text, or check the indentation"
    elif began != where:
        hint = f"it was read as part of what begins at line {began.line}, column {began.column}"
    return YamlError(f"this is not YAML: {error.problem or error.context}", where=where, hint=hint)


class _Open:
    """A list or mapping whose end has not been read yet."""

    __slots__ = ("entries", "flow", "is_mapping", "items", "key", "where")

    def __init__(self, where: Position, *, flow: bool, is_mapping: bool) -> None:
        self.where, self.flow, self.is_mapping = where, flow, is_mapping
        self.items: list[Node] = []
        self.entries: dict[str, tuple[Position, Node]] = {}
        self.key: tuple[str, Position] | None = None

    def close(self) -> Node:
        return (
            Mapping(self.where, self.entries) if self.is_mapping else Sequence(self.where, tuple(self.items))
        )

    def add(self, node: Node) -> None:
        if self.flow and isinstance(node, Scalar) and not node.quoted:
            _refuse_split(node, self.key)
        if not self.is_mapping:
            self.items.append(node)
        elif self.key is None:
            self.key = (self.new_key(node), node.where)
        else:
            key, where = self.key
            self.entries[key] = (where, node)
            self.key = None

    def new_key(self, node: Node) -> str:
        if not isinstance(node, Scalar) or not isinstance(node.value, str):
            got = describe(node)
            raise YamlError("a key must be text", where=node.where, got=got, hint="put the key in quotes")
        if node.text == "<<" and not node.quoted:
            raise YamlError(
                "merge keys are refused", where=node.where, got="<<", hint="write the entries out"
            )
        if node.value in self.entries:
            first = self.entries[node.value][0]
            message = f"this key stands twice, first at line {first.line}, column {first.column}"
            raise DuplicateError(message, where=node.where, got=node.value)
        return node.value


def _refuse_split(node: Scalar, key: tuple[str, Position] | None) -> None:
    if node.text.count("(") > node.text.count(")"):
        message = "a comma inside { } or [ ] ends the value, so this parenthesis never closes"
        raise YamlError(message, where=node.where, got=node.text, hint="quote the expression")
    if key is not None and node.text == "":
        name, where = key
        hint = (
            "put a space after the colon" if ":" in name else "quote the expression, or give the key a value"
        )
        message = "a comma inside { } ends the value, so this became a key without a value"
        raise YamlError(message, where=where, got=name, hint=hint)


def _build(source: str, file: str, max_depth: int, max_nodes: int) -> Node:
    stack: list[_Open] = []
    root: Node | None = None
    done: Node
    nodes = 0
    for event in _events(source, file):
        if isinstance(event, yaml.NodeEvent):
            nodes += 1
            where = _at(file, event.start_mark)
            if nodes > max_nodes:
                raise _too_large(
                    "the document has too many values", where, None, f"{max_nodes} values and keys"
                )
            _refuse_features(event, where)
            if isinstance(event, yaml.CollectionStartEvent):
                opened = _Open(
                    where, flow=bool(event.flow_style), is_mapping=isinstance(event, yaml.MappingStartEvent)
                )
                if stack and stack[-1].is_mapping and stack[-1].key is None:
                    stack[-1].new_key(opened.close())
                if len(stack) >= max_depth:
                    raise _too_large("the document is nested too deeply", where, None, f"{max_depth} levels")
                stack.append(opened)
                continue
            done = _scalar(event, where, source)
        elif isinstance(event, yaml.CollectionEndEvent):
            done = stack.pop().close()
        else:
            if isinstance(event, yaml.DocumentStartEvent):
                _refuse_document(event, root, file)
            continue
        if stack:
            stack[-1].add(done)
        else:
            root = done
    if root is None:
        raise YamlError("the document is empty", where=Position(file, 1, 1))
    return root


def _refuse_features(event: Any, where: Position) -> None:
    if isinstance(event, yaml.AliasEvent):
        raise YamlError(
            "aliases are refused", where=where, got=f"*{event.anchor}", hint="write the value out"
        )
    if event.anchor is not None:
        raise YamlError("anchors are refused", where=where, got=f"&{event.anchor}", hint="remove it")
    if event.tag is not None:
        raise YamlError("tags are refused", where=where, got=event.tag, hint="remove it, or quote the text")


def _refuse_document(event: Any, root: Node | None, file: str) -> None:
    where = _at(file, event.start_mark)
    if root is not None:
        raise YamlError(
            "a file holds one document", where=where, got="a second document", hint="remove the `---`"
        )
    if event.tags:
        raise YamlError("tags are refused", where=where, got="%TAG", hint="remove the line")
    if event.version not in (None, (1, 2)):
        got = ".".join(map(str, event.version))
        raise YamlError("another version of YAML is declared", where=where, got=got, expected="1.2")


def _scalar(event: Any, where: Position, source: str) -> Scalar:
    text: str = event.value
    if not event.style:
        return Scalar(where, _resolve(text, where), text, False, where)
    if _UNUSABLE.search(text):
        raise YamlError("the text holds a character that cannot be used", where=where, got=text)
    content = where.shifted(1)
    if event.style in "|>":
        found = _CONTENT.match(source, event.start_mark.index)
        content = Position(where.file, where.line + 1, len(found.group(1)) + 1) if found else where
    return Scalar(where, text, text, True, content)


def _resolve(text: str, where: Position) -> _Value:
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] not in "+-.0123456789":
        return text
    whole = _INT.fullmatch(text)
    if not whole and not _FLOAT.fullmatch(text):
        if _ENDLESS.fullmatch(text):
            raise YamlError("a number must be finite", where=where, got=text, hint="quote it if it is text")
        return text
    if len(text) > _MAX_NUMBER:
        raise _too_large(
            "the number is too long", where, f"{len(text)} characters", f"{_MAX_NUMBER} characters"
        )
    if _LEADING_ZERO.match(text):
        hint = "quote it if it is text, or drop the zeros; an octal number begins with 0o"
        raise YamlError("a number with a leading zero is ambiguous", where=where, got=text, hint=hint)
    if whole:
        return int(text, {"0x": 16, "0o": 8}.get(text[:2], 10))
    number = float(text)
    if math.isinf(number):
        raise YamlError("a number must be finite", where=where, got=text, hint="quote it if it is text")
    return number


def suggest(name: str, known: Iterable[str]) -> str | None:
    """A hint that names the closest known name, or lists the known ones; None where there are none."""
    names = sorted(set(islice(known, 1000)))
    close = get_close_matches(name, names, n=1) if len(name) <= 100 else []
    if close:
        return f"did you mean `{close[0]}`?"
    return f"known: {', '.join(names)}" if names else None


def describe(node: Node) -> str:
    """What stands there, in the words of an error message."""
    if isinstance(node, Scalar):
        return "nothing" if node.value is None else f'"{node.text}"' if node.quoted else node.text
    return "a mapping" if isinstance(node, Mapping) else "a list"


def _wrong(node: Node, what: str, rule: str | None, expected: str, hint: str | None = None) -> SchemaError:
    message = f"{what} has the wrong shape"
    return SchemaError(message, where=node.where, rule=rule, got=describe(node), expected=expected, hint=hint)


def expect_text(node: Node, what: str, rule: str | None = None) -> str:
    """The text of a scalar that is text and not empty; raises SchemaError otherwise."""
    if isinstance(node, Scalar) and isinstance(node.value, str) and node.value.strip():
        return node.value
    hint = "put it in quotes" if isinstance(node, Scalar) and not isinstance(node.value, str | None) else None
    raise _wrong(node, what, rule, "text", hint)


def expect_expression(node: Node, what: str, rule: str | None = None) -> str:
    """The source text of an expression; `0` and `true` may stand unquoted. Its place is `node.content`."""
    if isinstance(node, Scalar) and node.value is not None and node.text.strip():
        return node.text
    raise _wrong(node, what, rule, "an expression", "quote an expression that begins with { or [")


def expect_int(
    node: Node, what: str, rule: str | None = None, *, low: int | None = None, high: int | None = None
) -> int:
    """A whole number between `low` and `high`, both included; raises SchemaError otherwise."""
    value = node.value if isinstance(node, Scalar) else None
    if isinstance(value, bool) or not isinstance(value, int):
        hint = None
        if isinstance(value, str) and re.fullmatch(r"[-+]?[0-9][0-9_]*", value):
            hint = "write the number without quotes or underscores"
        raise _wrong(node, what, rule, "a whole number", hint)
    if (low is not None and value < low) or (high is not None and value > high):
        bounds = [f"at least {low}"] * (low is not None) + [f"at most {high}"] * (high is not None)
        expected = " and ".join(bounds)
        raise SchemaError(
            f"{what} is out of range", where=node.where, rule=rule, got=value, expected=expected
        )
    return value


def expect_number(node: Node, what: str, rule: str | None = None) -> int | float:
    """A finite number, whole or not; raises SchemaError otherwise."""
    if isinstance(node, Scalar) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        return node.value
    raise _wrong(node, what, rule, "a number")


def expect_bool(node: Node, what: str, rule: str | None = None) -> bool:
    """`true` or `false`; raises SchemaError otherwise."""
    if isinstance(node, Scalar) and isinstance(node.value, bool):
        return node.value
    raise _wrong(node, what, rule, "true or false")


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


def expect_choice(node: Node, what: str, choices: Collection[str], rule: str | None = None) -> str:
    """A text that is one of `choices`; raises SchemaError otherwise."""
    value = expect_text(node, what, rule)
    if value in choices:
        return value
    expected, hint = "one of " + ", ".join(choices), suggest(value, choices)
    raise SchemaError(
        f"{what} is unknown", where=node.where, rule=rule, got=value, expected=expected, hint=hint
    )


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
                raise SchemaError(
                    message, where=where, rule=self.rule, got=key, hint=suggest(key, self._asked)
                )


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
        raise _explain(model, node, (unknown or errors)[0], rule) from failed


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
        return SchemaError(
            f"the key `{path}` is missing", where=found.where, rule=rule, expected=str(loc[-1])
        )
    cause = error.get("ctx", {}).get("error")
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
