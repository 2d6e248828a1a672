"""Errors as data: one class a mistake, each carrying where it is, what was got and what was expected."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "BindError",
    "ConditionError",
    "DuplicateError",
    "HitproofError",
    "InputTooLargeError",
    "InternalError",
    "MissingFileError",
    "Position",
    "ProfileError",
    "ProofError",
    "ReferenceNameError",
    "RingError",
    "SchemaError",
    "StoreError",
    "StoreLockedError",
    "TensorError",
    "TraceError",
    "UnitError",
    "UsageError",
    "YamlError",
]


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a file: name, 1-based line and column; 0 where there is none."""

    file: str = "<memory>"
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file

    def shifted(self, columns: int) -> Position:
        """The same line, `columns` further right; used to point inside an expression."""
        return Position(self.file, self.line, self.column + columns)


class HitproofError(ValueError):
    """Bad input or bad usage: the base of every error that a user can cause (exit code 3).

    Args:
        message: A plain sentence.
        where: The place in the input.
        rule: The id of the rule concerned, absolute (`uncompressed_tail/covers_window`).
        got: What stood there.
        expected: What would have been right.
        hint: How to mend it.
    """

    code = "input"

    def __init__(
        self,
        message: str,
        *,
        where: Position | None = None,
        rule: str | None = None,
        got: object = None,
        expected: object = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.where = where or Position()
        self.rule = rule
        self.got = None if got is None else _clip(str(got))
        # What would have been right is often a list of names, and of no use when it is cut.
        self.expected = None if expected is None else _clip(str(expected), 500)
        self.hint = hint

    def as_dict(self) -> dict[str, object]:
        """The error as plain data, for JSON output."""
        return {
            "code": self.code,
            "message": self.message,
            "file": self.where.file,
            "line": self.where.line,
            "column": self.where.column,
            "rule": self.rule,
            "got": self.got,
            "expected": self.expected,
            "hint": self.hint,
        }

    def __str__(self) -> str:
        parts = [f"{self.where}: {self.message}"]
        for label, value in (("rule", self.rule), ("got", self.got), ("expected", self.expected), ("hint", self.hint)):
            if value is not None:
                parts.append(f"{label}: {value}")
        return "; ".join(parts)


def _clip(text: str, limit: int = 200) -> str:
    printable = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[: limit + 1])
    return printable if len(text) <= limit else printable[:limit] + "..."


class YamlError(HitproofError):
    """The YAML text cannot be read, or uses a feature that rule files refuse."""

    code = "yaml"


class DuplicateError(HitproofError):
    """A key or an id stands twice."""

    code = "duplicate"


class SchemaError(HitproofError):
    """A key is unknown or missing, or a value has the wrong shape."""

    code = "schema"


class ReferenceNameError(HitproofError):
    """A name (fact, peer, check, repair, form, profile) refers to nothing."""

    code = "reference"


class ConditionError(HitproofError):
    """An expression is not in the condition language, or does not type-check."""

    code = "condition"


class UnitError(ConditionError):
    """Two quantities of different units meet."""

    code = "unit"


class BindError(HitproofError):
    """A rule cannot be bound to a profile: a constant is missing or out of range."""

    code = "bind"


class ProfileError(HitproofError):
    """A profile or a model configuration cannot be expressed; says which fact is missing."""

    code = "profile"


class MissingFileError(HitproofError):
    """A file that was named does not exist or cannot be read."""

    code = "file"


class InputTooLargeError(HitproofError):
    """Input passes a cap on size, depth or count."""

    code = "too_large"


class TraceError(HitproofError):
    """A line of a request trace cannot be used."""

    code = "trace"


class RingError(HitproofError):
    """A line of a dump of decisions cannot be used."""

    code = "ring"


class TensorError(HitproofError):
    """A tensor, a buffer or a block table has another shape, number format or extent than a kernel takes."""

    code = "tensor"


class ProofError(HitproofError):
    """A proof is missing, is not about what is to be loaded, or is not signed as it must be."""

    code = "proof"


class StoreError(HitproofError):
    """A store of segments cannot be opened: the disk refuses, or a newer version wrote it."""

    code = "store"


class StoreLockedError(StoreError):
    """A store of segments is open in a process already."""

    code = "store_locked"


class UsageError(HitproofError):
    """A command was called in a way that selects nothing or contradicts itself."""

    code = "usage"


class InternalError(RuntimeError):
    """A promise of our own is broken (exit code 4); never the user's fault."""
