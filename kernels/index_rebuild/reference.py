"""Index keys from what their layer was given: one a token (DeepSeek-V3.2), or one an entry (DeepSeek-V4).

Letters of shapes: T tokens, E entries, D size of an index key, R its rotary part, X size of the layer's input; `...`
leading dimensions that all tensors of a call share.
Source: DeepSeek-V3.2 report, section 2.1; arXiv 2606.19348, section 2.3.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from torch.nn import functional

from hitproof.kernels.blocks import read_table
from hitproof.kernels.jobs import Held
from hitproof.kernels.norms import Linear, projected
from hitproof.kernels.numbers import RowFormat, decode, encode
from hitproof.kernels.recompress import Compressed, Compressor, CompressorState, recompress
from hitproof.kernels.recompress.inputs import LayerWeights, kept_rows
from hitproof.kernels.recompress.layers import entries_between
from hitproof.kernels.rotary import Rotary, rotated
from hitproof.kernels.spans import Span, fits, located, read_span, write_span
from hitproof.spec.errors import TensorError

__all__ = [
    "ROTATIONS",
    "TokenIndexer",
    "compressed_keys",
    "hadamard",
    "require_place",
    "require_token_keys",
    "token_keys",
    "write_entry_keys",
    "write_keys",
    "write_token_keys",
]

ROTATIONS = ("none", "hadamard")
"""Orthogonal matrices by which keys may be turned before they are stored."""


@dataclass(frozen=True, eq=False)
class TokenIndexer:
    """What makes a key of each token's layer input, as in DeepSeek-V3.2.

    Args:
        key: Projection `[D, X]`.
        norm_weight, norm_bias: `[D]`, of a layer norm: mean and variance, not only the mean square.
        norm_epsilon: Added to the variance.
        rotary: How a key is turned (leading halves in DeepSeek-V3.2, unlike its latents).
    """

    key: Linear
    norm_weight: torch.Tensor
    norm_bias: torch.Tensor
    norm_epsilon: float
    rotary: Rotary


def token_keys(inputs: torch.Tensor, indexer: TokenIndexer, first: int = 0) -> torch.Tensor:
    """One index key a token.

    Args:
        inputs: `[..., T, X]`, what the layer's attention was given for tokens `first` to `first + T`.
        first: Tokens before these.

    Returns:
        `[..., T, D]` in the type of `inputs`.

    Raises:
        TensorError: The inputs are not of the projection's size, or the position is negative.
    """
    if inputs.ndim < 2 or inputs.shape[-1] != indexer.key.weight.shape[1] or first < 0:
        raise TensorError(
            "not inputs of this indexer",
            got=(tuple(inputs.shape), first),
            expected=f"[..., T, {indexer.key.weight.shape[1]}] from a position that is not negative",
        )
    weight, bias = (x.to(inputs.dtype) for x in (indexer.norm_weight, indexer.norm_bias))
    keys = functional.layer_norm(projected(inputs, indexer.key), weight.shape, weight, bias, indexer.norm_epsilon)
    positions = torch.arange(first, first + int(inputs.shape[-2]), device=inputs.device)
    return rotated(keys.movedim(-2, 0), positions, indexer.rotary).movedim(0, -2)


def compressed_keys(
    values: torch.Tensor, gates: torch.Tensor, compressor: Compressor, state: CompressorState | None = None
) -> Compressed:
    """One index key an entry, as in DeepSeek-V4: the indexer has a compressor of its own, with its own state.

    Args:
        values, gates: `[..., T, 2 * D]`, the indexer's projections, not those of the entries.
        compressor: The indexer's.
        state: The indexer's state at the first of these tokens.
    """
    return recompress(values, gates, compressor, state)


def hadamard(keys: torch.Tensor) -> torch.Tensor:
    """Keys times the orthonormal Walsh-Hadamard matrix, in float32 or wider, rounded once.

    Deployments turn keys and queries alike before they store keys in eight bits, so that no number sticks out; scores
    stay the same, since the matrix is orthogonal. A turned key and a plain one must never meet.

    Args:
        keys: `[..., D]`, D a power of two.

    Raises:
        TensorError: D is no power of two.
    """
    size = int(keys.shape[-1])
    if size < 1 or size & (size - 1):
        raise TensorError("only keys of a power of two can be turned", got=size, expected="a power of two")
    turned = keys.to(torch.promote_types(keys.dtype, torch.float32))
    step = 1
    while step < size:
        pairs = turned.unflatten(-1, (size // (2 * step), 2, step))
        left, right = pairs[..., 0, :], pairs[..., 1, :]
        turned = torch.stack([left + right, left - right], dim=-2).flatten(-3)
        step *= 2
    return (turned * size**-0.5).to(keys.dtype)


def write_token_keys(
    inputs: Span, input_form: RowFormat, indexer: TokenIndexer, into: Span, form: RowFormat, rotation: str = "none"
) -> None:
    """Make a key of each token's kept input, and write it; all in float32, rounded once.

    Args:
        inputs: Kept inputs of the layer; only read.
        input_form: What their bytes mean.
        indexer: Of the layer.
        into: The tokens of which keys are made, and their place; changed.
        form: How a key is stored.
        rotation: One of `ROTATIONS`.

    Raises:
        TensorError: An input is not there, or something does not fit. Nothing is written.
    """
    require_token_keys(inputs, input_form, indexer, into, form)
    rows = decode(read_span(inputs, into.start, into.end)[:, 0], input_form)
    write_keys(token_keys(rows, indexer, into.start), into, form, rotation)


def require_token_keys(inputs: Span, input_form: RowFormat, indexer: TokenIndexer, into: Span, form: RowFormat) -> None:
    """Look at everything before a byte is written; arguments as in `write_token_keys`.

    Raises:
        TensorError: As there.
    """
    size, wanted = indexer.key.weight.shape
    if (input_form.values, form.values) != (wanted, size):
        raise TensorError(
            "the indexer makes keys of other inputs, or other keys",
            got=f"{input_form.values} to {form.values} numbers",
            expected=f"{wanted} to {size}",
        )
    fits(inputs.pool, torch.empty((0, 1, input_form.cell_bytes), dtype=torch.uint8))
    located(inputs, into.start, into.end)
    require_place(into, form)


def require_place(into: Span, form: RowFormat) -> None:
    """Keys of a format go into the blocks of a span, each of which is named once.

    Raises:
        TensorError: They do not.
    """
    fits(into.pool, torch.empty((0, 1, form.cell_bytes), dtype=torch.uint8))
    block, inside = divmod(located(into, into.start, into.end), into.pool.geometry.rows)
    blocks = read_table(into.pool, into.table[block:], into.end - into.start, inside)
    if len(set(blocks)) != len(blocks):
        raise TensorError("a table that is written names a block twice", got=blocks[:20], expected="each block once")


def write_entry_keys(
    inputs: Held, layer: int, weights: LayerWeights, first: int, to: int, target: Held, rotation: str = "none"
) -> None:
    """Make a key of each entry from one layer's kept inputs, and write it; all in float32, rounded once.

    Args:
        inputs: Kept inputs, or projections, of all layers; only read.
        layer: Which of them.
        weights: The indexer's, of this layer.
        first, to: Tokens that the keys stand for, multiples of the ratio. With overlap, inputs of one window before
            `first` are read too.
        target: Blocks of the copy, from whose first row on the keys are written; changed.
        rotation: One of `ROTATIONS`.

    Raises:
        RepairFault: The span is not of whole windows, or an input is not kept. Nothing is written.
        TensorError: The keys do not fit the format or the blocks. Nothing is written.
    """
    keys = entries_between(partial(kept_rows, inputs, layer), weights, first, to).entries
    write_keys(keys, Span(target.layers[layer], target.table, 0, target.count, target.first), target.form, rotation)


def write_keys(keys: torch.Tensor, into: Span, form: RowFormat, rotation: str = "none") -> None:
    """Write keys, turned or as they are.

    Args:
        keys: Float `[T, D]`, one a row of the place.
        into: Where to; changed.
        form: How a key is stored.
        rotation: One of `ROTATIONS`.

    Raises:
        TensorError: The keys do not fit their place or format. Nothing is written.
    """
    turned = hadamard(keys) if rotation == "hadamard" else keys
    write_span(into, into.start, encode(turned, form).unsqueeze(1))
