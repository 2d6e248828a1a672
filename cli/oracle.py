"""`hitproof oracle`: faults done to real models, and what blind and validated reuse make of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hitproof.cli.failure import EXIT_FAILED, EXIT_GOOD
from hitproof.cli.options import DebugOption, Format, FormatOption
from hitproof.spec.errors import UsageError

__all__ = ["oracle"]


def oracle(
    model: Annotated[
        list[str] | None, typer.Option("--model", help="A tiny model's name; again for more. (default: all six)")
    ] = None,
    fault: Annotated[
        list[str] | None, typer.Option("--fault", metavar="NAME", help="Do this fault; again for more. (default: all)")
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, max=100, help="Seeds of weights and tokens.")] = 2,
    controls: Annotated[
        int, typer.Option("--controls", min=0, max=100_000, help="Valid requests a model, which must be served.")
    ] = 100,
    processes: Annotated[int, typer.Option("--processes", min=1, max=64, help="Models at a time.")] = 2,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a page with a picture to this file too.")
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option("--markdown", metavar="FILE", help="Write the tables as Markdown to this file too.")
    ] = None,
    format: FormatOption = Format.text,
    debug: DebugOption = False,
) -> int:
    """Do faults to tiny models of transformers; compare cold, blind and validated logits, and serve valid controls."""
    from hitproof.cli.oracle_told import as_markdown, tell
    from hitproof.cli.output import check_target, show, write_file, write_json
    from hitproof.cli.progress import progress

    for file in (html, markdown):
        if file is not None:
            check_target(file)
    if html is not None:
        from hitproof.cli.page import oracle_page
    try:
        from hitproof.integrations.transformers.oracle.run import Plan, run_oracle
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "transformers"):
            raise
        raise UsageError(
            "the oracle runs models of transformers", got="no transformers", expected="hitproof[transformers]"
        ) from error

    plan = Plan.of(model, fault, seeds, controls)
    with progress("asking the oracle") as told:
        report = run_oracle(plan, processes, told)
    if html is not None:
        write_file(html, oracle_page(report))
    if markdown is not None:
        write_file(markdown, as_markdown(report))
    if format is Format.json:
        write_json(report)
    else:
        tell(report)
        for file in (html, markdown):
            if file is not None:
                show(f"written: {file}")
    return EXIT_GOOD if report.good else EXIT_FAILED
