"""The oracle: faults done to real models, and their logits in three arms: cold, blind, validated."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["FAULTS", "Fault", "OracleReport", "Plan", "run_model", "run_oracle"]

_WHERE = {
    "FAULTS": "catalogue",
    "Fault": "fault",
    "OracleReport": "rows",
    "Plan": "run",
    "run_model": "run",
    "run_oracle": "run",
}


def __getattr__(name: str) -> Any:
    """Torch and transformers are loaded when something of it is asked for."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
