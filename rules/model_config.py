"""Typed reading of a model's `config.json`: every refusal names the file and the key path."""

from __future__ import annotations

import json
import reprlib
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Never

from hitproof.spec.errors import (
    DuplicateError,
    HitproofError,
    InputTooLargeError,
    MissingFileError,
    Position,
    ProfileError,
)

__all__ = ["MAX_CONFIG_BYTES", "ModelConfig", "read_config"]

MAX_CONFIG_BYTES = 2**20
_MAX_LIST = 4096
_MAX_INTEGER = 2**31
_MISSING = object()


def read_config(path: Path) -> Mapping[str, object]:
    """Read a `config.json` of at most 1 MiB.

    Raises:
        MissingFileError: The path names no regular file that can be read.
        InputTooLargeError: The file, or its nesting, passes a cap.
        DuplicateError: A key stands twice in one object.
        ProfileError: The text is no JSON object.
    """
    where = Position(str(path))
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise MissingFileError("a model configuration is a regular file", where=where)
        if status.st_size > MAX_CONFIG_BYTES:
            _too_large(where, status.st_size)
        with path.open("rb") as stream:
            data = stream.read(MAX_CONFIG_BYTES + 1)
    except HitproofError:
        raise
    except ValueError as error:
        raise MissingFileError("the file's name cannot be used", where=where) from error
    except OSError as error:
        raise MissingFileError(f"the file cannot be read: {error.strerror}", where=where) from error
    if len(data) > MAX_CONFIG_BYTES:
        _too_large(where, len(data))
    config = _parse(data, where)
    if not isinstance(config, dict):
        raise ProfileError("a model configuration is a JSON object", where=where, got=type(config).__name__)
    return config


def _too_large(where: Position, size: int) -> Never:
    raise InputTooLargeError(
        "the model configuration is too large",
        where=where,
        got=size,
        expected=f"at most {MAX_CONFIG_BYTES} bytes",
    )


def _parse(data: bytes, where: Position) -> object:
    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        entries = dict(pairs)
        if len(entries) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise DuplicateError(f"the key {twice!r:.80} stands twice in one object", where=where)
        return entries

    try:
        return json.loads(data.decode("utf-8-sig"), object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        place = Position(where.file, error.lineno, error.colno)
        raise ProfileError(f"the text is not JSON: {error.msg}", where=place) from error
    except UnicodeDecodeError as error:
        raise ProfileError("the file is not UTF-8 text", where=where) from error
    except RecursionError as error:
        raise InputTooLargeError("the JSON is nested too deeply", where=where) from error
    except HitproofError:
        raise
    except ValueError as error:
        raise InputTooLargeError("the JSON holds a number of too many digits", where=where) from error


class ModelConfig:
    """One JSON object of a configuration, with its place; `outer` is asked for what wraps the text model.

    Args:
        values: The object.
        file: Name used in errors.
        path: Key path of this object, empty at the top.
        outer: The object around it, None at the top.
    """

    def __init__(
        self, values: Mapping[str, object], *, file: str, path: str = "", outer: ModelConfig | None = None
    ) -> None:
        self.values = values
        self.file = file
        self.path = path
        self.outer = outer

    def text_model(self) -> ModelConfig:
        """The part that describes the text model: `text_config` where there is one, else this object."""
        nested = self.values.get("text_config")
        if nested is None:
            return self
        if not isinstance(nested, Mapping):
            self.refuse("text_config", "is not an object", got=nested)
        return ModelConfig(nested, file=self.file, path=f"{self.path}text_config.", outer=self)

    def has(self, key: str) -> bool:
        """Whether the key is stated and not null."""
        return self.values.get(key) is not None

    def integer(self, key: str, *, least: int = 1, most: int = _MAX_INTEGER, default: int | None = None) -> int:
        """The integer at `key`; `default` only where an absent key has a published meaning.

        Raises:
            ProfileError: It is missing without default, no integer, or outside [least, most].
        """
        value = self.values.get(key)
        if value is None:
            return self.missing(key) if default is None else default
        return self._checked(key, value, least, most)

    def optional_integer(self, key: str) -> int | None:
        """The positive integer at `key`, None where the configuration says null.

        Raises:
            ProfileError: The key is missing, or its value is neither null nor a sane integer.
        """
        value = self.values.get(key, _MISSING)
        if value is _MISSING:
            self.missing(key)
        return None if value is None else self._checked(key, value, 1)

    def flag(self, key: str, *, default: bool) -> bool:
        """The Boolean at `key`.

        Raises:
            ProfileError: The value is no Boolean.
        """
        value = self.values.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            self.refuse(key, "is not a Boolean", got=value)
        return value

    def text(self, key: str) -> str:
        """The text at `key`, or the outer object's.

        Raises:
            ProfileError: It is missing, or no text.
        """
        value = self.values.get(key)
        if value is None:
            return self.missing(key) if self.outer is None else self.outer.text(key)
        if not isinstance(value, str):
            self.refuse(key, "is not a text", got=value)
        return value

    def entries(self, key: str) -> Sequence[object]:
        """The list at `key`.

        Raises:
            ProfileError: It is missing, no list, or longer than 4,096 entries.
        """
        value = self.values.get(key)
        if value is None:
            self.missing(key)
        if not isinstance(value, list | tuple):
            self.refuse(key, "is not a list", got=value)
        if len(value) > _MAX_LIST:
            self.refuse(key, "is too long", got=f"{len(value)} entries", expected=f"at most {_MAX_LIST}")
        return value

    def section(self, key: str) -> ModelConfig:
        """The object at `key`.

        Raises:
            ProfileError: It is missing, or no object.
        """
        value = self.values.get(key)
        if value is None:
            self.missing(key)
        if not isinstance(value, Mapping):
            self.refuse(key, "is not an object", got=value)
        return ModelConfig(value, file=self.file, path=f"{self.path}{key}.", outer=self)

    def missing(self, key: str, *, hint: str | None = None) -> Never:
        """Refuse for want of a key; always raises ProfileError."""
        raise ProfileError(
            f"the configuration lacks the key {self.path}{key}",
            where=Position(self.file),
            expected=key,
            hint=hint,
        )

    def refuse(
        self, key: str, why: str, *, got: object = None, expected: object = None, hint: str | None = None
    ) -> Never:
        """Refuse the value at `key`; always raises ProfileError."""
        raise ProfileError(
            f"{self.path}{key} {why}",
            where=Position(self.file),
            got=None if got is None else _shown(got),
            expected=expected,
            hint=hint,
        )

    def _checked(self, key: str, value: object, least: int, most: int = _MAX_INTEGER) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            self.refuse(key, "is not an integer", got=value)
        if not least <= value <= most:
            self.refuse(key, "is out of range", got=value, expected=f"{least} to {most}")
        return value


def _shown(value: object) -> str:
    try:
        return reprlib.repr(value)
    except ValueError:
        return f"{type(value).__name__} of too many digits"
