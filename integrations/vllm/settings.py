"""The flag that turns the adapter on, read from the environment of each of vLLM's processes."""

from __future__ import annotations

import os
from collections.abc import Mapping

from hitproof.integrations.gate import Verify
from hitproof.spec.errors import UsageError

__all__ = ["FLAG", "verify_mode"]

FLAG = "HITPROOF_VLLM"
_MODES: Mapping[str, Verify | None] = {
    "": None,
    "0": None,
    "1": "use",
    "use": "use",
    "sampled": "sampled",
    "never": "never",
}


def verify_mode(environment: Mapping[str, str] = os.environ) -> Verify | None:
    """When blocks are measured before a hit uses them; None where the adapter is off.

    Raises:
        UsageError: The flag has a value that means nothing.
    """
    value = environment.get(FLAG, "").strip().lower()
    if value not in _MODES:
        raise UsageError(f"{FLAG} has no such value", got=value, expected="0, 1, use, sampled or never")
    return _MODES[value]
