"""Copies on an accelerator, between it and pinned host memory, and the price of a launch there, by torch."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from hitproof.engine.calibrate.memory import SMALL_BYTES, told_size
from hitproof.engine.calibrate.sampling import Stopwatch, rate_of
from hitproof.spec.rates import Rate

__all__ = ["find_torch", "measure_accelerator"]

CALLS = 100


def find_torch() -> Any:
    """The library torch, imported only now; None where it is not installed."""
    return import_module("torch") if find_spec("torch") is not None else None


def measure_accelerator(watch: Stopwatch, torch: Any, size: int) -> dict[str, Rate]:
    """Copy and launch rates of the first CUDA device; the counting is that of `measure_memory`.

    Args:
        watch: Times the copies.
        torch: The library.
        size: Bytes of each of the two buffers.
    """
    device = torch.device("cuda", 0)
    wait = torch.cuda.synchronize
    source = torch.ones(size, dtype=torch.uint8, device=device)
    target = torch.zeros(size, dtype=torch.uint8, device=device)
    pinned = torch.ones(size, dtype=torch.uint8).pin_memory()
    shown = f"of {told_size(size)}, waited for"

    def copy(into: Any, out_of: Any) -> tuple[float, ...]:
        def work() -> None:
            into.copy_(out_of, non_blocking=True)
            wait()

        return watch.time(work)

    def launches() -> None:
        for _ in range(CALLS):
            target[:SMALL_BYTES].copy_(source[:SMALL_BYTES], non_blocking=True)
            wait()

    return {
        "device_us_per_byte": rate_of(
            copy(target, source),
            2 * size,
            "us/bytes",
            f"a copy on the accelerator {shown}; a byte read and a byte written are two",
        ),
        "host_us_per_byte": rate_of(
            copy(target, pinned), size, "us/bytes", f"a copy from pinned host memory to the accelerator {shown}"
        ),
        "to_host_us_per_byte": rate_of(
            copy(pinned, source), size, "us/bytes", f"a copy from the accelerator to pinned host memory {shown}"
        ),
        "launch_us": rate_of(
            watch.time(launches),
            CALLS,
            "us",
            f"one copy of {SMALL_BYTES} bytes on the accelerator, waited for, {CALLS} in a run",
        ),
    }
