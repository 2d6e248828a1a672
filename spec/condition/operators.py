"""The operators of the language as functions on plain known values."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

__all__ = ["ARITHMETIC", "COMPARISON", "EXTREME", "MIRRORED", "OPPOSITE"]

ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
}
COMPARISON: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
EXTREME: dict[str, Callable[..., Any]] = {"min": min, "max": max, "abs": abs}

OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", "<=": ">", ">": "<="}
"""The comparison that holds exactly where the first does not."""

MIRRORED = {"==": "==", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
"""The comparison that says the same with its sides exchanged."""
