"""Rows to entries: equal to plain sums, from wherever the state stands, reading nothing that it should not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from hitproof.kernels.norms import Linear, Norm  # noqa: E402
from hitproof.kernels.recompress import (  # noqa: E402
    Compressor,
    CompressorState,
    empty_state,
    live_rows,
    project,
    recompress,
    state_from_rows,
)
from hitproof.kernels.recompress.slow import drawn_compressor, drawn_rows, slow_entries  # noqa: E402
from hitproof.kernels.rotary import Rotary, frequencies  # noqa: E402
from hitproof.spec.errors import TensorError  # noqa: E402

CSA = drawn_compressor(4, 12, 4, overlap=True)
HCA = drawn_compressor(128, 10, 6, overlap=False)
TOLERANCE = {torch.float64: 1e-6, torch.float32: 4e-6, torch.bfloat16: 2**-8 * 4}
"""Largest difference of an entry whose numbers are about 1: softmax and norm are float32 even for float64 rows."""


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize(
    ("ratio", "size", "rotary", "overlap", "tokens"),
    [
        (4, 12, 4, True, 3),
        (4, 12, 4, True, 4),
        (4, 64, 64, True, 23),
        (4, 512, 64, True, 9),
        (3, 10, 2, True, 17),
        (1, 6, 2, True, 5),
        (128, 576, 64, False, 130),
        (128, 6, 4, False, 127),
        (5, 100, 10, False, 63),
    ],
)
def test_entries_are_weighted_sums_of_their_windows(
    dtype: Any, ratio: int, size: int, rotary: int, overlap: bool, tokens: int
) -> None:
    """Each entry equals a sum over single numbers in float64, within the rounding of the rows' type."""
    compressor = drawn_compressor(ratio, size, rotary, overlap)
    values, gates = (rows.to(dtype) for rows in drawn_rows(tokens, compressor))
    made = recompress(values, gates, compressor)
    assert (0, dtype, tokens) == (made.first, made.entries.dtype, made.state.length)
    expected = slow_entries(values, gates, compressor)
    scale = 1 + expected.abs()
    assert expected.shape == made.entries.shape
    assert bool(((made.entries.double() - expected).abs() <= TOLERANCE[dtype] * scale).all())


@pytest.mark.parametrize("compressor", [CSA, HCA], ids=["ratio 4", "ratio 128"])
@settings(max_examples=40)
@given(data=st.data())
def test_any_cut_into_calls_gives_the_same(compressor: Compressor, data: st.DataObject) -> None:
    """However the tokens are cut into calls, also amid a window, entries and final state are those of one call."""
    tokens = data.draw(st.integers(0, 3 * compressor.ratio + 2))
    cuts = sorted(data.draw(st.lists(st.integers(0, tokens), max_size=5)))
    values, gates = drawn_rows(tokens, compressor)
    state, parts = None, []
    for start, end in zip([0, *cuts], [*cuts, tokens], strict=True):
        made = recompress(values[start:end], gates[start:end], compressor, state)
        assert start // compressor.ratio == made.first
        parts.append(made.entries)
        state = made.state
    whole = recompress(values, gates, compressor)
    assert state is not None
    torch.testing.assert_close(torch.cat(parts), whole.entries, rtol=1e-5, atol=1e-6)
    assert torch.equal(whole.state.values, state.values)
    assert torch.equal(whole.state.scores, state.scores)


@pytest.mark.parametrize(
    ("length", "expected"), [(0, 0), (3, 3), (4, 4), (5, 5), (7, 7), (8, 4), (11, 7), (127, 7), (128, 4)]
)
def test_overlap_survives_an_aligned_boundary(length: int, expected: int) -> None:
    """Ratio 4 keeps n % 4 rows, and 4 more from the first whole window on."""
    assert expected == live_rows(length, 4, overlap=True)
    assert length % 128 == live_rows(length, 128, overlap=False)


@pytest.mark.parametrize("compressor", [CSA, HCA], ids=["ratio 4", "ratio 128"])
@pytest.mark.parametrize("length", [1, 3, 4, 5, 8, 127, 128, 129, 200, 256])
def test_state_is_made_of_its_live_rows_alone(compressor: Compressor, length: int) -> None:
    """The last live rows give the state that all rows give, and one row fewer is refused."""
    values, gates = drawn_rows(length, compressor)
    expected = recompress(values, gates, compressor).state
    first = length - live_rows(length, compressor.ratio, compressor.overlap)
    made = state_from_rows(values[first:], gates[first:], compressor, first)
    assert length == made.length
    assert torch.equal(expected.values, made.values)
    assert torch.equal(expected.scores, made.scores)
    if first:
        more = state_from_rows(values[first - 1 :], gates[first - 1 :], compressor, first - 1)
        assert torch.equal(expected.scores, more.scores)
    if first < length:
        with pytest.raises(TensorError):
            state_from_rows(values[first + 1 :], gates[first + 1 :], compressor, first + 1)


def test_first_entry_has_no_window_before_it() -> None:
    """An empty score is minus infinity: the first entry with overlap is that of its own series alone."""
    values, gates = drawn_rows(4, CSA)
    alone = Compressor(CSA.position_bias[:, 12:], CSA.norm, CSA.rotary, overlap=False)
    expected = recompress(values[:, 12:], gates[:, 12:], alone).entries
    torch.testing.assert_close(recompress(values, gates, CSA).entries, expected)
    blank = CompressorState(4, torch.zeros(4, 24), torch.full((4, 24), -torch.inf))
    resumed = recompress(values, gates, CSA, blank).entries
    turned = recompress(values[:, 12:], gates[:, 12:], alone, empty_state(alone, values[:, 12:])).entries
    assert not torch.equal(turned, resumed)
    torch.testing.assert_close(resumed[:, :8], turned[:, :8])


