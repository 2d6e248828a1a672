"""All commands under one name."""

from __future__ import annotations

from typing import Annotated

import typer

from hitproof.cli.alerts import alerts
from hitproof.cli.calibrate import calibrate
from hitproof.cli.check import check
from hitproof.cli.diff import diff
from hitproof.cli.explain import explain
from hitproof.cli.failure import EXIT_GOOD
from hitproof.cli.graph import graph
from hitproof.cli.kernels import kernels_app
from hitproof.cli.mutate import mutate
from hitproof.cli.options import DebugOption, Format, FormatOption
from hitproof.cli.oracle import oracle
from hitproof.cli.output import write_json, write_text
from hitproof.cli.profiles import profile_app
from hitproof.cli.replay import replay
from hitproof.cli.scenarios import test
from hitproof.cli.schema import schema
from hitproof.cli.soak import soak
from hitproof.cli.traces import trace_app
from hitproof.cli.verify import verify
from hitproof.cli.version import version_text

__all__ = ["app"]

app = typer.Typer(
    name="hitproof",
    help="Checks that a prefix-cache hit may really be reused: rules as data, proved before they run.",
    epilog="Exit codes: 0 good, 1 refuted or failed, 2 unknown, 3 bad input or bad usage, 4 internal error.",
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        write_text(version_text())
        raise typer.Exit(EXIT_GOOD)


@app.callback()
def _all(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_show_version, help="Show the version.")
    ] = False,
    debug: DebugOption = False,
) -> None:
    """Checks that a prefix-cache hit may really be reused: rules as data, proved before they run."""


def version(format: FormatOption = Format.text, debug: DebugOption = False) -> int:
    """Show the version."""
    if format is Format.json:
        write_json({"name": "hitproof", "version": version_text().partition(" ")[2]})
    else:
        write_text(version_text())
    return EXIT_GOOD


for _command in (
    check,
    verify,
    mutate,
    diff,
    test,
    explain,
    graph,
    replay,
    soak,
    oracle,
    calibrate,
    schema,
    alerts,
    version,
):
    app.command(_command.__name__)(_command)
app.add_typer(kernels_app, name="kernels")
app.add_typer(profile_app, name="profile")
app.add_typer(trace_app, name="trace")
