"""Copies within main memory, and the fixed price of starting one, by NumPy."""

from __future__ import annotations

import numpy as np

from hitproof.engine.calibrate.sampling import Stopwatch, rate_of
from hitproof.spec.rates import Rate

__all__ = ["buffer_bytes", "measure_memory", "told_size"]

MIB = 2**20
LEAST_BYTES = 256 * MIB
CALLS = 1000
SMALL_BYTES = 64


def buffer_bytes(cache_bytes: int | None, memory_bytes: int | None) -> int:
    """How large a buffer must be to be far beyond the cache, and small against memory.

    Four times the last cache and at least `LEAST_BYTES`, but never more than an eighth of memory.
    """
    wanted = max(LEAST_BYTES, 4 * (cache_bytes or 0))
    return wanted if memory_bytes is None else max(1, min(wanted, memory_bytes // 8))


def measure_memory(watch: Stopwatch, size: int) -> dict[str, Rate]:
    """Copy and launch rates of a machine without an accelerator, where main memory is the device.

    A copied byte is read once and written once. The rules count each, so `device_us_per_byte` is half the time of
    a copied byte; what comes from the host is counted once, so `host_us_per_byte` is the whole.

    Args:
        watch: Times the copies.
        size: Bytes of each of the two buffers.
    """
    source = np.full(size, 1, dtype=np.uint8)
    target = np.full(size, 2, dtype=np.uint8)
    copies = watch.time(lambda: np.copyto(target, source))
    shown = f"a NumPy copy of {told_size(size)} within main memory, one thread"
    return {
        "device_us_per_byte": rate_of(copies, 2 * size, "us/bytes", f"{shown}; a byte read and a byte written are two"),
        "host_us_per_byte": rate_of(copies, size, "us/bytes", f"{shown}; no accelerator, so host and device are one"),
        "launch_us": _measure_launch(watch),
    }


def told_size(size: int) -> str:
    """A number of bytes in words."""
    return f"{size // MIB} MiB" if size >= MIB else f"{size} bytes"


def _measure_launch(watch: Stopwatch) -> Rate:
    source = np.full(SMALL_BYTES, 1, dtype=np.uint8)
    target = np.full(SMALL_BYTES, 2, dtype=np.uint8)

    def work() -> None:
        for _ in range(CALLS):
            np.copyto(target, source)

    return rate_of(watch.time(work), CALLS, "us", f"one call of a NumPy copy of {SMALL_BYTES} bytes, {CALLS} in a run")
