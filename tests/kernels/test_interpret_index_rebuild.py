"""`index_rebuild` as the kernels run it: keys within rounding of the reference, scores, and the very same choices."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from hitproof.kernels.blocks import Geometry, pool_of  # noqa: E402
from hitproof.kernels.index_rebuild import choosing, launch, reference, selfcheck  # noqa: E402
from hitproof.kernels.index_rebuild.reference import TokenIndexer  # noqa: E402
from hitproof.kernels.norms import Linear  # noqa: E402
from hitproof.kernels.numbers import V4_INDEX_ROW, Part, RowFormat, decode, encode, plain_row  # noqa: E402
from hitproof.kernels.recompress.trial import allowed_row_error  # noqa: E402
from hitproof.kernels.rotary import Rotary, frequencies  # noqa: E402
from hitproof.kernels.spans import Span, read_span, write_span  # noqa: E402
from hitproof.spec.errors import TensorError  # noqa: E402

POISON = 0xA5
IN_GROUPS = RowFormat((Part("fp8_e4m3", 64),), "e8m0", 16, 3)


def an_indexer(inputs: int, size: int, rotary: Rotary, bias: bool, dtype: Any) -> TokenIndexer:
    """Random weights, every part of which matters."""
    draw = torch.Generator().manual_seed(size)

    def drawn(*shape: int, scale: float = 1.0) -> Any:
        return (torch.randn(shape, generator=draw) * scale).to(dtype)

    key = Linear(drawn(size, inputs, scale=inputs**-0.5), drawn(size) if bias else None)
    return TokenIndexer(key, 1 + drawn(size, scale=0.3), drawn(size, scale=0.3), 1e-6, rotary)


def written(span: Span) -> Any:
    """True at the bytes of the span's rows."""
    marks = Span(pool_of(span.pool.geometry, span.pool.blocks), span.table, span.start, span.end, span.first)
    full = torch.zeros_like(span.pool.buffer)
    full[: marks.pool.buffer.numel()] = marks.pool.buffer
    write_span(marks, span.start, torch.full((span.end - span.start, 1, span.pool.geometry.cell_bytes), 255).byte())
    full[: marks.pool.buffer.numel()] = marks.pool.buffer
    return full != 0


PAIRINGS: tuple[Literal["half", "interleaved", "interleaved_to_half"], ...] = (
    "half",
    "interleaved",
    "interleaved_to_half",
)


@pytest.mark.parametrize(
    ("tokens", "inputs", "size", "turning", "place", "pairing", "bias", "kept", "form", "rotation", "offset"),
    [
        (1, 40, 24, 8, "leading", 0, True, "fp32", plain_row("bf16", 24), "none", 0),
        (70, 130, 128, 64, "leading", 0, False, "bf16", V4_INDEX_ROW, "none", 0),
        (33, 48, 64, 64, "leading", 1, True, "fp16", IN_GROUPS, "none", 0),
        (33, 48, 64, 6, "trailing", 2, False, "bf16", IN_GROUPS, "hadamard", 3),
        (65, 20, 128, 64, "trailing", 1, False, "fp32", V4_INDEX_ROW, "hadamard", 1),
        (5, 16, 32, 32, "leading", 2, False, "fp16", plain_row("fp32", 32), "hadamard", 1),
    ],
)
@pytest.mark.parametrize("weights", [torch.float32, torch.bfloat16], ids=str)
def test_keys_equal_those_of_the_reference(
    tokens: int,
    inputs: int,
    size: int,
    turning: int,
    place: Literal["leading", "trailing"],
    pairing: int,
    bias: bool,
    kept: str,
    form: RowFormat,
    rotation: str,
    offset: int,
    weights: Any,
) -> None:
    """Whatever the pairs, the formats and the bytes at which rows begin; and no byte but those of the keys changes."""
    rotary = Rotary(frequencies(turning, 10000.0), 1.25, PAIRINGS[pairing], place)
    indexer = an_indexer(inputs, size, rotary, bias, weights)
    form_in, first = plain_row(kept, inputs), 100_000
    draw = torch.Generator().manual_seed(tokens)
    source = pool_of(Geometry(16, 1, form_in.cell_bytes, offset=offset), 8, poison=POISON)
    held = Span(source, torch.randperm(8, generator=draw), first - 3, first + tokens + 2, 7)
    write_span(held, held.start, encode(torch.randn((tokens + 5, 1, inputs), generator=draw), form_in))
    geometry = Geometry(8, 1, form.cell_bytes, block_bytes=8 * form.cell_bytes + 5, offset=offset)
    table = torch.randperm(14, generator=draw)
    into, expected = (
        Span(pool_of(geometry, 14, poison=POISON, slack=9), table, first, first + tokens, 5) for _ in range(2)
    )
    launch.write_token_keys(held, form_in, indexer, into, form, rotation)
    reference.write_token_keys(held, form_in, indexer, expected, form, rotation)
    made, exact = (decode(read_span(span, first, first + tokens), form).double() for span in (into, expected))
    assert bool(((made - exact).abs() <= 2 * allowed_row_error(exact, form)).all())
    assert bool((into.pool.buffer[~written(into)] == POISON).all())


