"""Versions of LMCache whose plugin interface is known."""

from __future__ import annotations

from importlib import metadata

from hitproof.spec.errors import UsageError

__all__ = ["SUPPORTED", "check_version"]

SUPPORTED = ("0.5.6",)
"""Read and tested; another version may pass other arguments or keys."""


def check_version(found: str | None = None) -> str:
    """The installed version.

    Args:
        found: In place of the installed one.

    Raises:
        UsageError: LMCache is missing, or its version is none of the supported ones.
    """
    if found is None:
        try:
            found = metadata.version("lmcache")
        except metadata.PackageNotFoundError as error:
            raise UsageError("lmcache is not installed", expected=" or ".join(SUPPORTED)) from error
    if found not in SUPPORTED:
        raise UsageError(
            "this version of lmcache is not supported",
            got=found,
            expected=" or ".join(SUPPORTED),
            hint="install a supported one, or leave the plugin out of storage_plugins",
        )
    return found
