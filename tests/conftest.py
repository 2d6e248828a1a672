"""Settings that all tests share; counts that tests noted are told at the end of a run."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

# No test may fail because the machine was busy: correctness alone decides.
settings.register_profile("hitproof", deadline=None)
# A build that gates others draws the same examples each time; at a desk new ones are drawn.
settings.register_profile("hitproof-ci", deadline=None, derandomize=True)
settings.load_profile("hitproof-ci" if os.environ.get("CI") else "hitproof")


# It stands here and not beside the tests that note counts: where workers run the tests, the process that tells the
# outcome reads no other file of this kind.
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line for each property that a passed test recorded."""
    for report in terminalreporter.stats.get("passed", ()):
        for name, value in getattr(report, "user_properties", ()):
            terminalreporter.write_line(f"{name}: {value}")
