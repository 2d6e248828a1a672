"""Traces are read with exact complaints and written whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitproof.engine.trace import TraceRequest, read_trace, synthesize, write_trace
from hitproof.engine.trace.request_trace import MAX_LINE_BYTES
from hitproof.spec.errors import HitproofError, MissingFileError, TraceError

SHARED = Path(__file__).resolve().parents[4] / "shared/data/traces"
GOOD = '{"timestamp": 3000, "input_length": 600, "output_length": 7, "hash_ids": [0, 5]}'
AGENT = (
    '{"agent": "a", "session": 0, "ms_in_session": 20, "input_bytes": 2050, "output_bytes": 9, "hash_ids": [0, 1, 2]}'
)


def _failure(path: Path, content: str | bytes, **options: int) -> TraceError:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(TraceError) as caught:
        list(read_trace(path, **options))
    assert str(path) == caught.value.where.file
    assert caught.value.got is not None
    assert caught.value.expected is not None
    return caught.value


def test_mooncake_lines_are_read(tmp_path: Path) -> None:
    """Each field arrives under its name, blocks are of 512 tokens, unknown keys are passed over."""
    path = tmp_path / "t.jsonl"
    path.write_text(GOOD + "\n" + GOOD.replace("{", '{"extra": {"x": [1]}, ', 1) + "\n")
    expected = TraceRequest(3000, 600, 7, (0, 5), 512)
    assert [expected, expected] == list(read_trace(path))


def test_agent_lines_are_read_as_a_quarter_of_their_bytes(tmp_path: Path) -> None:
    """Tokens are bytes // 4 and a block of 1,024 bytes is 256 tokens."""
    path = tmp_path / "t.jsonl"
    path.write_text(AGENT)
    assert [TraceRequest(20, 512, 2, (0, 1, 2), 256)] == list(read_trace(path))


@pytest.mark.parametrize("text", [GOOD, GOOD + "\r\n", "\ufeff" + GOOD + "\n", GOOD + "\n\n  \n\n"])
def test_harmless_dressing_is_passed_over(tmp_path: Path, text: str) -> None:
    """A missing last line end, Windows line ends, a byte order mark and trailing blank lines are fine."""
    path = tmp_path / "t.jsonl"
    path.write_text(text, newline="")
    assert 1 == len(list(read_trace(path)))


def test_an_empty_prompt_has_no_blocks(tmp_path: Path) -> None:
    """Zero tokens and zero ids are one valid request."""
    path = tmp_path / "t.jsonl"
    path.write_text('{"timestamp": 0, "input_length": 0, "output_length": 0, "hash_ids": []}')
    assert [TraceRequest(0, 0, 0, ())] == list(read_trace(path))


@pytest.mark.parametrize(
    ("line", "column", "got"),
    [
        ("{", 2, "Expecting property name"),
        (GOOD[:-1], len(GOOD), "Expecting ',' delimiter"),
        (GOOD + "x", len(GOOD) + 1, "Extra data"),
        (GOOD.replace("600", "NaN"), 1, "NaN is not JSON"),
        (GOOD.replace("600", "9" * 5000), 1, "Exceeds the limit"),
        (GOOD.replace("600", "[" * 100_000), 1, "nesting too deep"),
        (GOOD.replace('"output_length"', '"timestamp"'), 1, "timestamp"),
        ("  [1]", 3, "a list"),
        ("null", 1, "null"),
        (GOOD.replace('"timestamp"', '"time"'), 1, "hash_ids, input_length, output_length, time"),
        (GOOD.replace('"hash_ids"', '"ids"'), 1, "ids, input_length"),
        (GOOD.replace("3000", "-1"), 15, "-1"),
        (GOOD.replace("3000", "true"), 15, "true"),
        (GOOD.replace("3000", "3000.0"), 15, "3000.0"),
        (GOOD.replace("3000", "null"), 15, "null"),
        (GOOD.replace("600", '"600"'), 37, '"600"'),
        (GOOD.replace("600", "1e999"), 37, "Infinity"),
        (GOOD.replace("600", str(2**40 + 1)), 37, str(2**40 + 1)),
        (GOOD.replace("7,", "{},"), 59, "an object"),
        (GOOD.replace("[0, 5]", "5"), 74, "5"),
        (GOOD.replace("[0, 5]", "[0, -5]"), 78, "-5"),
        (GOOD.replace("[0, 5]", "[false, 5]"), 75, "false"),
        (GOOD.replace("[0, 5]", "[0, 5.0]"), 78, "5.0"),
        (GOOD.replace("[0, 5]", '[[1, 2], "x"]'), 75, "a list"),
        (GOOD.replace("[0, 5]", f"[0, {2**64}]"), 78, str(2**64)),
        (GOOD.replace("[0, 5]", "[0]"), 74, "1 ids"),
        (GOOD.replace("[0, 5]", "[0, 5, 6]"), 74, "3 ids"),
        (GOOD.replace("[0, 5]", "[]"), 74, "0 ids"),
        (AGENT, 1, "agent, hash_ids"),
    ],
)
def test_a_bad_line_is_shown_with_its_place(tmp_path: Path, line: str, column: int, got: str) -> None:
    """File, line, column, what stood there and what would be right are all told."""
    error = _failure(tmp_path / "t.jsonl", GOOD + "\n" + line + "\n" + GOOD + "\n")
    assert (2, column) == (error.where.line, error.where.column)
    assert got in str(error.got)


