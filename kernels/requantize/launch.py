"""Values into another format on the device: all blocks of a layer in one launch for each run of one format."""

from __future__ import annotations

from typing import Any

import torch

from hitproof.kernels.access import access_of, start_of
from hitproof.kernels.blocks import Geometry, Pool
from hitproof.kernels.configs import DEFAULT, INTERPRET, CompileSpec, Config, config_for
from hitproof.kernels.launching import launch, unit_of
from hitproof.kernels.numbers import CODES, ROUNDING, V4_ROW, RowFormat, plain_row
from hitproof.kernels.requantize.reference import Scale, fits
from hitproof.kernels.requantize.runs import Run, Side, kind_of, limit_of, runs_of, scales_at
from hitproof.kernels.spans import own_blocks
from hitproof.spec.errors import TensorError

__all__ = ["CONFIGS", "WIDEST", "enqueue", "requantize", "specs"]

CONFIGS = {
    DEFAULT: Config({"ELEMENTS": 1024}, warps=4),
    "gfx942": Config({"ELEMENTS": 2048}, warps=4),
    "gfx950": Config({"ELEMENTS": 2048}, warps=4),
    INTERPRET: Config({"ELEMENTS": 4096}),
}
WIDEST = 128
"""Values of a program's rows where no scale asks for more."""


def requantize(
    source: Pool,
    held: torch.Tensor,
    target: Pool,
    table: torch.Tensor,
    count: int,
    read: tuple[RowFormat, Scale],
    write: tuple[RowFormat, Scale],
    *,
    first: int = 0,
    source_first: int = 0,
) -> None:
    """The twin of `reference.requantize`.

    Args:
        source, held, target, table, count, read, write, first, source_first: As there.

    Raises:
        TensorError: As there, or the copy lies over what it is made from, or a group of inline scales is of several
            runs, or values do not lie whole. Nothing is written.
    """
    fits(source, held, target, table, count, read, write, first, source_first)
    own_blocks(target, table.cpu(), count, source, held.cpu(), first)
    device = target.buffer.device
    enqueue(
        source,
        held.to(device),
        target,
        table.to(device),
        count,
        (read[0], _apart(read, source, count, device)),
        (write[0], _apart(write, target, count, device)),
        first,
        source_first,
    )


