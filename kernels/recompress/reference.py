"""Gated softmax pooling of rows into compressed entries, as DeepSeek-V4 does it, with its running state.

Letters of shapes: T tokens, m tokens an entry (the ratio), C series a row (2 with overlap, 1 without), D size of an
entry, R its rotary part, E entries, S live rows of the state, X size of the layer's input. `...` stands for leading
dimensions that all tensors of a call share, such as sequences or layers of equal weights.
Source: arXiv 2606.19348, section 2.3.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from hitproof.kernels.norms import Linear, Norm, normed, projected
from hitproof.kernels.rotary import Rotary, rotated
from hitproof.spec.errors import TensorError

__all__ = [
    "Compressed",
    "Compressor",
    "CompressorState",
    "empty_state",
    "live_rows",
    "project",
    "recompress",
    "state_from_rows",
]


@dataclass(frozen=True, eq=False)
class Compressor:
    """What turns m rows into one entry.

    Args:
        position_bias: `[m, C * D]`, added to the gates of a window's rows; its first dimension is the ratio.
        norm: RMS norm of an entry, with its weight `[D]`.
        rotary: How the last R numbers of an entry are turned (interleaved and trailing in DeepSeek-V4).
        overlap: Whether an entry also reads the window before its own (ratio 4 of DeepSeek-V4). A row then holds
            two series: the first D numbers are for the next entry, the last D for its own.

    Raises:
        TensorError: The sizes do not fit together.
    """

    position_bias: torch.Tensor
    norm: Norm
    rotary: Rotary
    overlap: bool

    def __post_init__(self) -> None:
        series = 2 if self.overlap else 1
        shape = tuple(self.position_bias.shape)
        if len(shape) != 2 or 0 in shape or shape[1] % series:
            raise TensorError("not a position bias", got=shape, expected=f"[m, {series} * D]")
        weight = None if self.norm.weight is None else tuple(self.norm.weight.shape)
        if weight not in (None, (self.size,)):
            raise TensorError("the norm's weight does not fit the entry", got=weight, expected=(self.size,))
        if self.size < self.rotary.size:
            raise TensorError(
                "more numbers are to be turned than an entry has", got=self.rotary.size, expected=self.size
            )

    @property
    def ratio(self) -> int:
        """Tokens an entry."""
        return int(self.position_bias.shape[0])

    @property
    def size(self) -> int:
        """Numbers an entry."""
        return self.width // (2 if self.overlap else 1)

    @property
    def width(self) -> int:
        """Numbers a row of values, and as many scores."""
        return int(self.position_bias.shape[1])


@dataclass(frozen=True, eq=False)
class CompressorState:
    """The rows that entries after `length` still read: overlap first, then those of the unfinished window.

    Args:
        length: Tokens seen so far.
        values: `[..., S, C * D]`, rows of the last S tokens before `length`.
        scores: `[..., S, C * D]`, their gates with the position bias added. An empty score is minus infinity.
    """

    length: int
    values: torch.Tensor
    scores: torch.Tensor


@dataclass(frozen=True, eq=False)
class Compressed:
    """What came of rows.

    Args:
        entries: `[..., E, D]`, entries `first` to `first + E`.
        first: Number of the first entry; entry w stands for tokens `w * m` to `(w + 1) * m`.
        state: What the next entries need.
    """

    entries: torch.Tensor
    first: int
    state: CompressorState


def live_rows(length: int, ratio: int, overlap: bool) -> int:
    """Rows of state that a later entry reads: the unfinished window, and the whole one before it with overlap."""
    return length % ratio + (ratio if overlap and ratio <= length else 0)


def empty_state(compressor: Compressor, like: torch.Tensor) -> CompressorState:
    """The state before the first token; `like` is `[..., T, C * D]` and lends leading dimensions, type and place."""
    rows = like.new_empty((*like.shape[:-2], 0, compressor.width))
    return CompressorState(0, rows, _scores(rows, 0, compressor))


def project(inputs: torch.Tensor, value: Linear, gate: Linear) -> tuple[torch.Tensor, torch.Tensor]:
    """Values and gates of kept layer inputs.

    Args:
        inputs: `[..., T, X]`, what the layer's attention was given, after its input norm.
        value, gate: Weights `[C * D, X]`.

    Returns:
        Two tensors `[..., T, C * D]` in the type of `inputs`.

    Raises:
        TensorError: Shapes do not fit.
    """
    shapes = (tuple(value.weight.shape), tuple(gate.weight.shape))
    if shapes[0] != shapes[1] or shapes[0][-1] != inputs.shape[-1]:
        raise TensorError("inputs and projections do not fit", got=(tuple(inputs.shape), *shapes), expected="one X")
    return projected(inputs, value), projected(inputs, gate)


def recompress(
    values: torch.Tensor,
    gates: torch.Tensor,
    compressor: Compressor,
    state: CompressorState | None = None,
) -> Compressed:
    """Pool rows into entries, from wherever the state stands.

    Softmax and norm are float32 whatever the rows' type, as in the model's own code; products and sums are float32,
    or float64 for float64 rows; the entry is rounded once.

    Args:
        values: `[..., T, C * D]`, value projections of tokens `state.length` to `state.length + T`.
        gates: `[..., T, C * D]`, their gate projections, without the position bias.
        state: State at the first of these tokens; none before the first token of all.

    Returns:
        Every entry whose window ends within these tokens, in the type of `values`, and the state behind them.

    Raises:
        TensorError: Shapes do not fit, or the state has not the rows of its length.
    """
    _require_rows(values, gates, compressor)
    state = state or empty_state(compressor, values)
    _require_state(state, compressor)
    ratio, start = compressor.ratio, state.length
    end = start + int(values.shape[-2])
    rows = torch.cat([state.values.to(values.dtype), values], dim=-2)
    scores = torch.cat([state.scores, _scores(gates, start, compressor)], dim=-2)
    first, count = start // ratio, end // ratio - start // ratio
    pooled = normed(_pool(*_slots(rows, scores, first, count, compressor)), compressor.norm)
    positions = torch.arange(first, first + count, device=values.device) * ratio
    entries = rotated(pooled.movedim(-2, 0), positions, compressor.rotary).movedim(0, -2).to(values.dtype)
    return Compressed(entries, first, _last(rows, scores, end, compressor))


def state_from_rows(
    values: torch.Tensor, gates: torch.Tensor, compressor: Compressor, first: int = 0
) -> CompressorState:
    """The state behind rows, without making entries.

    Args:
        values, gates: `[..., T, C * D]`, rows of tokens `first` to `first + T`.
        first: Tokens before these rows; no later than the first row that the state holds.

    Raises:
        TensorError: Shapes do not fit, or rows that the state holds are missing.
    """
    _require_rows(values, gates, compressor)
    length = first + int(values.shape[-2])
    needed = live_rows(length, compressor.ratio, compressor.overlap)
    if values.shape[-2] < needed:
        raise TensorError(
            f"the state at {length} tokens holds rows that are not given",
            got=f"{values.shape[-2]} rows",
            expected=f"at least {needed}",
        )
    return _last(values, _scores(gates, first, compressor), length, compressor)


def _scores(gates: torch.Tensor, first: int, compressor: Compressor) -> torch.Tensor:
    """Gates of tokens from `first` on, `[..., T, C * D]`, with the bias of each token's place in its window."""
    places = torch.arange(first, first + int(gates.shape[-2]), device=gates.device) % compressor.ratio
    return gates + compressor.position_bias[places]


