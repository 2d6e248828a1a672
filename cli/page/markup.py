"""Elements of HTML and SVG as escaped text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from markupsafe import Markup, escape

__all__ = ["Content", "box", "breadth", "label", "number", "shortened", "tag", "text"]

_BREADTHS = {
    **dict.fromkeys("fijlrt.,:;'|!()[] -", 5.2),
    **dict.fromkeys("mwMW@%", 12.5),
}

Content = str | Markup
"""Plain text, which is escaped, or markup, which is not."""


def tag(name: str, *children: Content, **attributes: object) -> Markup:
    """An element; everything that is not markup already is escaped.

    Args:
        name: The element's name.
        children: What stands inside.
        attributes: Its attributes; `class_` is `class`, `_` in a name is `-`, None leaves one out.
    """
    written = Markup("").join(
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), number(value))
        for key, value in attributes.items()
        if value is not None
    )
    inside = Markup("").join(map(escape, children))
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(name), written, inside)


def box(width: float, height: float, title: str, children: Iterable[Content], *, description: str = "") -> Markup:
    """A picture of this size, in pixels, that scales down with its column; the title is what a screen reader says."""
    told = [tag("title", title), *([tag("desc", description)] if description else [])]
    return tag(
        "svg",
        *told,
        *children,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {number(width)} {number(height)}",
        width=width,
        height=height,
        role="img",
        aria_label=title,
    )


def text(content: str, x: float, y: float, *, anchor: str = "start", kind: str = "") -> Markup:
    """A line of text in a picture; `kind` is its class."""
    return tag("text", content, x=x, y=y, text_anchor=None if anchor == "start" else anchor, class_=kind or None)


def label(name: str, characters: int, x: float, y: float, *, anchor: str = "start", kind: str = "label") -> Markup:
    """A name in a picture, cut where it is long; what is cut can be read by pointing at it."""
    shown = shortened(name, characters)
    whole = tag("title", name) if shown != name else ""
    return tag("text", whole, shown, x=x, y=y, text_anchor=None if anchor == "start" else anchor, class_=kind)


def breadth(content: str) -> float:
    """About how many pixels a line of 12-pixel text takes, in a wide typeface; rather too much than too little."""
    return sum(
        _BREADTHS.get(character, 9.0 if character.isupper() else 7.7 if character.isascii() else 12.5)
        for character in content
    )


def number(value: object) -> str:
    """The value as an attribute has it: pixels to a tenth, without trailing zeros."""
    if isinstance(value, float):
        return f"{value:.1f}".removesuffix(".0")
    return str(value)


def shortened(label: str, characters: int) -> str:
    """The label, cut in the middle where it is longer."""
    if len(label) <= characters:
        return label
    head = (characters - 1) * 2 // 3
    parts: Sequence[str] = (label[:head], label[len(label) - (characters - 1 - head) :])
    return "\N{HORIZONTAL ELLIPSIS}".join(parts)
