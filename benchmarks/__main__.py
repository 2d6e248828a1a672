"""Runs every benchmark: `python -m benchmarks`."""

from __future__ import annotations

from benchmarks import decide, gate, kernels, observe, replay, rulebooks
from hitproof.engine.calibrate.machine import describe_machine

machine = describe_machine()
print(f"{machine.cpu}, {machine.cores} cores, load {machine.load}; Python {machine.python}, NumPy {machine.numpy}")
for benchmark in (decide, gate, observe, kernels, replay, rulebooks):
    benchmark.run()
