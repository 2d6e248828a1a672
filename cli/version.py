"""The version of hitproof, without any import that takes time."""

from __future__ import annotations

from importlib import metadata

__all__ = ["version_text"]


def version_text() -> str:
    """Name and version; a copy that was never installed has none."""
    try:
        return f"hitproof {metadata.version('hitproof')}"
    except metadata.PackageNotFoundError:
        return "hitproof (not installed)"
