"""One line of a request trace: which format it is in, and what makes it unusable."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from hitproof.spec.errors import Position, TraceError

__all__ = ["FORMATS", "LMCACHE_AGENT", "MOONCAKE", "TraceFormat", "TraceRequest", "format_of", "request_of"]

MAX_COUNT = 2**40
MAX_HASH_ID = 2**64 - 1
_BETWEEN = " \t\r\n,:"


@dataclass(frozen=True, slots=True)
class TraceRequest:
    """One request of a trace.

    Attributes:
        timestamp_ms: Arrival in milliseconds from the trace's (or the session's) start.
        input_tokens: Length of the prompt in tokens.
        output_tokens: Length of the answer in tokens.
        hash_ids: One id a prompt block in path order; equal ids mean equal prefixes up to that block. The
            last block may be partly filled.
        block_tokens: How many tokens a full block stands for.
    """

    timestamp_ms: int
    input_tokens: int
    output_tokens: int
    hash_ids: tuple[int, ...]
    block_tokens: int = 512


@dataclass(frozen=True, slots=True)
class TraceFormat:
    """The keys of a trace format, and what its lengths count.

    Attributes:
        name: What the format is called in messages.
        time: Key of the arrival time in milliseconds.
        input: Key of the prompt's length.
        output: Key of the answer's length.
        unit: What the lengths count.
        block: Length of one block, in that unit.
        units_per_token: How many units make one token.
    """

    name: str
    time: str
    input: str
    output: str
    unit: str
    block: int
    units_per_token: int


MOONCAKE = TraceFormat("Mooncake", "timestamp", "input_length", "output_length", "tokens", 512, 1)

# The agent traces count bytes and carry no tokens; four bytes a token is a usual figure for English and code.
LMCACHE_AGENT = TraceFormat("LMCache agent", "ms_in_session", "input_bytes", "output_bytes", "bytes", 1024, 4)

FORMATS = (MOONCAKE, LMCACHE_AGENT)


class _RepeatedKeyError(ValueError):
    pass


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    record = dict(pairs)
    if len(record) != len(pairs):
        keys = [key for key, _ in pairs]
        raise _RepeatedKeyError(next(key for key in keys if keys.count(key) > 1))
    return record


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse_constant)


def _record_of(text: str, file: str, line: int) -> dict[str, object]:
    try:
        record = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        where = Position(file, line, error.colno)
        raise TraceError(
            "the line is not JSON", where=where, got=error.msg, expected="one JSON object a line"
        ) from error
    except _RepeatedKeyError as error:
        raise TraceError(
            "a key stands twice", where=Position(file, line, 1), got=error, expected="each key once"
        ) from error
    except (RecursionError, ValueError) as error:
        got = "nesting too deep" if isinstance(error, RecursionError) else error
        raise TraceError(
            "the line is not JSON", where=Position(file, line, 1), got=got, expected="one JSON object a line"
        ) from error
    if not isinstance(record, dict):
        where = Position(file, line, 1 + len(text) - len(text.lstrip()))
        raise TraceError("the line is not an object", where=where, got=_kind(record), expected="one JSON object a line")
    return record


def format_of(text: str, file: str, line: int) -> TraceFormat:
    """Tells the format of a trace by the keys of one line.

    Raises:
        TraceError: The line is broken, or its keys fit no format or more than one.
    """
    record = _record_of(text, file, line)
    fitting = [form for form in FORMATS if form.input in record]
    if len(fitting) == 1:
        return fitting[0]
    raise TraceError(
        "the keys fit no single trace format",
        where=Position(file, line, 1),
        got=", ".join(sorted(record)) or "no keys",
        expected=" or ".join(f"{form.input} ({form.name})" for form in FORMATS),
    )


def request_of(text: str, form: TraceFormat, file: str, line: int) -> TraceRequest:
    """Reads one line as a request; keys that the format does not name are passed over.

    Args:
        text: The line without its end.
        form: The trace's format.
        file: The trace's name, for messages.
        line: The line's number, counted from 1.

    Returns:
        The request; lengths counted in bytes are divided, rounding down, by the format's units a token.

    Raises:
        TraceError: The line is broken, a field is missing, of another type or out of range, or the number of
            hash ids does not fit the input's length.
    """
    record = _record_of(text, file, line)
    where = Position(file, line, 1)
    for key in (form.time, form.input, form.output, "hash_ids"):
        if key not in record:
            raise TraceError(
                f"`{key}` is missing",
                where=where,
                got=", ".join(sorted(record)) or "no keys",
                expected=f"the keys of the {form.name} format",
            )

    def count(key: str) -> int:
        value = record[key]
        if type(value) is int and 0 <= value <= MAX_COUNT:
            return value
        raise TraceError(
            f"`{key}` cannot be used",
            where=Position(file, line, _column(text, key)),
            got=_kind(value),
            expected=f"a whole number from 0 to {MAX_COUNT}",
        )

    time, length, answer = count(form.time), count(form.input), count(form.output)
    ids = _hash_ids(record["hash_ids"], text, where)
    needed = -(-length // form.block)
    if len(ids) != needed:
        raise TraceError(
            "the number of hash ids does not fit the input's length",
            where=Position(file, line, _column(text, "hash_ids")),
            got=f"{len(ids)} ids",
            expected=f"{needed} ids: {length} {form.unit} in blocks of {form.block}",
        )
    per = form.units_per_token
    return TraceRequest(time, length // per, answer // per, tuple(ids), form.block // per)


def _hash_ids(value: object, text: str, where: Position) -> list[int]:
    if not isinstance(value, list):
        at = where.shifted(_column(text, "hash_ids") - 1)
        raise TraceError("`hash_ids` cannot be used", where=at, got=_kind(value), expected="a list of ids")
    if not value or (set(map(type, value)) == {int} and min(value) >= 0 and max(value) <= MAX_HASH_ID):
        return value
    index, wrong = next(
        (index, item) for index, item in enumerate(value) if type(item) is not int or not 0 <= item <= MAX_HASH_ID
    )
    raise TraceError(
        f"hash id number {index + 1} cannot be used",
        where=where.shifted(_column(text, "hash_ids", index) - 1),
        got=_kind(wrong),
        expected=f"a whole number from 0 to {MAX_HASH_ID}",
    )


def _kind(value: object) -> str:
    if value is None or isinstance(value, (bool, int, float, str)):
        return json.dumps(value)
    return "a list" if isinstance(value, list) else "an object"


def _column(text: str, key: str, index: int | None = None) -> int:
    # Only messages need columns, so a line is walked a second time rather than every line with positions.
    at = next(start for name, start in _members(text) if name == key)
    if index is not None:
        at = _skip(text, at + 1)
        for _ in range(index):
            at = _after(text, at)
    return at + 1


def _members(text: str) -> Iterator[tuple[object, int]]:
    at = text.index("{") + 1
    while True:
        at = _skip(text, at)
        name, _ = _DECODER.raw_decode(text, at)
        at = _after(text, at)
        yield name, at
        at = _after(text, at)


def _after(text: str, at: int) -> int:
    return _skip(text, _DECODER.raw_decode(text, at)[1])


def _skip(text: str, at: int) -> int:
    while text[at] in _BETWEEN:
        at += 1
    return at
