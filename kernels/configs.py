"""Tile sizes of kernels by target; a table in each `launch.py`, and none is searched for while requests wait."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch

__all__ = ["CompileSpec", "Config", "DEFAULT", "INTERPRET", "config_for", "target_of"]

DEFAULT = "default"
"""Key of a table's configuration for every target that it does not name."""

INTERPRET = "interpret"
"""Name of the target where kernels are interpreted: a program costs the same there whatever its size."""


@dataclass(frozen=True, slots=True)
class Config:
    """How a kernel is cut for one target.

    Args:
        tiles: Compile-time sizes by the names of the kernel's arguments.
        warps: Warps of a program, of 32 lanes (NVIDIA) or 64 (AMD).
        stages: Loads under way at once in a pipelined loop.
    """

    tiles: Mapping[str, int]
    warps: int = 4
    stages: int = 2


@dataclass(frozen=True, slots=True)
class CompileSpec:
    """One way in which a kernel is launched, so that it can be compiled without a GPU.

    Args:
        kernel: The function under `@triton.jit`.
        name: The case in words.
        types: Type of each run-time argument by name, as Triton writes them: `*u8`, `i64`. In the kernel's order.
        constants: Compile-time arguments other than tiles.
        configs: The table of tiles that the launch uses.
        aligned: Run-time arguments that are multiples of 16 in this case.
    """

    kernel: Any
    name: str
    types: Mapping[str, str]
    constants: Mapping[str, Any]
    configs: Mapping[str, Config]
    aligned: tuple[str, ...] = field(default=())


def config_for(table: Mapping[str, Config], device: torch.device) -> Config:
    """The configuration of a table for the device on which a tensor lies."""
    return table.get(target_of(device), table[DEFAULT])


def target_of(device: torch.device) -> str:
    """Name of the target that a device is."""
    return INTERPRET if device.type == "cpu" else _gpu_target(device.index or 0)


@cache
def _gpu_target(index: int) -> str:
    about: Any = torch.cuda.get_device_properties(index)
    if torch.version.hip is not None:
        return str(about.gcnArchName).partition(":")[0]
    return f"sm{about.major}{about.minor}"
