"""Which versions of SGLang this adapter was written against and tested with."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from hitproof.spec.errors import UsageError

__all__ = ["SUPPORTED", "installed_version", "require_supported"]

SUPPORTED = ("0.5.23",)
"""Versions that are supported; SGLang moves its cache classes in patch releases too."""


def installed_version() -> str | None:
    """The version of SGLang here; None where there is none."""
    try:
        return version("sglang")
    except PackageNotFoundError:
        return None


def require_supported(found: str | None) -> None:
    """Refuse a version that nobody tested.

    Raises:
        UsageError: SGLang is not installed, or of another version.
    """
    if found is None or found.partition("+")[0] not in SUPPORTED:
        raise UsageError(
            "this version of SGLang is not supported by hitproof",
            got=found or "none installed",
            expected=", ".join(SUPPORTED),
            hint="leave --radix-cache-backend hitproof out to serve without the gate",
        )
