"""What the tests of the command line share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.running import copy_book


@pytest.fixture
def book(tmp_path: Path) -> Path:
    """A copy of the embedded rulebook that a test may spoil."""
    return copy_book(tmp_path)