def test_no_series_is_read_for_another_window() -> None:
    """Poison in the second series of the overlap and in the first of the last window reaches no entry."""
    values, gates = drawn_rows(12, CSA)
    clean = recompress(values, gates, CSA)
    state = recompress(values[:8], gates[:8], CSA).state
    state.values[:, 12:] = torch.nan
    state.scores[:, 12:] = torch.nan
    values, gates = values[8:].clone(), gates[8:].clone()
    values[:, :12] = torch.nan
    gates[:, :12] = torch.nan
    made = recompress(values, gates, CSA, state)
    torch.testing.assert_close(made.entries, clean.entries[2:])


@pytest.mark.parametrize("compressor", [CSA, HCA], ids=["ratio 4", "ratio 128"])
def test_neighbours_in_a_batch_do_not_meet(compressor: Compressor) -> None:
    """Leading dimensions are independent: each sequence and layer gets what it gets alone."""
    rows = [drawn_rows(2 * compressor.ratio + 1, compressor, seed) for seed in range(6)]
    values, gates = (torch.stack(part).unflatten(0, (2, 3)) for part in zip(*rows, strict=True))
    made = recompress(values, gates, compressor)
    for at, (value, gate) in enumerate(rows):
        alone = recompress(value, gate, compressor)
        torch.testing.assert_close(made.entries[at // 3, at % 3], alone.entries)
        assert torch.equal(alone.state.scores, made.state.scores[at // 3, at % 3])


def test_positions_need_more_than_32_bits() -> None:
    """Far behind 2**32 tokens an entry is turned by its own position, in steps of the ratio."""
    length = 2**32 + 2
    compressor = drawn_compressor(4, 12, 4, overlap=True)
    slow = Rotary(torch.full((2,), 2.0**-33 * torch.pi), pairing="interleaved", place="trailing")
    compressor = Compressor(compressor.position_bias, compressor.norm, slow, overlap=True)
    values, gates = drawn_rows(10, compressor)
    state = state_from_rows(values[:6], gates[:6], compressor, length - 6)
    made = recompress(values[6:], gates[6:], compressor, state)
    assert (2**30, 1) == (made.first, made.entries.shape[0])
    still = Compressor(compressor.position_bias, compressor.norm, Rotary(torch.zeros(2)), overlap=True)
    plain = recompress(values[6:], gates[6:], still, state).entries
    # 2**32 times this frequency is a quarter turn: (x, y) becomes (-y, x).
    expected = torch.stack([-plain[..., 9::2], plain[..., 8::2]], dim=-1).flatten(-2)
    torch.testing.assert_close(made.entries[..., 8:], expected, rtol=1e-5, atol=1e-5)


def test_state_is_a_copy_and_inputs_are_left_alone() -> None:
    """Neither rows nor state passed in are written, and the state keeps no hold of the rows."""
    values, gates = drawn_rows(13, CSA)
    before = values.clone(), gates.clone()
    for state in (recompress(values, gates, CSA).state, state_from_rows(values, gates, CSA)):
        assert state.values.numel() * 4 == state.values.untyped_storage().nbytes()
        assert state.scores.numel() * 4 == state.scores.untyped_storage().nbytes()
        state.values.zero_()
    held = recompress(values[:6], gates[:6], CSA).state
    kept = held.values.clone(), held.scores.clone()
    recompress(values[6:], gates[6:], CSA, held)
    assert all(map(torch.equal, (*before, *kept), (values, gates, held.values, held.scores)))


def test_hidden_states_give_the_projections() -> None:
    """Kept inputs and kept projections lead to the same entries."""
    draw = torch.Generator().manual_seed(3)
    inputs = torch.randn((9, 16), generator=draw)
    value, gate = (Linear(torch.randn((24, 16), generator=draw)) for _ in range(2))
    values, gates = project(inputs, value, gate)
    torch.testing.assert_close(values, inputs @ value.weight.T)
    torch.testing.assert_close(gates, inputs @ gate.weight.T)


@pytest.mark.parametrize(
    "call",
    [
        lambda: recompress(*drawn_rows(4, HCA), CSA),
        lambda: recompress(drawn_rows(4, CSA)[0], drawn_rows(5, CSA)[1], CSA),
        lambda: recompress(*drawn_rows(4, CSA), CSA, CompressorState(5, *drawn_rows(4, CSA))),
        lambda: recompress(*drawn_rows(4, CSA), CSA, CompressorState(-4, *drawn_rows(0, CSA))),
        lambda: Compressor(torch.zeros(4, 11), CSA.norm, CSA.rotary, overlap=True),
        lambda: Compressor(torch.zeros(0, 12), CSA.norm, CSA.rotary, overlap=False),
        lambda: Compressor(torch.zeros(4, 24), Norm(torch.ones(10), 1e-6), CSA.rotary, overlap=True),
        lambda: Compressor(torch.zeros(4, 4), Norm(None, 1e-6), Rotary(frequencies(4, 1e4)), overlap=True),
        lambda: project(torch.zeros(3, 5), Linear(torch.zeros(4, 6)), Linear(torch.zeros(4, 6))),
        lambda: project(torch.zeros(3, 5), Linear(torch.zeros(4, 5)), Linear(torch.zeros(6, 5))),
    ],
)
def test_what_does_not_fit_is_refused(call: object) -> None:
    """Rows, states and weights of other shapes are an error that says what was got and what was expected."""
    with pytest.raises(TensorError) as caught:
        call()  # type: ignore[operator]
    assert caught.value.got is not None
    assert caught.value.expected is not None
