"""The page on rates shows a file that the loader takes, and names every rate."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from hitproof.rules.rates import load_rates, rate_facts
from hitproof.rules.resolve import load_rulebook
from hitproof.spec.rates import Origin
from tests.docs.console import ROOT
from tests.docs.pages import blocks, rows

PAGE = ROOT / "docs" / "calibrate.md"


def test_the_shown_file_is_accepted(tmp_path: Path) -> None:
    """The YAML block is a rates file of the embedded rulebook."""
    (shown,) = blocks(PAGE, "yaml")
    path = tmp_path / "rates.yaml"
    path.write_text(shown, "utf-8")
    assert {"prefill_us_per_token": 55.0} == load_rates(path, load_rulebook("mixed_attention")).values


def test_every_rate_has_its_row() -> None:
    """The table tells how each rate of the rulebook is measured, and the text names each origin."""
    told = rows(PAGE, "rate", "without an accelerator", "with torch and a CUDA device")
    assert {f"`{name}`" for name in rate_facts(load_rulebook("mixed_attention"))} == {row[0] for row in told}
    text = PAGE.read_text("utf-8")
    assert [] == [origin for origin in get_args(Origin) if f"`{origin}`" not in text]
