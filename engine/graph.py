"""Diagrams of the form machine: Mermaid text and a self-contained SVG, written without any drawing tool."""

from __future__ import annotations

from hitproof.engine.form_graph import START, Machinery, form_graph
from hitproof.engine.graph_svg import draw

__all__ = ["mermaid", "svg"]


def mermaid(rules: Machinery) -> str:
    """The form machine as a Mermaid state diagram (`stateDiagram-v2`).

    Args:
        rules: One object kind or group; or a whole rulebook, where all home forms are drawn as `home`.

    Returns:
        The text, ending in a line break; events between the same forms share an arrow.
    """
    graph = form_graph(rules)
    names = {form: f"form{index}" for index, form in enumerate(graph.forms)}
    lines = ["stateDiagram-v2", "    direction LR"]
    lines += [f'    state "{_escape(form)}" as {name}' for form, name in names.items()]
    if START in names:
        lines.append(f"    [*] --> {names[START]}")
    for (source, target), events in graph.edges.items():
        lines.append(f"    {names[source]} --> {names[target]}: {_escape(', '.join(events))}")
    return "\n".join(lines) + "\n"


def svg(rules: Machinery) -> str:
    """The form machine as an SVG image that needs no other file, font or script.

    Args:
        rules: One object kind or group; or a whole rulebook, where all home forms are drawn as `home`.

    Returns:
        The image's text. Forms stand in the order of a life from top to bottom; arrows on the right lead on,
        those on the left lead back; an event that leaves the form as it is stands inside the form's box.
    """
    return draw(form_graph(rules))


def _escape(text: str) -> str:
    """Text with everything but plain words as Mermaid's numeric entities."""
    return "".join(c if c.isalnum() or c in "_, -" else f"#{ord(c)};" for c in text)
