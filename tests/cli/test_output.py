"""What is written: JSON that any reader accepts, text that steers no terminal, files whole or not at all."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import pytest

from hitproof.cli.output import clean, plain_data, table, write_file, write_json, write_line
from hitproof.cli.progress import progress
from hitproof.spec.decision import Decision, PlanStep
from hitproof.spec.errors import MissingFileError


def test_plain_data_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    """Decisions become plain data: sets sorted, endless prices null."""
    step = PlanStep("kv", 0, "bounce", "relayout", "in_place", None, float("inf"))
    write_json({"decision": Decision("repair", 9, 8, (step,), float("nan")), "marks": frozenset({3, 1})})
    data = json.loads(capsys.readouterr().out)
    assert [1, 3] == data["marks"]
    assert (None, None) == (data["decision"]["cost_us"], data["decision"]["plan"][0]["cost_us"])
    assert [1, "a"] == plain_data({"a", 1})


def test_clean_text_keeps_lines_and_nothing_else() -> None:
    """Escape, bell, carriage return and bidirectional marks are replaced; line ends and tabs stay."""
    assert "a\n\tb" == clean("a\n\tb")
    assert "?[31m?" == clean("\x1b[31m\x07").replace("\N{REPLACEMENT CHARACTER}", "?")
    assert "??" == clean("\r\u202e").replace("\N{REPLACEMENT CHARACTER}", "?")


def test_a_table_shows_markup_as_it_stands() -> None:
    """Text in brackets is no markup of ours."""
    from hitproof.cli.output import show

    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdout", out)
        show(table("[red]Title", ("[b]one",), [("[link=x]cell[/]",)]), "[bold]text")
    for part in ("[red]Title", "[b]one", "[link=x]cell[/]", "[bold]text"):
        assert part in out.getvalue()


def test_what_a_stream_cannot_encode_is_escaped() -> None:
    """An ASCII stream gets escapes instead of an error."""
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    write_line(stream, "caf\u00e9")
    assert b"caf\\xe9\n" == raw.getvalue()


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    """A file that cannot be encoded leaves the old one, and no other file beside it."""
    path = tmp_path / "file"
    write_file(path, "old")
    with pytest.raises(MissingFileError):
        write_file(path, "new \ud800")
    assert "old\n" == path.read_text()
    assert ["file"] == os.listdir(tmp_path)


def test_progress_is_silent_off_a_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    """Logs of a CI run hold results, no animation."""
    with progress("working") as tell:
        tell("still working")
    assert ("", "") == capfd.readouterr()
