"""Sizes on which repairs are tried: head sizes of real models, pages as they are padded, and awkward counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch

from hitproof.kernels.blocks import Geometry, Layout
from hitproof.kernels.numbers import V4_INDEX_ROW, V4_ROW, RowFormat, encode, plain_row

__all__ = ["Size", "pages", "random_rows", "random_values", "sizes"]


@dataclass(frozen=True, slots=True)
class Size:
    """Rows of one segment: where they lie in whole blocks, what they mean, how many, in how many layers."""

    name: str
    dtype: str
    form: RowFormat
    geometry: Geometry
    count: int
    layers: int = 1

    @property
    def elsewhere(self) -> Geometry:
        """The same blocks at odd bytes: shifted by 3, and apart by an odd stride."""
        return replace(self.geometry, offset=3, stride=self.geometry.stride + 5)


def sizes() -> Iterator[Size]:
    """Every number format at head sizes from 64 to 576, blocks of 16 to 256 tokens, both orders, gaps and padding."""
    awkward = (
        # dtype, head size, heads, tokens a block, order, gap after a row, padding of a block, rows, layers
        ("bf16", 64, 8, 16, "token_major", 0, 0, 33, 2),
        ("bf16", 576, 1, 64, "token_major", 0, 0, 100, 1),
        ("bf16", 128, 3, 16, "head_major", 16, 64, 17, 2),
        ("fp16", 80, 2, 32, "token_major", 24, 0, 31, 1),
        ("fp16", 256, 1, 16, "head_major", 0, 48, 1, 3),
        ("fp32", 72, 2, 16, "token_major", 8, 16, 47, 1),
        ("fp32", 96, 1, 128, "head_major", 0, 0, 129, 1),
        ("fp8_e4m3", 100, 3, 48, "token_major", 4, 0, 49, 1),
        ("fp8_e4m3", 192, 1, 256, "head_major", 0, 16, 111, 1),
        ("fp8_e5m2", 65, 5, 16, "head_major", 7, 0, 63, 2),
        ("fp8_e5m2", 128, 2, 32, "token_major", 0, 32, 32, 1),
    )
    for dtype, head_size, heads, rows, layout, gap, padding, count, layers in awkward:
        name = f"{dtype} {layout} {rows} tokens a block, {heads} x {head_size}, {count} rows, {layers} layers"
        yield _size(name, dtype, head_size, heads, rows, layout, gap, padding, count, layers)  # type: ignore[arg-type]
    yield from pages()


def pages() -> Iterator[Size]:
    """DeepSeek-V4's pages as one framework stores them: 584 or 132 bytes a row, padded to multiples of 576."""
    for name, form, rows, page, count in (
        ("V4 entries of ratio 4", V4_ROW, 64, 37_440, 100),
        ("V4 entries of ratio 128", V4_ROW, 2, 1_728, 5),
        ("V4 window", V4_ROW, 64, 37_440, 128),
        ("V4 index keys", V4_INDEX_ROW, 64, 8_640, 65),
    ):
        yield Size(name, "fp8_e4m3", form, Geometry(rows, 1, form.cell_bytes, block_bytes=page), count)


def random_values(count: int, layers: int, heads: int, values: int, seed: int = 0) -> torch.Tensor:
    """float32 [T, L, H, V]: normal numbers, each row at a scale of its own, a row of zeros now and then."""
    draw = torch.Generator().manual_seed(seed)
    found = torch.randn((count, layers, heads, values), generator=draw)
    found *= torch.exp2(torch.randint(-6, 5, (count, 1, 1, 1), generator=draw))
    found[3::7] = 0
    return found


def random_rows(size: Size, seed: int = 0) -> torch.Tensor:
    """uint8 [T, L, H, C]: encoded numbers of a size's format."""
    values = random_values(size.count, size.layers, size.geometry.heads, size.form.values, seed)
    return encode(values, size.form)


def _size(
    name: str,
    dtype: str,
    head_size: int,
    heads: int,
    rows: int,
    layout: Layout,
    gap: int,
    padding: int,
    count: int,
    layers: int,
) -> Size:
    form = plain_row(dtype, head_size)
    cell = form.cell_bytes
    pitch = cell * (heads if layout == "token_major" else 1) + gap
    bare = Geometry(rows, heads, cell, layout, pitch=pitch)
    # The stride is what kernels ask for: a multiple of 16.
    whole = bare.used_bytes + padding
    stride = -(-whole // 16) * 16
    return Size(name, dtype, form, replace(bare, block_bytes=whole, stride=stride, offset=32), count, layers)
