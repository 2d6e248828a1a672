"""The young end of a span of rows made from kept layer inputs, beside a copy of the rows that are held."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from hitproof.kernels.norms import Linear
from hitproof.kernels.numbers import RowFormat, decode, dtype_of, encode
from hitproof.kernels.spans import Span, copied_into, fits, located, own_blocks, read_span
from hitproof.kernels.tail_fill.projection import CachePath, NewRows, require_path, rows_from_inputs
from hitproof.spec.errors import TensorError

__all__ = ["Filled", "LayerRows", "require_fill", "tail_fill"]


@dataclass(frozen=True, slots=True)
class LayerRows:
    """One layer's cached rows: keys and values, or latents alone, with the format of each.

    Args:
        key: Rows of H heads.
        key_form: Their format.
        value: None where the key's row serves as both.
        value_form: None likewise.
    """

    key: Span
    key_form: RowFormat
    value: Span | None = None
    value_form: RowFormat | None = None

    def __post_init__(self) -> None:
        if (self.value is None) != (self.value_form is None):
            raise TensorError("values need a place and a format", got="one of them", expected="both or neither")
        if self.value is not None and (self.key.start, self.key.end) != (self.value.start, self.value.end):
            raise TensorError(
                "keys and values are of other tokens",
                got=f"[{self.value.start}, {self.value.end})",
                expected=f"[{self.key.start}, {self.key.end})",
            )


@dataclass(frozen=True, slots=True)
class Filled:
    """What was written: rows of the tokens [start, end), `made` of them anew, `bytes` in all, for one layer."""

    start: int
    end: int
    made: int
    bytes: int


def tail_fill(held: LayerRows, inputs: Span, input_form: RowFormat, path: CachePath, into: LayerRows) -> Filled:
    """Copy the rows that are held, and make the missing younger ones from kept inputs; one layer.

    The tokens that have to be there afterwards are those of `into`, [first, to). Rows [first, held.end) are copied
    byte by byte, rows [held.end, to) are made, and all that is left of the blocks of `into` is zeroed.

    Args:
        held: The found rows; only read.
        inputs: The layer's kept inputs, rows of one head with N values.
        input_form: Their format, one of bf16, fp16 and fp32; steps are rounded to it, as the model rounds them.
        path: The layer's weights.
        into: Private blocks with the formats of `held`; their geometry may be another. Changed.

    Raises:
        TensorError: Neither held rows nor inputs are there for some of the tokens, or shapes or formats do not fit.
            Nothing is written.
    """
    require_fill(held, inputs, input_form, path, into)
    first, to, end = into.key.start, into.key.end, held.key.end
    new = _new_rows(inputs, input_form, path, end, to)
    parts = [(held.key, into.key, encode(new.key, into.key_form))]
    if new.value is not None and held.value is not None and into.value is not None and into.value_form is not None:
        parts.append((held.value, into.value, encode(new.value, into.value_form)))
    # Both are read before the first write.
    rows = [(place, source, torch.cat((read_span(source, first, end), fresh))) for source, place, fresh in parts]
    for place, source, cells in rows:
        copied_into(place, source, cells)
    return Filled(first, to, to - end, sum(cells.numel() for _, _, cells in rows))


def require_fill(held: LayerRows, inputs: Span, input_form: RowFormat, path: CachePath, into: LayerRows) -> None:
    """Look at everything before a byte is written; arguments as in `tail_fill`.

    Raises:
        TensorError: As in `tail_fill`.
    """
    first, to, end = into.key.start, into.key.end, held.key.end
    if (into.key_form, into.value_form) != (held.key_form, held.value_form):
        raise TensorError("filling keeps the format of rows", got=into.key_form, expected=held.key_form)
    if not held.key.start <= first <= end < to:
        raise TensorError(
            "what is held does not reach from the first token wanted to a missing one",
            got=f"[{held.key.start}, {end}) is held",
            expected=f"[{first}, {to})",
        )
    if len(input_form.parts) != 1 or input_form.small:
        raise TensorError(
            "kept inputs are of one plain number format", got=input_form.parts, expected="bf16, fp16 or fp32"
        )
    require_path(input_form.values, path)
    if inputs.pool.geometry.heads != 1 or inputs.pool.geometry.cell_bytes != input_form.cell_bytes:
        raise TensorError(
            "the inputs do not fit their pool",
            got=f"{inputs.pool.geometry.heads} heads of {inputs.pool.geometry.cell_bytes} bytes",
            expected=f"1 of {input_form.cell_bytes}",
        )
    located(inputs, end, to)
    if (path.value is None) != (into.value is None):
        raise TensorError("the layer and its place differ in whether values are kept", got=path.value is None)
    _require_place(held.key, into.key, into.key_form, path.key, path.heads, end)
    if held.value and into.value and into.value_form and path.value:
        _require_place(held.value, into.value, into.value_form, path.value, path.heads, end)


def _require_place(held: Span, into: Span, form: RowFormat, linear: Linear, heads: int, end: int) -> None:
    """What is held can be read, and rows of the projection go into blocks of their own."""
    located(held, into.start, end)
    size = linear.weight.shape[0] // heads
    if size != form.values:
        raise TensorError("the rows have another number of values", got=size, expected=form.values)
    fits(into.pool, torch.empty((0, heads, form.cell_bytes), dtype=torch.uint8))
    fits(held.pool, torch.empty((0, heads, form.cell_bytes), dtype=torch.uint8))
    if into.first:
        raise TensorError("the copy begins inside a block", got=into.first, expected=0)
    own_blocks(into.pool, into.table, into.end - into.start, held.pool, held.table)


def _new_rows(inputs: Span, form: RowFormat, path: CachePath, first: int, to: int) -> NewRows:
    """Rows of the tokens [first, to), in the type of the inputs."""
    cells = read_span(inputs, first, to)
    hidden = decode(cells, form).to(dtype_of(form.parts[0].dtype)).flatten(1)
    return rows_from_inputs(hidden, torch.arange(first, to, dtype=torch.int64), path)