def _last(rows: torch.Tensor, scores: torch.Tensor, length: int, compressor: Compressor) -> CompressorState:
    """The state at `length`, of rows that end there; a copy, so that it does not hold on to all of them."""
    since = int(rows.shape[-2]) - live_rows(length, compressor.ratio, compressor.overlap)
    return CompressorState(length, rows[..., since:, :].clone(), scores[..., since:, :].clone())


def _slots(
    rows: torch.Tensor, scores: torch.Tensor, first: int, count: int, compressor: Compressor
) -> tuple[torch.Tensor, torch.Tensor]:
    """What each of `count` entries reads: values and scores, `[..., E, C * m, D]`."""
    ratio, size = compressor.ratio, compressor.size
    if not compressor.overlap:
        own, gates = (x[..., : count * ratio, :].unflatten(-2, (count, ratio)) for x in (rows, scores))
        return own, gates
    if first == 0:
        blank = rows.new_zeros((*rows.shape[:-2], ratio, compressor.width))
        rows = torch.cat([blank, rows], dim=-2)
        scores = torch.cat([torch.full_like(blank, -torch.inf, dtype=scores.dtype), scores], dim=-2)
    windows = (x[..., : (count + 1) * ratio, :].unflatten(-2, (count + 1, ratio)) for x in (rows, scores))
    both, gates = (torch.cat([x[..., :-1, :, :size], x[..., 1:, :, size:]], dim=-2) for x in windows)
    return both, gates


def _pool(values: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    """Values weighted by the softmax of their scores, number by number: `[..., E, K, D]` to `[..., E, D]`."""
    work = torch.promote_types(values.dtype, torch.float32)
    weights = scores.softmax(dim=-2, dtype=torch.float32)
    return (values.to(work) * weights.to(work)).sum(dim=-2)


def _require_rows(values: torch.Tensor, gates: torch.Tensor, compressor: Compressor) -> None:
    """Refuse rows of another shape."""
    if values.ndim < 2 or values.shape != gates.shape or values.shape[-1] != compressor.width:
        raise TensorError(
            "values and gates are not rows of this compressor",
            got=(tuple(values.shape), tuple(gates.shape)),
            expected=f"[..., T, {compressor.width}] twice",
        )


def _require_state(state: CompressorState, compressor: Compressor) -> None:
    """Refuse a state that has not the rows of its length."""
    expected = (live_rows(state.length, compressor.ratio, compressor.overlap), compressor.width)
    shapes = (tuple(state.values.shape[-2:]), tuple(state.scores.shape[-2:]))
    if state.length < 0 or shapes != (expected, expected):
        raise TensorError(f"not a state at {state.length} tokens", got=shapes, expected=(expected, expected))
