"""What a repair's kernels ask of memory and of matrix units, by formula; `cost.py` of each repair has the formula."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module

from hitproof.kernels.configs import DEFAULT, INTERPRET, Config
from hitproof.kernels.jobs import Held, Job
from hitproof.spec.repair import RepairRequest

__all__ = ["NOTHING", "Traffic", "blocks_of", "cells_of", "row_bytes", "tiles_of", "traffic_of", "words_of"]


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes and operations of all launches of one repair.

    Args:
        read: Bytes of all loads, those that another program has loaded before included: most of these are in a cache.
        written: Bytes of all stores.
        least: Bytes of rows and weights that must be read and rows that must be written, each once: what no kernel can
            do without. Tables and scratch are not among them.
        products: Multiplications and additions of matrix products, padding of tiles included.
    """

    read: int = 0
    written: int = 0
    least: int = 0
    products: int = 0

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(
            self.read + other.read,
            self.written + other.written,
            self.least + other.least,
            self.products + other.products,
        )


NOTHING = Traffic()


def traffic_of(request: RepairRequest, job: Job, target: str = INTERPRET) -> Traffic:
    """The formula of a repair, for one job.

    Args:
        request: As the repair is asked for.
        job: Its rows; only sizes are looked at.
        target: Whose tiles are used, as in `configs.TARGETS`.
    """
    found: Traffic = import_module(f"hitproof.kernels.{request.repair}.cost").traffic(request, job, target)
    return found


def tiles_of(configs: Mapping[str, Config], target: str) -> Mapping[str, int]:
    """A target's tiles."""
    return configs.get(target, configs[DEFAULT]).tiles


def row_bytes(held: Held) -> int:
    """Bytes of a segment's rows in all layers."""
    return sum(held.count * pool.geometry.heads * pool.geometry.cell_bytes for pool in held.layers)


def cells_of(held: Held, layer: int) -> int:
    """Rows of all heads of a layer."""
    return held.count * held.layers[layer].geometry.heads


def blocks_of(held: Held, layer: int) -> int:
    """Blocks that a segment's rows lie in."""
    return -(-(held.first + held.count) // held.layers[layer].geometry.rows) if held.count else 0


def words_of(held: Held, layer: int) -> int:
    """Words of eight bytes of one row of one head, the last one padded."""
    return -(-held.layers[layer].geometry.cell_bytes // 8)
