"""`hitproof graph`: draws the form machine of a rulebook."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from hitproof.cli.failure import EXIT_GOOD
from hitproof.cli.options import (
    DEFAULT_RULEBOOK,
    DebugOption,
    Format,
    FormatOption,
    OutOption,
    RulebookArgument,
)

__all__ = ["Drawing", "graph"]


class Drawing(StrEnum):
    """How the machine is drawn."""

    mermaid = "mermaid"
    svg = "svg"


def graph(
    rulebook: RulebookArgument = DEFAULT_RULEBOOK,
    object: Annotated[
        str | None, typer.Option("--object", help="One kind of cache object. (default: all, drawn as one)")
    ] = None,
    drawing: Annotated[Drawing, typer.Option("--as", help="The language of the drawing.")] = Drawing.mermaid,
    out: OutOption = None,
    format: FormatOption = Format.text,
    debug: DebugOption = False,
) -> int:
    """Draw the forms and transitions, as text to paste (Mermaid) or as a picture (SVG)."""
    from hitproof.cli.books import open_book
    from hitproof.cli.output import write_document
    from hitproof.engine.graph import mermaid, svg
    from hitproof.spec.errors import ReferenceNameError
    from hitproof.spec.yaml_fields import suggest

    rules = open_book(rulebook).rules
    if object is not None and object not in rules.objects:
        raise ReferenceNameError(
            "the rulebook has no such object",
            got=object,
            expected=", ".join(rules.objects),
            hint=suggest(object, rules.objects),
        )
    draw = {Drawing.mermaid: mermaid, Drawing.svg: svg}[drawing]
    text = draw(rules if object is None else rules.objects[object])
    about = {"rulebook": rules.name, "object": object, "as": drawing.value}
    write_document(text, out, about, as_json=format is Format.json)
    return EXIT_GOOD
