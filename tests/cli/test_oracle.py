"""What `hitproof oracle` answers: tables, JSON, a page, exit codes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hitproof.cli.failure import EXIT_BAD_INPUT, EXIT_FAILED, EXIT_GOOD
from hitproof.cli.oracle_told import as_markdown, error_text, summary
from hitproof.cli.page import oracle_page
from hitproof.integrations.transformers.oracle.rows import (
    Blinded,
    ModelTold,
    OracleReport,
    Row,
    Skipped,
    Validated,
    report_of,
)
from tests.cli.page_reader import read
from tests.cli.running import run

VALIDATED = Validated(2e-6, "rebuild", "intra_layer", ("forward",), 130, 130, 2160.0, ("window/covers_window",))
ROW = Row("gemma-3", "stale_window", 0, True, False, True, 2e-5, Blinded(3.1, "", 128), True, VALIDATED, True, 2160.0)
MODEL = ModelTold("gemma-3", 2e-5, 2e-6, 16, 9, 900, 900, 0, 0, False, 1.0)
KEYS = {"models", "rows", "validated_outside", "blind_inside", "false_rejections"}


def report(*rows: Row, **changed: Any) -> OracleReport:
    """A report on one model with these rows."""
    skipped = (Skipped("gemma-3", "index_<lost>", "the model keeps no routing_index"),)
    return report_of([replace(MODEL, rows=rows, skipped=skipped, **changed)], {"odd_address": "loads read any address"})


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    """One fault that a plan mends and one that a copy does, nine controls, and both files."""
    pytest.importorskip("transformers", minversion="5.24")
    folder = tmp_path_factory.mktemp("oracle")
    files = ("--html", folder / "page.html", "--markdown", folder / "table.md")
    chosen = ("--model", "gemma-3", "--fault", "stale_window", "--fault", "demoted", "--fault", "stale_recurrence")
    counts = ("--seeds", "1", "--controls", "9", "--processes", "1")
    return run("oracle", *chosen, *counts, *files, "--format", "json"), folder


class TestRun:
    """The command on one real model."""

    def test_it_is_told_as_json(self, made: tuple[Any, Path]) -> None:
        """Rows and counts; nothing was outside and nothing rejected, so the command is content."""
        done, _ = made
        assert done.code == EXIT_GOOD, done.out + done.err
        assert set(done.data) >= KEYS
        assert [done.data[key] for key in sorted(KEYS - {"models", "rows"})] == [0, 0, 0]
        assert [row["fault"] for row in done.data["rows"]] == ["stale_window", "demoted"]
        assert [one["fault"] for one in done.data["skipped"]] == ["stale_recurrence"]
        assert {level: n for level, n in done.data["levels"].items() if n} == {"in_place": 1, "intra_layer": 1}
        (model,) = done.data["models"]
        assert (model["controls"], model["reused"]) == (9, model["reusable"])

    def test_the_page_is_whole(self, made: tuple[Any, Path]) -> None:
        """It has a picture and both tables, and loads nothing."""
        text = (made[1] / "page.html").read_text("utf-8")
        assert "<script" not in text and "http-equiv" in text
        assert text.count("<svg") == 1
        assert read(text)

    def test_the_tables_are_markdown(self, made: tuple[Any, Path]) -> None:
        """A row a model and a row a fault."""
        lines = (made[1] / "table.md").read_text("utf-8").splitlines()
        assert [line.split(" | ")[0] for line in lines if line.startswith("| ") and "---" not in line] == [
            "| model",
            "| gemma-3",
            "| fault",
            "| stale_window",
            "| demoted",
        ]


def test_unknown_names_are_bad_input() -> None:
    """The answer names what there is."""
    pytest.importorskip("transformers", minversion="5.24")
    done = run("oracle", "--fault", "stale_windows")
    assert done.code == EXIT_BAD_INPUT
    assert "stale_window, stale_recurrence" in done.err
    assert run("oracle", "--model", "gemma-4").code == EXIT_BAD_INPUT


@pytest.mark.parametrize(
    ("found", "code"),
    [
        (report(ROW), EXIT_GOOD),
        (report(replace(ROW, validated_inside=False)), EXIT_FAILED),
        (report(ROW, false_rejections=1), EXIT_FAILED),
        (report(ROW, controls_outside=1), EXIT_FAILED),
    ],
)
def test_the_exit_code_says_whether_rules_let_wrong_through_or_valid_lie(
    monkeypatch: pytest.MonkeyPatch, found: OracleReport, code: int
) -> None:
    """One row or control outside, or one false rejection, fails the command."""
    pytest.importorskip("transformers", minversion="5.24")
    from hitproof.integrations.transformers.oracle import run as running

    monkeypatch.setattr(running, "run_oracle", lambda *_: found)
    done = run("oracle", "--seeds", "1")
    assert done.code == code
    assert "stale_window" in done.out


def test_counts_are_of_the_rows() -> None:
    """Blind rows inside count only where logits must show the fault; levels and prices are shares of all rows."""
    seen = replace(ROW, blind_caught=False, blind=Blinded(1e-6, "", 130))
    dear = replace(ROW, validated=replace(VALIDATED, cost_us=4000.0, level="in_place"))
    told = report(ROW, seen, replace(seen, observable=False), dear)
    assert (told.blind_inside, told.validated_outside, told.within) == (1, 0, 0.75)
    assert told.levels == {"none": 0, "in_place": 1, "intra_layer": 3, "full_recompute": 0}
    assert (told.reused, told.logical) == (520, 520)
    assert not told.models[0].rows


def test_an_engine_that_always_recomputes_is_named() -> None:
    """The summary says so in words."""
    told = report(ROW, always_recomputes=True, reused=0, false_rejections=9)
    assert "gemma-3 recomputes always: it reused nothing that was valid" in summary(told)


def test_what_raised_and_what_is_endless_is_told() -> None:
    """An arm that raised has no error, and one without a number an endless one; both are drawn and told."""
    raised = replace(ROW, blind=Blinded(None, "NotHeldError: <rows> are missing", 130))
    endless = replace(ROW, blind=Blinded(float("inf"), "", 130))
    told = report(raised, endless)
    assert "1 raised" in as_markdown(told)
    page = oracle_page(told)
    assert "&lt;rows&gt;" in page and "<rows>" not in page
    assert "index_&lt;lost&gt;" in page
    assert (error_text(None), error_text(0.0), error_text(2.34e-5)) == ("raises", "0", "2.3e-05")
