"""A page's template filled in: one HTML document with its style inside, without a script and with nothing to fetch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

__all__ = ["document"]

_STYLE = "replay.css"


def document(template: str, **values: Any) -> str:
    """The page as one HTML document; the same text for the same values, on every machine.

    Args:
        template: The template's file in this folder.
        values: What it names. All of it is escaped but what is `Markup`.
    """
    folder = Path(__file__).parent
    environment = Environment(
        loader=DictLoader({template: (folder / template).read_text("utf-8")}),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # The style is ours, and a style element knows no escapes.
    style = Markup((folder / _STYLE).read_text("utf-8"))
    text = environment.get_template(template).render(style=style, **values)
    return text if text.endswith("\n") else text + "\n"
