"""A job brought to the device where its backend runs, and what was written there brought back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeAlias

import torch

from hitproof.kernels.jobs import Held, Job

__all__ = ["device_of", "moved"]

_Places: TypeAlias = "dict[int, tuple[torch.Tensor, torch.Tensor]]"
"""Bytes of whole memories, here and there, by address here."""


def device_of(job: Job) -> str:
    """Where the rows lie that a job writes, or else reads: `cpu` or `cuda` (AMD's too, as torch calls them)."""
    place = job.target or job.held
    return place.layers[0].buffer.device.type if place is not None and place.layers else "cpu"


def moved(job: Job, device: str) -> tuple[Job, Callable[[], None]]:
    """The same job on copies on another device.

    Args:
        job: Rows, sources and parameters; untouched.
        device: Where to.

    Returns:
        The copy, whose addresses are those of the job; and what writes all that changed there back into the job.
    """
    places: _Places = {}
    copy: Job = _moved(job, device, places)

    def back() -> None:
        for ours, theirs in places.values():
            ours.copy_(theirs)

    return copy, back


def _moved(value: Any, device: str, places: _Places) -> Any:
    if isinstance(value, torch.Tensor):
        return _tensor(value, device, places)
    if isinstance(value, Held):
        base = value.layers[0].buffer.data_ptr() if value.base is None and value.layers else value.base
        return replace(value, base=base, **_fields(value, device, places, skip=("base", "tags")))
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **_fields(value, device, places))
    if isinstance(value, Mapping):
        return {key: _moved(one, device, places) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_moved(one, device, places) for one in value)
    return value


def _fields(value: Any, device: str, places: _Places, skip: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        one.name: _moved(getattr(value, one.name), device, places)
        for one in fields(value)
        if one.init and one.name not in skip
    }


def _tensor(value: torch.Tensor, device: str, places: _Places) -> torch.Tensor:
    """The same view of a copy; tensors that share memory share it there too."""
    memory = value.untyped_storage()
    if memory.data_ptr() not in places:
        ours = torch.empty(0, dtype=torch.uint8, device=value.device).set_(memory)
        places[memory.data_ptr()] = ours, ours.to(device, copy=True)
    there = places[memory.data_ptr()][1].untyped_storage()
    return torch.empty(0, dtype=value.dtype, device=device).set_(
        there, value.storage_offset(), value.shape, value.stride()
    )
