"""Repairs of DeepSeek-V4's caches, of any number of rows: pages by the model's profile, blocks in no order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import torch

from hitproof.kernels.blocks import Geometry, Pool
from hitproof.kernels.index_rebuild import TokenIndexer
from hitproof.kernels.index_remap import Move, RowMap
from hitproof.kernels.jobs import Held, Job
from hitproof.kernels.norms import Linear, Norm
from hitproof.kernels.numbers import V4_INDEX_ROW, V4_ROW, RowFormat, plain_row
from hitproof.kernels.promote.reference import Manifest
from hitproof.kernels.recompress import Compressor
from hitproof.kernels.recompress.inputs import LayerWeights
from hitproof.kernels.rotary import Rotary, frequencies
from hitproof.kernels.selftest.trial import COPY_TAGS, request_for
from hitproof.kernels.tail_fill.projection import CachePath
from hitproof.kernels.window_roll.boundary import Boundary
from hitproof.spec.repair import RepairRequest

__all__ = ["CASES", "Case", "Page", "Sizes", "build"]

WINDOW, HIDDEN, SPARSE_HIDDEN = 128, 4_096, 7_168
"""DeepSeek-V4-Flash's window and hidden size, and DeepSeek-V3.2's, whose indexer makes a key of every token."""


@dataclass(frozen=True, slots=True)
class Page:
    """A block of one group in one layer.

    Args:
        rows: Rows of it.
        cell_bytes: Of a row.
        block_bytes: Of a block, padding included.
        layers: Layers of the group.
    """

    rows: int
    cell_bytes: int
    block_bytes: int
    layers: int

    @property
    def geometry(self) -> Geometry:
        """Where its rows lie."""
        return Geometry(self.rows, 1, self.cell_bytes, block_bytes=self.block_bytes)


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much there is to do.

    Args:
        pages: By the names of the profile's groups.
        rows: Rows of repairs that move bytes.
        tokens: Tokens of repairs that make rows from kept inputs, a multiple of 128.
        layers: The most layers that one repair is about.
        device: Where all of it lies; `meta` for sizes without bytes, whose formulas alone are asked for.
    """

    pages: Mapping[str, Page]
    rows: int
    tokens: int
    layers: int
    device: torch.device


@dataclass(frozen=True, slots=True)
class Case:
    """One repair ready to run."""

    name: str
    request: RepairRequest
    job: Job


def build(name: str, sizes: Sizes) -> Case:
    """Make one of `CASES`."""
    request, job = CASES[name](sizes)
    return Case(name, request, job)


