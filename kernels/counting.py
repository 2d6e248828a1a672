"""Counts what kernels ask of memory and of matrix units while the interpreter runs them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

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
    """

    read: int = 0
    written: int = 0
    atomics: int = 0
    products: int = 0


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
        counts.read += _lanes(mask, ptrs) * _item(ptrs)

    def store(ptrs: Any, _value: Any, mask: Any, *_: Any) -> None:
        counts.written += _lanes(mask, ptrs) * _item(ptrs)

    def atomic(_operation: Any, ptr: Any, _value: Any, mask: Any, *_: Any) -> None:
        counts.atomics += _lanes(mask, ptr)

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


def _lanes(mask: Any, ptrs: Any) -> int:
    """Lanes that take part; a mask may be smaller than what it masks."""
    return int(mask.data.sum()) * (int(ptrs.data.size) // int(mask.data.size))


def _item(ptrs: Any) -> int:
    """Bytes of one lane."""
    return max(1, int(ptrs.get_element_ty().primitive_bitwidth) // 8)
