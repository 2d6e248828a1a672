"""Plain data as one text that everybody writes alike, and the digest of it."""

from __future__ import annotations

import hashlib
import json
from typing import Any

__all__ = ["canonical", "digest_of"]


def canonical(value: Any) -> bytes:
    """Canonical JSON: sorted keys, no spaces, ASCII; equal data is equal bytes.

    Args:
        value: None, booleans, integers, texts, and lists and mappings of them.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def digest_of(value: Any) -> str:
    """32 hexadecimal digits of the canonical text."""
    return hashlib.blake2b(canonical(value), digest_size=16).hexdigest()