def test_columns_ignore_what_stands_inside_texts(tmp_path: Path) -> None:
    """A key's name inside another value does not mislead the column."""
    line = r'{"note": "\"timestamp\": 1", "deep": {"timestamp": 2}, ' + GOOD[1:].replace("3000", "-3")
    error = _failure(tmp_path / "t.jsonl", line)
    assert line.index("-3") + 1 == error.where.column


@pytest.mark.parametrize("line", ["{}", '{"a": 1}', '{"input_length": 1, "input_bytes": 1}'])
def test_keys_of_no_single_format_are_refused(tmp_path: Path, line: str) -> None:
    """The first line must tell the format, and only one."""
    error = _failure(tmp_path / "t.jsonl", line)
    assert (1, 1) == (error.where.line, error.where.column)
    assert "input_bytes (LMCache agent)" in str(error.expected)


@pytest.mark.parametrize("content", ["", "\n", "\ufeff", " \r\n\n"])
def test_a_trace_without_requests_is_refused(tmp_path: Path, content: str) -> None:
    """Empty files, and files of blank lines only, hold nothing to replay."""
    assert "the trace is empty" == _failure(tmp_path / "t.jsonl", content).message


def test_a_blank_line_inside_is_refused(tmp_path: Path) -> None:
    """Only trailing blank lines are passed over; the first inner one is shown."""
    assert 2 == _failure(tmp_path / "t.jsonl", f"{GOOD}\n\n\n{GOOD}\n").where.line


def test_a_line_over_the_cap_is_refused(tmp_path: Path) -> None:
    """A line longer than 8 MiB is refused without reading on; one just under it is read."""
    error = _failure(tmp_path / "t.jsonl", GOOD + "\n" + GOOD + " " * MAX_LINE_BYTES)
    assert (2, MAX_LINE_BYTES + 1) == (error.where.line, error.where.column)
    path = tmp_path / "fits.jsonl"
    path.write_text(GOOD + " " * (MAX_LINE_BYTES - len(GOOD) - 1) + "\n")
    assert 1 == len(list(read_trace(path)))


def test_too_many_lines_are_refused(tmp_path: Path) -> None:
    """The first line beyond the cap is shown."""
    error = _failure(tmp_path / "t.jsonl", f"{GOOD}\n" * 4, max_lines=3)
    assert 4 == error.where.line


