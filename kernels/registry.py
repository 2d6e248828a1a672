"""Which implementation each repair's name is bound to; torch is imported when one is asked for, not before."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from hitproof.spec.errors import UsageError

__all__ = ["BACKENDS", "KERNELS", "implementation", "require_torch"]

BACKENDS = ("torch",)
"""Names of implementations: `torch` is the readable reference."""

KERNELS: tuple[str, ...] = (
    "checksum",
    "index_rebuild",
    "index_remap",
    "promote",
    "recompress",
    "relayout",
    "requantize",
    "tail_fill",
    "window_roll",
)
"""The repairs that a kernel runs: a folder each, whose `bind.py` maps a request to the implementation."""


def implementation(repair: str, backend: str = "torch") -> Callable[..., Any]:
    """What runs a repair, as `run(request, job)` of its `bind.py`.

    Raises:
        UsageError: No kernel has the name, there is no such backend, or torch is missing.
    """
    if repair not in KERNELS:
        raise UsageError("no kernel runs this repair", got=repair, expected=", ".join(KERNELS))
    if backend not in BACKENDS:
        raise UsageError("there is no such backend", got=backend, expected=", ".join(BACKENDS))
    require_torch()
    run: Callable[..., Any] = import_module(f"hitproof.kernels.{repair}.bind").run
    return run


def require_torch() -> None:
    """Kernels need torch.

    Raises:
        UsageError: It is not installed.
    """
    if find_spec("torch") is None:
        raise UsageError(
            "kernels need torch, which is not installed",
            expected="the packages torch and triton",
            hint="pip install 'hitproof[kernels]'",
        )
