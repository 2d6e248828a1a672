"""YAML read as a tree in which every key and value knows its place, with everything ambiguous refused."""

from __future__ import annotations

import math
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from hitproof.spec.errors import (
    DuplicateError,
    HitproofError,
    InputTooLargeError,
    MissingFileError,
    Position,
    YamlError,
)

__all__ = [
    "Mapping",
    "Node",
    "Scalar",
    "Sequence",
    "describe",
    "parse_tree",
    "plain",
    "read_tree",
]

LIMIT_BYTES = 4 * 1024 * 1024
MAX_DEPTH = 40
MAX_NODES = 200_000
_MAX_NUMBER = 40

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Value = str | int | bool | float | None

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
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
    try:
        with open(os.open(path, flags), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise MissingFileError("this is not a regular file", where=where, expected="a YAML file")
            if status.st_size > limit_bytes:
                raise _too_large("the file is too large", where, f"{status.st_size} bytes", f"{limit_bytes} bytes")
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
    elif any(words in str(error.problem) for words in ("cannot start any token", "mapping values are not allowed")):
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
        return Mapping(self.where, self.entries) if self.is_mapping else Sequence(self.where, tuple(self.items))

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
            raise YamlError("merge keys are refused", where=node.where, got="<<", hint="write the entries out")
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
        hint = "put a space after the colon" if ":" in name else "quote the expression, or give the key a value"
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
                raise _too_large("the document has too many values", where, None, f"{max_nodes} values and keys")
            _refuse_features(event, where)
            if isinstance(event, yaml.CollectionStartEvent):
                opened = _Open(where, flow=bool(event.flow_style), is_mapping=isinstance(event, yaml.MappingStartEvent))
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
        raise YamlError("aliases are refused", where=where, got=f"*{event.anchor}", hint="write the value out")
    if event.anchor is not None:
        raise YamlError("anchors are refused", where=where, got=f"&{event.anchor}", hint="remove it")
    if event.tag is not None:
        raise YamlError("tags are refused", where=where, got=event.tag, hint="remove it, or quote the text")


def _refuse_document(event: Any, root: Node | None, file: str) -> None:
    where = _at(file, event.start_mark)
    if root is not None:
        raise YamlError("a file holds one document", where=where, got="a second document", hint="remove the `---`")
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
        raise _too_large("the number is too long", where, f"{len(text)} characters", f"{_MAX_NUMBER} characters")
    if _LEADING_ZERO.match(text):
        hint = "quote it if it is text, or drop the zeros; an octal number begins with 0o"
        raise YamlError("a number with a leading zero is ambiguous", where=where, got=text, hint=hint)
    if whole:
        return int(text, {"0x": 16, "0o": 8}.get(text[:2], 10))
    number = float(text)
    if math.isinf(number):
        raise YamlError("a number must be finite", where=where, got=text, hint="quote it if it is text")
    return number


def describe(node: Node) -> str:
    """What stands there, in the words of an error message."""
    if isinstance(node, Scalar):
        return "nothing" if node.value is None else f'"{node.text}"' if node.quoted else node.text
    return "a mapping" if isinstance(node, Mapping) else "a list"
