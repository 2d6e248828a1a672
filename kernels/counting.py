"""Counts what kernels ask of memory and of matrix units while the interpreter runs them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from hitproof.kernels.registry import require_interpreter

__all__ = ["Counts", "counted"]


@dataclass(slots=True)
class Counts:
    """What was asked for so far; lanes that are masked ask for nothing.

    Args:
        read: Bytes of loads.
        written: Bytes of stores.
        atomics: Lanes of atomic operations, which are in neither of the two.
        products: Multiplications and additions of matrix products, those with padding included.
        places_read, places_written: Addresses of all bytes, an array a load or store.
    """

    read: int = 0
    written: int = 0
    atomics: int = 0
    products: int = 0
    places_read: list[Any] = field(default_factory=list)
    places_written: list[Any] = field(default_factory=list)

    @property
    def touched(self) -> int:
        """Bytes of memory that were read at least once, and those that were written at least once, added up."""
        return _distinct(self.places_read) + _distinct(self.places_written)


@contextmanager
def counted() -> Iterator[Counts]:
    """Count all interpreted kernels of this process while the context is open; not for several threads.

    Raises:
        UsageError: This process does not interpret kernels.
    """
    require_interpreter()
    builder: Any = import_module("triton.runtime.interpreter").InterpreterBuilder
    counts = Counts()

    def load(ptrs: Any, mask: Any, *_: Any) -> None:
        places = _places(ptrs, mask)
        counts.read += places.size
        counts.places_read.append(places)

    def store(ptrs: Any, _value: Any, mask: Any, *_: Any) -> None:
        places = _places(ptrs, mask)
        counts.written += places.size
        counts.places_written.append(places)

    def atomic(_operation: Any, ptr: Any, _value: Any, mask: Any, *_: Any) -> None:
        counts.atomics += int(np.broadcast_to(mask.data.astype(bool), ptr.data.shape).sum())

    def exchange(ptr: Any, *_: Any) -> None:
        counts.atomics += int(ptr.data.size)

    def dot(left: Any, right: Any, *_: Any) -> None:
        counts.products += 2 * int(left.data.size) * int(right.data.shape[-1])

    # Plain loads and stores, and those of block pointers, go through the masked ones.
    watchers: dict[str, Callable[..., None]] = {
        "create_masked_load": load,
        "create_masked_store": store,
        "create_atomic_rmw": atomic,
        "create_atomic_cas": exchange,
        "create_dot": dot,
    }
    originals = {name: getattr(builder, name) for name in watchers}
    for name, watch in watchers.items():
        setattr(builder, name, _before(originals[name], watch))
    try:
        yield counts
    finally:
        for name, original in originals.items():
            setattr(builder, name, original)


def _before(original: Callable[..., Any], watch: Callable[..., None]) -> Callable[..., Any]:
    def both(builder: Any, *arguments: Any) -> Any:
        watch(*arguments)
        return original(builder, *arguments)

    return both


def _places(ptrs: Any, mask: Any) -> npt.NDArray[np.uint64]:
    """Address of every byte that the lanes which are not masked ask for."""
    # The interpreter keeps some masks as whole numbers.
    lanes = np.broadcast_to(mask.data.astype(bool), ptrs.data.shape)
    begin = ptrs.data[lanes].astype(np.uint64)
    size = max(1, int(ptrs.get_element_ty().primitive_bitwidth) // 8)
    found: npt.NDArray[np.uint64] = (begin[:, None] + np.arange(size, dtype=np.uint64)).ravel()
    return found


def _distinct(places: list[Any]) -> int:
    return int(np.unique(np.concatenate(places)).size) if places else 0
