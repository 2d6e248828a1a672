"""A prefix cache for models of `transformers`; torch and the library are loaded when something of it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["Found", "NotHeldError", "PrefixCache", "Served", "StateMap", "profile_of", "tiny_model"]

_WHERE = {
    "Found": "served",
    "NotHeldError": "state",
    "PrefixCache": "prefix_cache",
    "Served": "served",
    "StateMap": "state",
    "profile_of": "state",
    "tiny_model": "tiny",
}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