def _held(
    sizes: Sizes, geometry: Geometry, form: RowFormat, count: int, layers: int = 1, start: int = 0, seed: int = 0
) -> Held:
    """Rows of random bytes that are numbers in every format, in blocks drawn at random."""
    blocks = -(-count // geometry.rows)
    draw = torch.Generator().manual_seed(seed)
    pools = tuple(Pool(_bytes(sizes, geometry.extent(blocks), seed + n), geometry, blocks) for n in range(layers))
    table = torch.randperm(blocks, generator=draw)
    if sizes.device.type != "meta":
        table = table.to(sizes.device)
    tags = {**COPY_TAGS, "exactness": "exact", "index_config": "indexer", "compressor_version": "compressor"}
    return Held(pools, table, count, form, start=start, base=1 << 40, tags=tags)


def _bytes(sizes: Sizes, count: int, seed: int) -> torch.Tensor:
    """Bytes below 0x78: in no format do they make an infinity or what is no number, and scales stay moderate."""
    if sizes.device.type == "meta":
        return torch.empty(count, dtype=torch.uint8, device="meta")
    draw = torch.Generator(sizes.device).manual_seed(seed)
    return torch.randint(0x30, 0x40, (count,), dtype=torch.uint8, generator=draw, device=sizes.device)


def _weights(sizes: Sizes, *shape: int, kind: torch.dtype = torch.bfloat16) -> torch.Tensor:
    if sizes.device.type == "meta":
        return torch.empty(shape, dtype=kind, device="meta")
    draw = torch.Generator(sizes.device).manual_seed(shape[0])
    scale = shape[-1] ** -0.5
    return (torch.randn(shape, generator=draw, device=sizes.device) * scale).to(kind)


def _rotary(sizes: Sizes, *, trailing: bool) -> Rotary:
    turning = frequencies(64, 10_000.0)
    turning = turning if sizes.device.type == "meta" else turning.to(sizes.device)
    return Rotary(turning, pairing="interleaved", place="trailing") if trailing else Rotary(turning)


def _checksum(sizes: Sizes) -> tuple[RepairRequest, Job]:
    held = _held(sizes, sizes.pages["csa_entries"].geometry, V4_ROW, sizes.rows)
    return request_for("checksum", held, None), Job(held, None)


def _promote(sizes: Sizes) -> tuple[RepairRequest, Job]:
    geometry = sizes.pages["csa_entries"].geometry
    held, target = (_held(sizes, geometry, V4_ROW, sizes.rows, seed=seed) for seed in (1, 2))
    manifest = Manifest(held.count, torch.ones(held.table.numel(), dtype=torch.bool))
    return request_for("promote", held, target), Job(held, target, {"demoted_prefix": manifest})


def _relayout(sizes: Sizes) -> tuple[RepairRequest, Job]:
    held = _held(sizes, Geometry(256, 1, V4_ROW.cell_bytes), V4_ROW, sizes.rows, seed=1)
    target = _held(sizes, sizes.pages["window"].geometry, V4_ROW, sizes.rows, seed=2)
    return request_for("relayout", held, target), Job(held, target)


def _requantize(sizes: Sizes) -> tuple[RepairRequest, Job]:
    wide = plain_row("bf16", V4_ROW.values)
    held = _held(sizes, sizes.pages["csa_entries"].geometry, V4_ROW, sizes.rows, seed=1)
    target = _held(sizes, Geometry(64, 1, wide.cell_bytes), wide, sizes.rows, seed=2)
    return request_for("requantize", held, target), Job(held, target)


def _window_roll(sizes: Sizes) -> tuple[RepairRequest, Job]:
    page = sizes.pages["window"]
    layers, position = min(page.layers, sizes.layers), 7 * WINDOW + 5
    start = position - WINDOW
    held = _held(sizes, page.geometry, V4_ROW, WINDOW, layers, seed=1)
    target = _held(sizes, page.geometry, V4_ROW, WINDOW, layers, start=start, seed=100)
    facts = {"start": start, "end": position, "position": position, "write_sequence": 3}
    boundary = Boundary(position, WINDOW, version="boundary")
    return request_for("window_roll", held, target, **facts), Job(held, target, {"window_boundary": boundary})


def _index_remap(sizes: Sizes) -> tuple[RepairRequest, Job]:
    page, count = sizes.pages["csa_index"], sizes.rows
    layers = min(page.layers, sizes.layers)
    held, target = (_held(sizes, page.geometry, V4_INDEX_ROW, count, layers, seed=seed) for seed in (1, 100))
    draw = torch.Generator().manual_seed(3)
    place = torch.device("cpu") if sizes.device.type == "meta" else sizes.device
    old, new = (torch.randperm(2 * count, generator=draw) for _ in range(2))
    rows, stands = old[:count], torch.arange(count) * 4
    owned = torch.full((2 * count,), -1, dtype=torch.int64)
    owned[rows] = stands
    found = RowMap(rows.to(place), stands.to(place))
    copy = RowMap(torch.zeros_like(found.rows), torch.zeros_like(found.positions))
    move = Move(torch.arange(2 * count).to(place), new.to(place), owned.to(place), generation=6)
    return request_for("index_remap", held, target), Job(held, target, {"self": (found, copy), "kv": move})


def _inputs(sizes: Sizes, hidden: int, first: int, to: int, layers: int) -> Held:
    kept = plain_row("bf16", hidden)
    return _held(sizes, Geometry(16, 1, kept.cell_bytes), kept, to - first, layers, start=first, seed=200)


def _entries(sizes: Sizes, count: int) -> Held:
    """What index keys stand for; only their tags are read."""
    held = _held(sizes, sizes.pages["csa_entries"].geometry, V4_ROW, count)
    return replace(held, tags={**held.tags, "recorded": "fingerprint of the entries", "generation": 5})


def _tail_fill(sizes: Sizes) -> tuple[RepairRequest, Job]:
    page = sizes.pages["window"]
    layers, first, half = min(page.layers, sizes.layers), 5 * WINDOW, WINDOW // 2
    held = _held(sizes, page.geometry, V4_ROW, half, layers, start=first, seed=1)
    target = _held(sizes, page.geometry, V4_ROW, WINDOW, layers, start=first, seed=100)
    inputs = _inputs(sizes, HIDDEN, first + half, first + WINDOW, layers)
    paths = tuple(
        CachePath(
            input_norm=None,
            key=Linear(_weights(sizes, V4_ROW.values, HIDDEN)),
            value=None,
            heads=1,
            key_norm=Norm(_weights(sizes, V4_ROW.values), 1e-6),
            rotary=_rotary(sizes, trailing=True),
        )
        for _ in range(layers)
    )
    request = request_for("tail_fill", held, target, start=first, end=first + half, write_sequence=4)
    return request, Job(held, target, {"layer_inputs": inputs}, {"paths": paths})


def _compressor(sizes: Sizes, size: int, ratio: int) -> LayerWeights:
    overlap = ratio == 4
    width = size * (2 if overlap else 1)
    norm = Norm(_weights(sizes, size, kind=torch.float32), 1e-6)
    bias = _weights(sizes, ratio, width, kind=torch.float32)
    compressor = Compressor(bias, norm, _rotary(sizes, trailing=True), overlap)
    value, gate = (Linear(_weights(sizes, width, HIDDEN)) for _ in range(2))
    return LayerWeights(compressor, value, gate)


def _recompress(group: str, ratio: int) -> Callable[[Sizes], tuple[RepairRequest, Job]]:
    def made(sizes: Sizes) -> tuple[RepairRequest, Job]:
        target = _held(sizes, sizes.pages[group].geometry, V4_ROW, sizes.tokens // ratio, seed=100)
        job = Job(
            None,
            target,
            {"layer_inputs": _inputs(sizes, HIDDEN, 0, sizes.tokens, 1)},
            {"weights": (_compressor(sizes, V4_ROW.values, ratio),), "object": "compressed_global"},
        )
        request = request_for("recompress", None, target)
        return replace(request, length=sizes.tokens, first=0, to=sizes.tokens), job

    return made


def _entry_keys(sizes: Sizes) -> tuple[RepairRequest, Job]:
    page, count = sizes.pages["csa_index"], sizes.tokens // 4
    target = _held(sizes, page.geometry, V4_INDEX_ROW, count, seed=100)
    entries = _entries(sizes, count)
    sources = {"layer_inputs": _inputs(sizes, HIDDEN, 0, sizes.tokens, 1), "kv": entries}
    weights = (_compressor(sizes, V4_INDEX_ROW.values, 4),)
    request = replace(request_for("index_rebuild", None, target), length=sizes.tokens, first=0, to=sizes.tokens)
    return request, Job(None, target, sources, {"weights": weights, "rotation": "hadamard"})


def _token_keys(sizes: Sizes) -> tuple[RepairRequest, Job]:
    size, count = V4_INDEX_ROW.values, sizes.tokens
    target = _held(sizes, sizes.pages["csa_index"].geometry, V4_INDEX_ROW, count, seed=100)
    entries = _entries(sizes, count)
    gain, shift = (_weights(sizes, size) for _ in range(2))
    key = Linear(_weights(sizes, size, SPARSE_HIDDEN))
    indexer = TokenIndexer(key, gain, shift, 1e-6, _rotary(sizes, trailing=False))
    sources = {"layer_inputs": _inputs(sizes, SPARSE_HIDDEN, 0, count, 1), "kv": entries}
    request = replace(request_for("index_rebuild", None, target), length=count, first=0, to=count)
    return request, Job(None, target, sources, {"weights": (indexer,), "rotation": "none"})


CASES: Mapping[str, Callable[[Sizes], tuple[RepairRequest, Job]]] = {
    "checksum, entries of ratio 4": _checksum,
    "promote, entries of ratio 4": _promote,
    "relayout, blocks of 256 to pages of 64": _relayout,
    "requantize, fp8 rows to bf16": _requantize,
    "window_roll, windows of all layers": _window_roll,
    "index_remap, index of all layers": _index_remap,
    "tail_fill, half a window of all layers": _tail_fill,
    "recompress, ratio 4": _recompress("csa_entries", 4),
    "recompress, ratio 128": _recompress("hca_entries", 128),
    "index_rebuild, V4 keys, turned": _entry_keys,
    "index_rebuild, V3.2 keys": _token_keys,
}
"""What is timed, by name; the first word is the repair."""