def enqueue(
    source: Pool,
    held: torch.Tensor,
    target: Pool,
    table: torch.Tensor,
    count: int,
    read: tuple[RowFormat, torch.Tensor | None],
    write: tuple[RowFormat, torch.Tensor | None],
    first: int = 0,
    source_first: int = 0,
) -> None:
    """Write the values anew; neither allocates nor waits, so that it can be captured in a graph.

    Args:
        source, target: Pools that do not overlap.
        held, table: int64 on the device. A block that is not there is neither read nor written.
        count, first, source_first: As in `reference.requantize`.
        read: The format, and float32 [T, H, fp8 values] of scales that lie apart, of any strides.
        write: The same of the target.
    """
    from hitproof.kernels.requantize.kernel import requantize_kernel

    places = start_of(source).data_ptr(), start_of(target).data_ptr()
    elements = config_for(CONFIGS, target.buffer.device).tiles["ELEMENTS"]
    for run in runs_of(read[0], write[0]):
        apart = tuple(
            one[1] if side.dtype.startswith("fp8") else None for one, side in ((read, run.read), (write, run.write))
        )
        constants = _constants(source.geometry, target.geometry, places, read[0], write[0], run, apart)
        if constants["SPAN"] > elements:
            raise TensorError(
                "a group is too large for the kernel", got=constants["WIDTH"], expected=f"{elements} or less"
            )
        tiles = -(-count // (elements // constants["SPAN"]))
        launch(
            requantize_kernel,
            (tiles, source.geometry.heads, -(-run.values // constants["WIDTH"])),
            CONFIGS,
            start_of(source),
            held,
            start_of(target),
            table,
            source.blocks,
            target.blocks,
            count,
            source_first,
            first,
            *(part for scale in apart for part in ((scale, *scale.stride()) if scale is not None else (None, 0, 0, 0))),
            source.geometry.stride,
            target.geometry.stride,
            **constants,
        )


def _apart(form: tuple[RowFormat, Scale], pool: Pool, count: int, device: torch.device) -> torch.Tensor | None:
    """Scales that lie apart, float32 [T, H, fp8 values] by strides of 0 where they are shared."""
    if form[1] is None:
        return None
    scale = torch.as_tensor(form[1], dtype=torch.float32).to(device)
    return scale.expand(count, pool.geometry.heads, form[0].small)


def _constants(
    source: Geometry,
    target: Geometry,
    places: tuple[int, int],
    read: RowFormat,
    write: RowFormat,
    run: Run,
    apart: tuple[torch.Tensor | None, ...],
) -> dict[str, Any]:
    kinds = [
        kind_of(side, form, scale is not None)
        for side, form, scale in ((run.read, read, apart[0]), (run.write, write, apart[1]))
    ]
    width = min(run.values, WIDEST)
    if kinds[1] > 1:
        width = write.group
    elif kinds[0] > 1:
        width = read.group
    one = kinds[0] > 1 and read.group % width == 0 and run.read.small % width == 0
    return {
        **{f"FROM_{name}": step for name, step in zip(("ROW", "HEAD", "VALUE"), source.steps[1:], strict=False)},
        **{f"TO_{name}": step for name, step in zip(("ROW", "HEAD", "VALUE"), target.steps[1:], strict=False)},
        "ROWS_IN": source.rows,
        "ROWS_OUT": target.rows,
        "ITEM_IN": source.shape[3],
        "ITEM_OUT": target.shape[3],
        "UNIT_IN": _unit(source, places[0], run.read),
        "UNIT_OUT": _unit(target, places[1], run.write),
        "CODE_IN": CODES[run.read.dtype],
        "CODE_OUT": CODES[run.write.dtype],
        "SIZE_IN": ROUNDING[run.read.dtype].bytes,
        "SIZE_OUT": ROUNDING[run.write.dtype].bytes,
        "BYTE_IN": run.read.byte,
        "BYTE_OUT": run.write.byte,
        "SMALL_IN": run.read.small,
        "SMALL_OUT": run.write.small,
        "KIND_IN": kinds[0],
        "KIND_OUT": kinds[1],
        "GROUP_IN": max(read.group, 1),
        "ONE_IN": int(one),
        "SCALES_IN": scales_at(read),
        "SCALES_OUT": scales_at(write),
        "LIMIT": limit_of(write),
        "VALUES": run.values,
        "WIDTH": width,
        "SPAN": 1 << (width - 1).bit_length(),
        "PAD_AT": write.cell_bytes - write.pad,
        # The bytes that hold nothing are written once, with the first run.
        "PAD": 0 if run.write.byte else write.pad,
    }


def _unit(geometry: Geometry, address: int, side: Side) -> int:
    """Bytes of an access to values of a run; 0 where they lie one after the other, at multiples of their size.

    Raises:
        TensorError: They do not lie whole.
    """
    access, size = access_of(geometry, address), ROUNDING[side.dtype].bytes
    if geometry.layout == "value_major":
        if access.item % size or side.byte % size:
            raise TensorError(
                "values are cut in pieces", got=f"{size} bytes in items of {access.item}", expected="whole values"
            )
        return unit_of(access.unit, side.byte, size)
    unit = unit_of(size, access.unit, side.byte)
    return 0 if unit == size else unit


def specs() -> list[CompileSpec]:
    """V4's rows to bf16 and back in pages, and bf16 rows by head to fp8 with scales a head."""
    from hitproof.kernels.requantize.kernel import requantize_kernel

    wide, page = plain_row("bf16", 512), Geometry(64, 1, 584, block_bytes=37_440)
    scale = torch.ones((1, 8, 1)).expand(16, 8, 128)
    cases = (
        ("V4 rows to bf16", Geometry(64, 1, 1024), V4_ROW, wide, (None, None)),
        ("bf16 to V4 rows", page, wide, V4_ROW, (None, None)),
        (
            "bf16 to e4m3, scales apart",
            Geometry(16, 8, 128),
            plain_row("bf16", 128),
            plain_row("fp8_e4m3", 128),
            (None, scale),
        ),
    )
    found: list[CompileSpec] = []
    for name, target, read, write, apart in cases:
        source = page if read is V4_ROW else Geometry(target.rows, target.heads, read.cell_bytes)
        for number, run in enumerate(runs_of(read, write)):
            constants = _constants(source, target, (0, 0), read, write, run, apart)
            found.append(_spec(requantize_kernel, f"{name}, run {number}", constants, apart))
    return found


def _spec(kernel: Any, name: str, constants: dict[str, Any], apart: tuple[torch.Tensor | None, ...]) -> CompileSpec:
    types = {"source": "*u8", "held": "*i64", "target": "*u8", "table": "*i64"}
    types |= dict.fromkeys(("source_blocks", "target_blocks", "count", "source_first", "first"), "i32")
    types |= {f"{way}_scale": "*fp32" for way, scale in zip(("from", "to"), apart, strict=True) if scale is not None}
    steps = [f"{way}_scale_{step}" for way in ("from", "to") for step in ("row", "head", "value")]
    types |= dict.fromkeys((*steps, "from_block", "to_block"), "i64")
    none = {f"{way}_scale": None for way in ("from", "to") if f"{way}_scale" not in types}
    aligned = ("source", "target", "from_block", "to_block")
    return CompileSpec(kernel, name, types, {**none, **constants}, CONFIGS, aligned)
