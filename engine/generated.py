"""Generated functions: flat Python text from checked trees, with a handful of pure builtins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hitproof.engine.facts import FactTypes
from hitproof.spec.price import TICKS

__all__ = ["Function", "generated", "new_segment", "price_body"]

Function = Callable[..., Any]


def generated(name: str, signature: str, body: list[str], constants: dict[str, Any]) -> Function:
    """A function of that name, signature and body; the constants are its only globals."""
    source = f"def {name}({signature}):\n" + "\n".join(f"    {line}" for line in body)
    namespace: dict[str, Any] = {
        "__builtins__": {
            "int": int,
            "frozenset": frozenset,
            "min": min,
            "max": max,
            "abs": abs,
            "bool": bool,
            "type": type,
        }
    }
    namespace.update(constants)
    # The text comes from checked trees and declared names only, never from a user's string.
    exec(compile(source, f"<generated {name}>", "exec"), namespace)
    function: Function = namespace[name]
    return function


def price_body(value: str, known: str, then: str) -> list[str]:
    """Statements that leave a price in ticks in `c`, as `spec.price.ticks` defines it, and use it."""
    read = f"c = int(({value}) * {float(TICKS)!r} + 0.5)"
    return [read if known == "True" else f"{read} if {known} else unknown", "if c < 0: c = 0", then]


def new_segment(types: FactTypes) -> dict[str, Any]:
    """What generated code makes segments with."""
    return {"new": object.__new__, "cls": types.segment}
