"""The page about embedding shows an example that runs, and prints what it says."""

from __future__ import annotations

import runpy

import pytest

from tests.docs.console import ROOT
from tests.docs.pages import blocks

PAGE = ROOT / "docs" / "embedding.md"
EXAMPLE = ROOT / "examples" / "gate.py"


def test_the_example_prints_what_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """The program that the page shows is the file, it runs, and its output is the page's."""
    assert EXAMPLE.read_text("utf-8") == blocks(PAGE, "python")[0]
    runpy.run_path(str(EXAMPLE))
    assert capsys.readouterr().out == blocks(PAGE, "text")[0]


def test_the_example_is_short() -> None:
    """It has about thirty lines that do something, so that it is read."""
    lines = [line for line in EXAMPLE.read_text("utf-8").splitlines() if line.strip()]
    assert len(lines) <= 32
