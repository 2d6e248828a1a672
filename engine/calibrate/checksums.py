"""How fast a fingerprint of bytes is taken: checksums of the standard library, and xxhash where it is installed."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec

import numpy as np

from hitproof.engine.calibrate.memory import told_size
from hitproof.engine.calibrate.sampling import Stopwatch, rate_of
from hitproof.spec.rates import Rate

__all__ = ["measure_checksums"]


def measure_checksums(watch: Stopwatch, size: int) -> dict[str, Rate]:
    """Microseconds a byte of each checksum at hand, over a buffer of that many bytes; no rule reads these."""
    data = np.random.default_rng(0).bytes(size)
    return {
        f"{name}_us_per_byte": rate_of(
            watch.time(lambda check=check: check(data)),  # type: ignore[misc]
            size,
            "us/bytes",
            f"{told} of {told_size(size)} in main memory, one thread",
        )
        for name, (told, check) in _checksums().items()
    }


def _checksums() -> dict[str, tuple[str, Callable[[bytes], object]]]:
    found: dict[str, tuple[str, Callable[[bytes], object]]] = {
        "blake2b": ("hashlib.blake2b", lambda data: hashlib.blake2b(data).digest()),
        "crc32": ("zlib.crc32", zlib.crc32),
    }
    if find_spec("xxhash") is not None:
        found["xxh3_64"] = ("xxhash.xxh3_64", import_module("xxhash").xxh3_64_intdigest)
    return found
