"""The tables of the oracle's run have the headings that the command writes, and the page names what is declared."""

from __future__ import annotations

import pytest

from hitproof.cli.oracle_told import fault_table, model_table
from hitproof.integrations.transformers.oracle.rows import report_of
from tests.docs.console import ROOT
from tests.docs.pages import rows, squeezed

PAGE = ROOT / "docs" / "oracle.md"
NOTHING = report_of([], {})


def test_the_readme_has_a_row_for_each_model() -> None:
    """Under the command's own headings, in its order."""
    pytest.importorskip("transformers", minversion="5.24")
    from hitproof.integrations.transformers.tiny import NAMES

    shown = rows(ROOT / "README.md", *model_table(NOTHING)[1])
    assert [row[0] for row in shown] == list(NAMES)


def test_the_page_has_a_row_for_each_fault() -> None:
    """Every fault of the catalogue was run, and those that nothing can show are named with their reason."""
    pytest.importorskip("transformers", minversion="5.24")
    from hitproof.integrations.transformers.oracle.catalogue import FAULTS

    shown = rows(PAGE, *fault_table(NOTHING)[1])
    assert [row[0] for row in shown] == list(FAULTS)
    text = squeezed(PAGE.read_text("utf-8"))
    for fault in FAULTS.values():
        assert not fault.unobservable or f"`{fault.id}`" in text
