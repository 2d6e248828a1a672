"""A launch made ready: what it takes is on the device and its sizes are known, so that a graph can capture it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hitproof.kernels.configs import Config
from hitproof.kernels.launching import launch

__all__ = ["Step"]


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One launch.

    Args:
        kernel: The function under `@triton.jit`.
        grid: Programs along each axis.
        configs: Tiles by target.
        arguments: Run-time arguments in order.
        constants: Compile-time arguments other than tiles.
    """

    kernel: Any
    grid: tuple[int, ...]
    configs: Mapping[str, Config]
    arguments: tuple[Any, ...]
    constants: Mapping[str, Any]

    def enqueue(self) -> None:
        """Launch it; neither allocates nor waits."""
        launch(self.kernel, self.grid, self.configs, *self.arguments, **self.constants)
