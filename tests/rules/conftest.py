"""What the tests of the rule room share: the embedded rulebook, read and resolved once."""

from __future__ import annotations

from pathlib import Path

import pytest

from hitproof.rules.resolve import resolve
from hitproof.rules.source import RuleSource, read_source
from hitproof.spec.rulebook import Rulebook
from tests.rules.broken_book import copy_book


@pytest.fixture(scope="session")
def source() -> RuleSource:
    """The files of the embedded rulebook."""
    return read_source("mixed_attention")


@pytest.fixture(scope="session")
def rulebook(source: RuleSource) -> Rulebook:
    """The embedded rulebook, resolved."""
    return resolve(source)


@pytest.fixture
def book(tmp_path: Path) -> Path:
    """A copy of the embedded rulebook that a test may edit."""
    return copy_book(tmp_path)
