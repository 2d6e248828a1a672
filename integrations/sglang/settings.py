"""The name that turns the gate on, and the one setting beside it."""

from __future__ import annotations

import os
from collections.abc import Mapping

from hitproof.integrations.gate import Verify
from hitproof.spec.errors import UsageError

__all__ = ["BACKEND", "VERIFY", "verify_mode"]

BACKEND = "hitproof"
"""What `--radix-cache-backend` is given to turn the gate on."""

VERIFY = "HITPROOF_SGLANG_VERIFY"
_MODES: Mapping[str, Verify] = {"": "use", "use": "use", "sampled": "sampled", "never": "never"}


def verify_mode(environment: Mapping[str, str] = os.environ) -> Verify:
    """When pages are measured before a hit uses them; at every use where nothing is set.

    Raises:
        UsageError: The variable has a value that means nothing.
    """
    value = environment.get(VERIFY, "").strip().lower()
    if value not in _MODES:
        raise UsageError(f"{VERIFY} has no such value", got=value, expected="use, sampled or never")
    return _MODES[value]
