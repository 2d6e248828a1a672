"""Which backend runs where nobody named one: kernels where a GPU proved itself, the reference elsewhere."""

from __future__ import annotations

import warnings
from functools import cache

import torch

from hitproof.kernels.blocks import Geometry, Pool
from hitproof.kernels.checksum import launch, reference
from hitproof.kernels.registry import require_triton
from hitproof.spec.errors import UsageError

__all__ = ["backend_on", "default_backend", "self_check"]


def backend_on(device: str) -> str:
    """The backend for rows on a device.

    Args:
        device: `cpu`, or `cuda` for any GPU, as torch calls them.
    """
    return default_backend() if device == "cuda" else "torch"


@cache
def default_backend() -> str:
    """`triton` where there is a GPU whose kernels pass the self-check, else `torch`; found once in a process.

    A GPU that is there and cannot be used is warned of, once. Without a GPU there is nothing to warn of.
    """
    if not torch.cuda.is_available():
        return "torch"
    try:
        require_triton()
        self_check("cuda")
    except UsageError as error:
        fault = error.message
    except Exception as error:
        # Whatever a driver or a compiler does at the start, requests are served by the reference.
        fault = f"{type(error).__name__}: {error}"
    else:
        return "triton"
    warnings.warn(
        f"hitproof: the GPU's kernels are not used, the reference runs: {fault}", RuntimeWarning, stacklevel=2
    )
    return "torch"


def self_check(device: str) -> None:
    """Compile one kernel, run it on known bytes, and compare with the reference.

    Raises:
        RuntimeError: It gave another sum.
    """
    geometry = Geometry(4, 2, 13, offset=3)
    buffer = (torch.arange(geometry.extent(3)) % 251).to(torch.uint8)
    table = torch.tensor([2, 0])
    expected = reference.share_of(Pool(buffer, geometry, 3), table, 5, 1)
    got = launch.share_of(Pool(buffer.to(device), geometry, 3), table.to(device), 5, 1)
    if got != expected:
        raise RuntimeError(f"the fingerprint of known bytes is {got:#x}, not {expected:#x}")
