"""Request traces as JSON lines: read one request at a time, written whole or not at all."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from hitproof.engine.trace.line_format import (
    MOONCAKE,
    TraceFormat,
    TraceRequest,
    format_of,
    request_of,
)
from hitproof.spec.errors import MissingFileError, Position, TraceError

__all__ = ["MAX_LINES", "MAX_LINE_BYTES", "TraceRequest", "read_trace", "write_trace"]

MAX_LINE_BYTES = 8 * 1024 * 1024
MAX_LINES = 10_000_000
_BOM = b"\xef\xbb\xbf"


def read_trace(path: str | os.PathLike[str], *, max_lines: int = MAX_LINES) -> Iterator[TraceRequest]:
    """Reads a trace's requests in file order, one line in memory at a time.

    The first line's keys tell the format. Mooncake lines count tokens in blocks of 512. LMCache agent lines
    count bytes in blocks of 1,024 and carry no tokens: their tokens are derived as bytes // 4, an
    approximation that anyone who reports them should state, so the last block may cover no whole token; their
    times start anew in each session. A byte order mark and blank lines at the end are passed over.

    Args:
        path: A regular file.
        max_lines: The most lines to accept.

    Returns:
        An iterator over the requests; each line is checked when it is reached.

    Raises:
        MissingFileError: The file does not exist or may not be read (raised at once).
        TraceError: The path is no regular file (raised at once); or, while iterating, a line cannot be used,
            is longer than 8 MiB, or is one too many; or the file holds no request.
    """
    name = os.fspath(path)
    with _open(name):
        return _requests(name, max_lines)


def write_trace(path: str | os.PathLike[str], requests: Iterable[TraceRequest]) -> int:
    """Writes requests as Mooncake JSON lines; the file appears whole, or stays as it was.

    The text goes to a temporary file beside the target, which then takes the target's name.

    Args:
        path: Where to write; a file there is replaced.
        requests: What to write; the blocks must be of 512 tokens.

    Returns:
        How many requests were written.

    Raises:
        MissingFileError: The folder does not exist or may not be written.
        TraceError: A request would not read back (its line is the position), or there is none.
    """
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")
    name = os.fspath(path)
    written = 0
    try:
        try:
            with open(temporary, "x", encoding="ascii", newline="\n") as stream:
                for written, request in enumerate(requests, start=1):
                    stream.write(_line(request, name, written) + "\n")
                stream.flush()
                os.fsync(stream.fileno())
            if not written:
                raise _empty(name)
            os.replace(temporary, target)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
    except OSError as error:
        raise MissingFileError(
            "the trace cannot be written",
            where=Position(name),
            got=error.strerror or error,
            expected="a writable folder and a file's name",
        ) from error
    return written


def _open(name: str) -> BinaryIO:
    try:
        mode = os.stat(name).st_mode
        if stat.S_ISREG(mode):
            return open(name, "rb")
    except OSError as error:
        raise MissingFileError(
            "the trace cannot be read",
            where=Position(name),
            got=error.strerror or error,
            expected="a readable file",
        ) from error
    raise TraceError(
        "a trace is a regular file",
        where=Position(name),
        got="a directory" if stat.S_ISDIR(mode) else "a device, pipe or socket",
        expected="a regular file",
    )


def _requests(name: str, max_lines: int) -> Iterator[TraceRequest]:
    form: TraceFormat | None = None
    blank = 0
    with _open(name) as stream:
        for line, text in _lines(stream, name, max_lines):
            if not text.strip():
                blank = blank or line
                continue
            if blank:
                raise TraceError(
                    "a blank line stands inside the trace",
                    where=Position(name, blank, 1),
                    got="a blank line",
                    expected="one JSON object a line",
                )
            if form is None:
                form = format_of(text, name, line)
            yield request_of(text, form, name, line)
    if form is None:
        raise _empty(name)


def _lines(stream: BinaryIO, name: str, max_lines: int) -> Iterator[tuple[int, str]]:
    line = 0
    while raw := stream.readline(MAX_LINE_BYTES + 1):
        line += 1
        if line > max_lines:
            raise TraceError(
                "the trace has too many lines",
                where=Position(name, line, 1),
                got=f"more than {max_lines} lines",
                expected=f"at most {max_lines} lines",
            )
        if len(raw) > MAX_LINE_BYTES:
            raise TraceError(
                "the line is too long",
                where=Position(name, line, MAX_LINE_BYTES + 1),
                got=f"more than {MAX_LINE_BYTES} bytes",
                expected=f"at most {MAX_LINE_BYTES} bytes a line",
            )
        if line == 1:
            raw = raw.removeprefix(_BOM)
        yield line, _text(raw, name, line)


def _text(raw: bytes, name: str, line: int) -> str:
    nul = raw.find(b"\0")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        bad = error.start if nul < 0 else min(nul, error.start)
    else:
        if nul < 0:
            return text.rstrip("\r\n")
        bad = nul
    raise TraceError(
        "the line is not text",
        where=Position(name, line, 1 + len(raw[:bad].decode("utf-8"))),
        got=f"byte 0x{raw[bad]:02x}",
        expected="UTF-8 text",
    )


def _line(request: TraceRequest, name: str, line: int) -> str:
    if request.block_tokens != MOONCAKE.block:
        raise TraceError(
            "a request's blocks do not fit the format",
            where=Position(name, line),
            got=f"blocks of {request.block_tokens} tokens",
            expected=f"blocks of {MOONCAKE.block} tokens",
        )
    text = json.dumps(
        {
            MOONCAKE.time: request.timestamp_ms,
            MOONCAKE.input: request.input_tokens,
            MOONCAKE.output: request.output_tokens,
            "hash_ids": list(request.hash_ids),
        }
    )
    request_of(text, MOONCAKE, name, line)
    return text


def _empty(name: str) -> TraceError:
    return TraceError(
        "the trace is empty", where=Position(name, 1, 1), got="no request", expected="at least one request"
    )
