"""The version of hitproof, without any import that takes time."""

from __future__ import annotations

from importlib import metadata

__all__ = ["version_number", "version_text"]


def version_number() -> str | None:
    """The version alone; None for a copy that was never installed."""
    try:
        return metadata.version("hitproof")
    except metadata.PackageNotFoundError:
        return None


def version_text() -> str:
    """Name and version; a copy that was never installed has none."""
    return f"hitproof {version_number() or '(not installed)'}"
