"""`hitproof alerts`: the thresholds of a rulebook as alerts for Prometheus, or as a Grafana dashboard."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from hitproof.cli.failure import EXIT_GOOD
from hitproof.cli.options import DEFAULT_RULEBOOK, DebugOption, Format, FormatOption, OutOption, RulebookArgument

__all__ = ["Watch", "alerts"]


class Watch(StrEnum):
    """What the thresholds are made into."""

    prometheus = "prometheus"
    grafana = "grafana"


def alerts(
    rulebook: RulebookArgument = DEFAULT_RULEBOOK,
    watch: Annotated[
        Watch, typer.Option("--as", help="Alerting rules for Prometheus, or a dashboard for Grafana.")
    ] = Watch.prometheus,
    out: OutOption = None,
    format: FormatOption = Format.text,
    debug: DebugOption = False,
) -> int:
    """Make a rulebook's thresholds into alerting rules, or all its metrics into a dashboard."""
    from hitproof.cli.books import open_book
    from hitproof.cli.output import write_document
    from hitproof.engine.observe import alerts_yaml, dashboard_json

    rules = open_book(rulebook).rules
    text = {Watch.prometheus: alerts_yaml, Watch.grafana: dashboard_json}[watch](rules)
    write_document(text, out, {"rulebook": rules.name, "as": watch.value}, as_json=format is Format.json)
    return EXIT_GOOD
