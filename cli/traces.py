"""`hitproof trace`: makes request traces to replay."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hitproof.cli.failure import EXIT_GOOD
from hitproof.cli.options import DebugOption, Format, FormatOption

__all__ = ["trace_app"]

trace_app = typer.Typer(help="Request traces.")


@trace_app.callback()
def _group() -> None:
    """Request traces."""


@trace_app.command("synth")
def synth(
    out: Annotated[Path, typer.Option("--out", help="The file to write, JSON lines.")],
    requests: Annotated[
        int, typer.Option("--requests", min=1, max=10_000_000, help="How many requests to draw.")
    ] = 2_000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed draws the same trace.")] = 0,
    format: FormatOption = Format.text,
    debug: DebugOption = False,
) -> int:
    """Draw a synthetic chat workload after the published statistics of a real one."""
    from hitproof.cli.output import write_json, write_text
    from hitproof.cli.progress import progress
    from hitproof.engine.trace import synthesize, write_trace

    with progress(f"drawing {requests} requests"):
        written = write_trace(out, synthesize(requests, seed))
    if format is Format.json:
        write_json({"file": str(out), "requests": written, "seed": seed})
    else:
        write_text(f"written: {out}, {written} requests, seed {seed}")
    return EXIT_GOOD
