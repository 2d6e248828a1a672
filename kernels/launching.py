"""The one door through which kernels are launched, where those who test or count can look on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from hitproof.kernels.configs import Config, config_for

__all__ = ["Launch", "launch", "recorded", "unit_of", "watched"]

_TYPES = {
    torch.uint8: "*u8",
    torch.int32: "*i32",
    torch.int64: "*i64",
    torch.bool: "*i1",
    torch.float32: "*fp32",
    torch.bfloat16: "*bf16",
    torch.float16: "*fp16",
}
_WATCHERS: list[list[Launch]] = []
_RECORDERS: list[list[Callable[[], None]]] = []


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch that was seen.

    Args:
        kernel: Name of the function.
        grid: Programs along each axis.
        types: Type of each run-time argument by name; whole numbers are `int`, whatever their size.
        constants: Compile-time arguments, tiles included.
    """

    kernel: str
    grid: tuple[int, ...]
    types: Mapping[str, str]
    constants: Mapping[str, Any]


def launch(
    kernel: Any, grid: tuple[int, ...], configs: Mapping[str, Config], /, *arguments: Any, **constants: Any
) -> None:
    """Launch a kernel on the device of its first tensor, with that target's tiles; returns without waiting.

    Args:
        kernel: The function under `@triton.jit`.
        grid: Programs along each axis; nothing is launched where one is 0. A tile's name may stand in it only by way
            of `config_for`, which the caller asks for sizes.
        configs: Tiles by target.
        arguments: Run-time arguments in order.
        constants: Compile-time arguments other than tiles.
    """
    if 0 in grid:
        return
    device = next(one.device for one in arguments if isinstance(one, torch.Tensor))
    config = config_for(configs, device)
    for seen in _WATCHERS:
        types = dict(zip(kernel.arg_names, map(_type_of, arguments), strict=False))
        seen.append(Launch(kernel.__name__, grid, types, {**constants, **config.tiles}))
    for kept in _RECORDERS:
        kept.append(partial(launch, kernel, grid, configs, *arguments, **constants))
    with torch.cuda.device(device) if device.type == "cuda" else nullcontext():
        kernel[grid](*arguments, **constants, **config.tiles, num_warps=config.warps, num_stages=config.stages)


@contextmanager
def watched() -> Iterator[list[Launch]]:
    """All launches of this process while the context is open."""
    seen: list[Launch] = []
    _WATCHERS.append(seen)
    try:
        yield seen
    finally:
        # By identity: two watchers that have seen the same are equal.
        _WATCHERS[:] = [one for one in _WATCHERS if one is not seen]


@contextmanager
def recorded() -> Iterator[list[Callable[[], None]]]:
    """All launches of this process while the context is open, to be made again: on the same memory, which must stay."""
    kept: list[Callable[[], None]] = []
    _RECORDERS.append(kept)
    try:
        yield kept
    finally:
        _RECORDERS.remove(kept)


def unit_of(largest: int, *numbers: int) -> int:
    """The largest power of two, up to `largest`, that divides all numbers: how many bytes one access may take.

    Args:
        largest: A power of two.
        numbers: Addresses and steps in bytes; 0 is a multiple of everything.
    """
    together = largest
    for number in numbers:
        together |= number
    return together & -together


def _type_of(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return _TYPES[value.dtype]
    return "fp32" if isinstance(value, float) else "int"
