"""Runs every benchmark: `python -m benchmarks`."""

from __future__ import annotations

from benchmarks import decide, replay

for benchmark in (decide, replay):
    benchmark.run()