@pytest.mark.parametrize(
    ("content", "column", "got"),
    [
        (b"\x7fELF\x02\x01\x01\x00\x00", 8, "byte 0x00"),
        (b'{"a": "\xc3\xa9\xff"}', 9, "byte 0xff"),
        (b"\x00\xff", 1, "byte 0x00"),
        (b"\x89PNG\r\n\x1a\n\x00", 1, "byte 0x89"),
    ],
)
def test_binary_files_are_refused(tmp_path: Path, content: bytes, column: int, got: str) -> None:
    """The first byte that is no text is shown, its column counted in characters."""
    error = _failure(tmp_path / "t.jsonl", content)
    assert (1, column) == (error.where.line, error.where.column)
    assert got == error.got


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    """Folders and pipes are refused at once, without waiting for a writer."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(TraceError, match="a trace is a regular file"):
            read_trace(path)


def test_a_missing_file_is_told_at_once(tmp_path: Path) -> None:
    """The call raises, not the first step of the iteration."""
    with pytest.raises(MissingFileError) as caught:
        read_trace(tmp_path / "none.jsonl")
    assert str(tmp_path / "none.jsonl") == caught.value.where.file


@given(st.binary(max_size=200) | st.lists(st.sampled_from([GOOD, AGENT, "", "{}"])).map("\n".join))
def test_no_bytes_raise_anything_else(tmp_path_factory: pytest.TempPathFactory, content: str | bytes) -> None:
    """Whatever a file holds, it is read or refused with one of the project's own errors."""
    path = tmp_path_factory.getbasetemp() / "fuzz.jsonl"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    try:
        list(read_trace(path))
    except HitproofError as error:
        assert str(path) in str(error)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.sampled_from([GOOD, AGENT]),
    st.sampled_from(["timestamp", "ms_in_session", "input_length", "output_bytes", "hash_ids"]),
    json_values,
)
def test_no_value_of_a_field_raises_anything_else(
    tmp_path_factory: pytest.TempPathFactory, line: str, key: str, value: object
) -> None:
    """Any JSON value under any key is read or refused with a place inside the line."""
    text = json.dumps(json.loads(line) | {key: value}, ensure_ascii=False)
    path = tmp_path_factory.getbasetemp() / "field.jsonl"
    path.write_text(text, encoding="utf-8", errors="replace")
    try:
        list(read_trace(path))
    except TraceError as error:
        assert 1 <= error.where.column <= len(text)


def test_what_is_written_reads_back(tmp_path: Path) -> None:
    """A synthetic workload survives the file, and nothing is left beside it."""
    path = tmp_path / "t.jsonl"
    requests = list(synthesize(500, 7))
    assert 500 == write_trace(path, requests)
    assert requests == list(read_trace(path))
    assert [path] == list(tmp_path.iterdir())


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    """If the requests break off, the target keeps its text and no temporary file stays."""

    def broken() -> Iterator[TraceRequest]:
        yield TraceRequest(0, 1, 1, (0,))
        raise KeyError("broken off")

    path = tmp_path / "t.jsonl"
    path.write_text("old")
    with pytest.raises(KeyError):
        write_trace(path, broken())
    assert "old" == path.read_text()
    assert [path] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "request_",
    [
        TraceRequest(0, 600, 1, (0,)),
        TraceRequest(-1, 1, 1, (0,)),
        TraceRequest(0, 1, 1, (True,)),
        TraceRequest(0, 256, 1, (0,), block_tokens=256),
    ],
)
def test_a_request_that_would_not_read_back_is_not_written(tmp_path: Path, request_: TraceRequest) -> None:
    """The request's line is told and no file appears."""
    path = tmp_path / "t.jsonl"
    with pytest.raises(TraceError) as caught:
        write_trace(path, [TraceRequest(0, 1, 1, (0,)), request_])
    assert 2 == caught.value.where.line
    assert [] == list(tmp_path.iterdir())


def test_no_requests_make_no_file(tmp_path: Path) -> None:
    """An empty trace could not be read, so it is not written."""
    with pytest.raises(TraceError, match="the trace is empty"):
        write_trace(tmp_path / "t.jsonl", [])
    assert [] == list(tmp_path.iterdir())


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """A missing folder and a folder in the file's place are refused."""
    for path in (tmp_path / "none" / "t.jsonl", tmp_path):
        with pytest.raises(MissingFileError):
            write_trace(path, [TraceRequest(0, 1, 1, (0,))])


@pytest.mark.skipif(not SHARED.exists(), reason="the public traces are not beside the repository")
@pytest.mark.parametrize(
    ("name", "rows", "block_tokens"),
    [
        ("mooncake-conversation/conversation_trace.jsonl", 12_031, 512),
        ("mooncake-synthetic/synthetic_trace.jsonl", 3_993, 512),
        ("lmcache-agent/agent_prefix_trace.jsonl", 1_619, 256),
    ],
)
def test_the_public_traces_are_read_whole(name: str, rows: int, block_tokens: int) -> None:
    """Every row of the public traces is accepted."""
    requests = list(read_trace(SHARED / name))
    assert rows == len(requests)
    assert {block_tokens} == {request.block_tokens for request in requests}
