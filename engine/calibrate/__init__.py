"""Rates measured on this machine: copies, disk, checksums, launches, and the prefill of one block of a model."""

from hitproof.engine.calibrate.measure import Prefill, calibrate
from hitproof.engine.calibrate.sampling import Stopwatch

__all__ = ["Prefill", "Stopwatch", "calibrate"]
