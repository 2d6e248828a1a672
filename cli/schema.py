"""`hitproof schema`: the JSON Schema of the files that people write."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated

import typer

from hitproof.cli.failure import EXIT_GOOD
from hitproof.cli.options import DebugOption, Format, FormatOption, OutOption

__all__ = ["SchemaKind", "schema", "schema_text"]


class SchemaKind(StrEnum):
    """Files that have a schema."""

    rulefile = "rulefile"
    repair = "repair"
    profile = "profile"
    scenario = "scenario"
    rates = "rates"


def schema(
    kind: Annotated[SchemaKind, typer.Option("--of", help="The kind of file.")] = SchemaKind.rulefile,
    out: OutOption = None,
    format: FormatOption = Format.text,
    debug: DebugOption = False,
) -> int:
    """Print the JSON Schema (draft-07) of rule files, for editors; it is JSON in any format."""
    from hitproof.cli.output import write_document, write_text

    text = schema_text(kind)
    if out is None:
        write_text(text)
    else:
        write_document(text, out, {"kind": kind.value}, as_json=format is Format.json)
    return EXIT_GOOD


def schema_text(kind: str) -> str:
    """The schema of one kind of file, as it stands in `docs/schema/`."""
    from hitproof.spec.json_schema import json_schema

    return json.dumps(json_schema(kind), indent=2) + "\n"