@pytest.mark.parametrize("form", [V4_INDEX_ROW, plain_row("bf16", 128), plain_row("fp16", 100), IN_GROUPS], ids=str)
@pytest.mark.parametrize("rotation", reference.ROTATIONS)
def test_given_keys_are_written_to_the_bit(form: RowFormat, rotation: str) -> None:
    """Sums of the turning run in the reference's order, and rounding is the same arithmetic, so bytes are equal."""
    size = form.values
    keys = torch.randn((37, size), generator=torch.Generator().manual_seed(3)) * 100
    keys[4] = 0
    geometry = Geometry(16, 1, form.cell_bytes, offset=2)
    places = [Span(pool_of(geometry, 4, poison=POISON, slack=5), torch.tensor([3, 0, 2]), 0, 37, 4) for _ in range(2)]
    if rotation == "hadamard" and size & (size - 1):
        for write in (launch.write_keys, reference.write_keys):
            with pytest.raises(TensorError, match="power of two"):
                write(keys, places[0], form, rotation)
        return
    launch.write_keys(keys, places[0], form, rotation)
    reference.write_keys(keys, places[1], form, rotation)
    assert torch.equal(places[1].pool.buffer, places[0].pool.buffer)


@pytest.mark.parametrize(
    ("lead", "queries", "keys", "heads", "size"),
    [((), 3, 70, 4, 128), ((2,), 17, 300, 3, 24), ((2, 2), 1, 1, 1, 5), ((), 0, 4, 1, 8)],
)
def test_scores_equal_those_of_the_reference(
    lead: tuple[int, ...], queries: int, keys: int, heads: int, size: int
) -> None:
    """Sums of products in float32, whatever the order; sizes that fill no tile are masked."""
    draw = torch.Generator().manual_seed(size)
    asked = torch.randn((*lead, queries, heads, size), generator=draw)
    stored = torch.randn((*lead, keys, size), generator=draw).bfloat16()
    weights = torch.randn((*lead, queries, heads), generator=draw)
    expected = selfcheck.index_scores(asked, stored, weights)
    torch.testing.assert_close(choosing.index_scores(asked, stored, weights), expected, rtol=1e-5, atol=1e-5)


@settings(max_examples=12, deadline=None)
@given(data=st.data(), keys=st.integers(0, 50), count=st.integers(0, 20))
def test_choices_are_those_of_the_reference(data: st.DataObject, keys: int, count: int) -> None:
    """Ties, both zeros, infinities, what is no number, keys that are hidden: the same keys in the same order."""
    values = [0.0, -0.0, 1.0, 1.5, -2.0, 1e-40, float("inf"), float("-inf"), float("nan"), -float("nan")]
    drawn = data.draw(st.lists(st.sampled_from(values), min_size=2 * keys, max_size=2 * keys))
    scores = torch.tensor(drawn, dtype=torch.float32).view(2, keys)
    visible = torch.tensor(data.draw(st.lists(st.integers(-1, keys + 2), min_size=2, max_size=2)))
    expected = selfcheck.stable_top_k(scores, count, visible)
    assert expected.tolist() == choosing.stable_top_k(scores, count, visible).tolist()


def test_the_self_check_says_the_same_by_kernels() -> None:
    """Stored keys compared with fresh ones: the same share of choices, and the same error but for rounding."""
    draw = torch.Generator().manual_seed(8)
    fresh = torch.randn((60, 64), generator=draw)
    stored = decode(encode(fresh, plain_row("fp8_e4m3", 64)), plain_row("fp8_e4m3", 64))
    queries, weights = torch.randn((3, 4, 64), generator=draw), torch.rand((3, 4), generator=draw)
    visible = torch.tensor([60, 3, 0])
    expected, found = (
        selfcheck.self_check(fresh, stored, queries, weights, 16, visible, backend)
        for backend in ("torch", "interpret")
    )
    assert expected.agreement == found.agreement
    assert expected.score_error == pytest.approx(found.score_error, rel=1e-4)


def test_what_the_kernels_do_not_know_is_refused() -> None:
    """Keys of 64 bits, too many to choose, inputs of another size: a typed error before a launch."""
    wide = torch.zeros((3, 8), dtype=torch.float64)
    with pytest.raises(TensorError):
        choosing.index_scores(torch.zeros((1, 2, 8)), wide, torch.zeros((1, 2)))
    with pytest.raises(TensorError):
        choosing.stable_top_k(torch.zeros((1, 5000)), 3000, torch.tensor([5000]))
    indexer = an_indexer(16, 32, Rotary(frequencies(8, 10000.0)), False, torch.float32)
    kept = Span(pool_of(Geometry(4, 1, 68), 2), torch.tensor([0, 1]), 0, 8)
    into = Span(pool_of(Geometry(4, 1, 64), 2, poison=POISON), torch.tensor([0, 1]), 0, 8)
    with pytest.raises(TensorError):
        launch.write_token_keys(kept, plain_row("fp32", 17), indexer, into, plain_row("bf16", 32))
    twice = Span(into.pool, torch.tensor([1, 1]), 0, 8)
    for write in (launch.write_keys, reference.write_keys):
        with pytest.raises(TensorError, match="twice"):
            write(torch.zeros((8, 32)), twice, plain_row("bf16", 32))
    assert bool((into.pool.buffer == POISON).all())
