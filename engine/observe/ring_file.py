"""Dumps of a ring of decisions, read as what anybody may have written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hitproof.spec.errors import InputTooLargeError, MissingFileError, Position, RingError

__all__ = ["KeptDecision", "KeptReason", "KeptStep", "read_ring"]

LIMIT_BYTES = 64 * 2**20
LIMIT_LINE = 256 * 2**10
LIMIT_LINES = 10_000

Text = Annotated[str, Field(max_length=500)]
Count = Annotated[int, Field(ge=0, le=2**62)]
Number = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Plain = bool | Annotated[int, Field(ge=-(2**62), le=2**62)] | Annotated[float, Field(allow_inf_nan=False)] | Text | None


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Members(_Shape):
    """Some members of a set, and how many it has."""

    members: Annotated[list[int], Field(max_length=8)]
    of: Count


class KeptReason(_Shape):
    """A rule that did not hold."""

    rule: Text
    layer: Text
    conjunct: Text
    values: Annotated[dict[Text, Plain | Members], Field(max_length=16)]
    because: Text
    place: Text


class KeptStep(_Shape):
    """A repair of the plan."""

    group: Text
    segment: int
    option: Text
    repair: Text
    level: Text
    cost_us: Number | None


class KeptDecision(_Shape):
    """One line of a dump."""

    number: Count
    time: Number
    seconds: Number
    verdict: Literal["miss", "reuse", "repair", "rebuild", "recompute", "defer", "refuse"]
    logical: Count
    usable: Count
    cost_us: Number | None
    total_us: Number | None
    plan: Annotated[list[KeptStep], Field(max_length=32)]
    failed: Annotated[list[Text], Field(max_length=32)]
    reasons: Annotated[list[KeptReason], Field(max_length=32)]
    admission: Annotated[list[KeptReason], Field(max_length=32)]
    dispositions: Annotated[dict[Text, Literal["keep", "purge", "quarantine"]], Field(max_length=32)]
    flags: Annotated[list[Text], Field(max_length=8)]
    execution: Literal["synchronous", "asynchronous"]
    digest: Text


def read_ring(path: Path) -> list[KeptDecision]:
    """Read a dump of `Ring.dump`, oldest decision first.

    Raises:
        MissingFileError: It cannot be read.
        InputTooLargeError: It has too many bytes or lines, or one line is too long.
        RingError: A line is no decision of a ring.
    """
    found: list[KeptDecision] = []
    try:
        if not path.is_file():
            raise MissingFileError("there is no such file", where=Position(str(path)), expected="a dump of a ring")
        if path.stat().st_size > LIMIT_BYTES:
            raise InputTooLargeError(
                "the dump is too large", where=Position(str(path)), expected=f"{LIMIT_BYTES} bytes"
            )
        with open(path, "rb") as stream:
            for number in range(1, LIMIT_LINES + 2):
                line = stream.readline(LIMIT_LINE + 1)
                if not line:
                    return found
                where = Position(str(path), number, 1)
                if len(line) > LIMIT_LINE or number > LIMIT_LINES:
                    raise InputTooLargeError(
                        "the dump has a line too long, or too many",
                        where=where,
                        expected=f"{LIMIT_LINES} lines of {LIMIT_LINE} bytes",
                    )
                if line.strip():
                    found.append(_decision(line, where))
    except OSError as error:
        raise MissingFileError("the file cannot be read", where=Position(str(path)), got=error.strerror) from error
    return found


def _decision(line: bytes, where: Position) -> KeptDecision:
    try:
        data = json.loads(line.decode("utf-8"), parse_constant=_refuse)
        return KeptDecision.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise RingError(
            "the line is no decision of a ring",
            where=where,
            got=".".join(map(str, first["loc"])) or type(data).__name__,
            expected=first["msg"],
        ) from None
    except (ValueError, RecursionError) as error:
        raise RingError("the line is not JSON", where=where, got=error, expected="a line of `Ring.dump`") from None


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
