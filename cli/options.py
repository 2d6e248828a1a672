"""Arguments and options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "DEFAULT_RULEBOOK",
    "DebugOption",
    "Format",
    "FormatOption",
    "OutOption",
    "ProfileOption",
    "RatesOption",
    "ReportFileOption",
    "ReportFormat",
    "ReportFormatOption",
    "RulebookArgument",
]

DEFAULT_RULEBOOK = "mixed_attention"


class Format(StrEnum):
    """How a command answers."""

    text = "text"
    json = "json"


class ReportFormat(StrEnum):
    """How a command answers that pipelines run: people, programs, and what pipelines show."""

    text = "text"
    json = "json"
    sarif = "sarif"
    junit = "junit"
    github = "github"
    markdown = "markdown"


RulebookArgument = Annotated[
    str,
    typer.Argument(metavar="RULEBOOK", help="An embedded rulebook's name, a folder, or a rulebook.yaml."),
]
FormatOption = Annotated[Format, typer.Option("--format", help="Text for people, JSON for programs.")]
ReportFormatOption = Annotated[
    ReportFormat, typer.Option("--format", help="Text for people, JSON for programs, the others for pipelines.")
]
ReportFileOption = Annotated[
    list[str] | None,
    typer.Option("--report", metavar="FORMAT=FILE", help="Also write sarif, junit, github or markdown."),
]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show the traceback of an internal error.")]
OutOption = Annotated[Path | None, typer.Option("--out", help="Write to this file instead of stdout.")]
RatesOption = Annotated[
    Path | None,
    typer.Option("--rates", metavar="FILE", help="Rates of `hitproof calibrate`. (default: those of the rulebook)"),
]
ProfileOption = Annotated[
    list[str] | None,
    typer.Option("--profile", help="A shipped profile's name or a file; again for more. (default: all)"),
]
