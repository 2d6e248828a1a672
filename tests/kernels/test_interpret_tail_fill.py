"""The kernel that makes missing rows: equal to its twin within the rounding of its steps, and to the byte elsewhere."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from hitproof.kernels.blocks import Geometry, Pool, pool_of  # noqa: E402
from hitproof.kernels.norms import Linear, Norm  # noqa: E402
from hitproof.kernels.numbers import ROUNDING, V4_ROW, RowFormat, decode, dtype_of, encode, plain_row  # noqa: E402
from hitproof.kernels.rotary import Rotary, frequencies  # noqa: E402
from hitproof.kernels.spans import Span, read_span, write_span  # noqa: E402
from hitproof.kernels.tail_fill import launch, reference  # noqa: E402
from hitproof.kernels.tail_fill.projection import CachePath  # noqa: E402
from hitproof.kernels.tail_fill.reference import LayerRows  # noqa: E402
from hitproof.kernels.tail_fill.slow import drawn_path, slow_row  # noqa: E402
from hitproof.spec.errors import TensorError  # noqa: E402
from tests.kernels.test_tail_fill import faulty, random_rows, span_in  # noqa: E402

POISON = 0xA5
HIDDEN = 150
"""More than one turn of the loop over inputs, and no multiple of a tile."""
TURNED = Rotary(frequencies(8, 1000.0), 1.3, "interleaved")
VARIANTS: dict[str, dict[str, Any]] = {
    "as Gemma": {},
    "no positions": {"rotary": None, "key_norm": None},
    "norm behind": {"norm_after_rotary": True},
    "norm kept out": {"input_norm": None},
    "value norm": {"value_norm": Norm(None, 0.4)},
    "rounds before the weight": {"input_norm": Norm(torch.linspace(0.5, 2, HIDDEN), 0.5, rounds_first=True)},
    "norm without a weight": {"input_norm": Norm(None, 1e-5)},
    "neighbours": {"rotary": TURNED},
    "neighbours kept apart": {"rotary": replace(TURNED, pairing="interleaved_to_half", place="trailing")},
    "norm of a few behind": {
        "norm_after_rotary": True,
        "key_norm": Norm(torch.linspace(0.5, 2, 5), 0.9),
        "rotary": TURNED,
    },
}


def made_case(
    dtype: str, path: CachePath, size: int, form: RowFormat, copy: Geometry, missing: int = 3, offset: int = 0
) -> tuple[dict[str, Any], list[Span]]:
    """Tokens [20, 27) held and kept inputs behind them; the copy begins at 22. And the spans that are written.

    Inputs lie whole from the bytes 0 and 1 on, and number by number from later ones.
    """
    end, to = 27, 27 + missing
    found = Geometry(4, path.heads, form.cell_bytes, offset=offset)
    held = [span_in(pool_of(found, 5, poison=POISON), 20, end, seed=i, first=2) for i in range(2)]
    for i, span in enumerate(held):
        random_rows(span, seed=i)
    kept = plain_row(dtype, HIDDEN)
    layout: Any = "token_major" if offset < 2 else "value_major"
    place = Geometry(3, 1, kept.cell_bytes, layout, offset=offset, item_bytes=ROUNDING[dtype].bytes)
    inputs = span_in(pool_of(place, 20, poison=POISON), end - 1, to, seed=5, first=1)
    hidden = torch.randn(missing + 1, 1, HIDDEN, generator=torch.Generator().manual_seed(size))
    write_span(inputs, end - 1, encode(hidden, kept))
    into = [span_in(pool_of(copy, 40, poison=POISON, slack=9), 22, to, seed=7 + i) for i in range(2)]
    rows = [
        LayerRows(one[0], form) if path.value is None else LayerRows(one[0], form, one[1], form) for one in (held, into)
    ]
    case = {"held": rows[0], "inputs": inputs, "input_form": kept, "path": path, "into": rows[1]}
    return case, into[: 1 if path.value is None else 2]


def both(case: dict[str, Any], places: list[Span]) -> list[list[Pool]]:
    """The copy's pools as the twin leaves them, and as the kernel does."""
    images = []
    untouched = [span.pool.buffer.clone() for span in places]
    for fill in (reference.tail_fill, launch.tail_fill):
        for span, image in zip(places, untouched, strict=True):
            span.pool.buffer.copy_(image)
        filled = fill(**case)
        assert filled == reference.Filled(22, places[0].end, places[0].end - 27, filled.bytes)
        images.append([Pool(span.pool.buffer.clone(), span.pool.geometry, span.pool.blocks) for span in places])
    return images


def assert_equal_but_for(places: list[Span], images: list[list[Pool]]) -> None:
    """All bytes are the same but for those of the rows made from token 27 on."""
    for span, one, two in zip(places, *images, strict=True):
        for pool in (one, two):
            blank = torch.zeros(span.end - 27, *read_span(span, 27, span.end).shape[1:], dtype=torch.uint8)
            made = Span(pool, span.table, span.start, span.end, span.first)
            write_span(made, 27, blank)
        assert torch.equal(one.buffer, two.buffer)


CASES = [
    (variant, dtype, (place + turn) % 2 == 0)
    for place, variant in enumerate(sorted(VARIANTS))
    for turn, dtype in enumerate(("bf16", "fp16", "fp32"))
]


@pytest.mark.parametrize(("variant", "dtype", "latent"), CASES)
def test_rows_follow_the_formula(variant: str, dtype: str, latent: bool) -> None:
    """Keys and values are those of loops in float64 within a few roundings; all other bytes are the twin's."""
    heads, size = (1, 21) if latent else (2, 10)
    path = drawn_path(dtype_of(dtype), HIDDEN, heads, size, latent=latent, seed=3, **VARIANTS[variant])
    form = plain_row(dtype, size)
    copy = Geometry(4, heads, form.cell_bytes, "head_major", pitch=form.cell_bytes + 3, offset=5)
    case, places = made_case(dtype, path, size, form, copy, offset=1)
    images = both(case, places)
    inputs = decode(read_span(case["inputs"], 27, 30), case["input_form"]).double().flatten(1)
    for which, span, pool in zip(("key", "value"), places, images[1], strict=False):
        made = decode(read_span(Span(pool, span.table, 22, 30), 27, 30), form).double()
        for token, hidden in enumerate(inputs.tolist()):
            expected, terms = slow_row(hidden, 27 + token, path, which)
            # One rounding behind each of four steps, and float32 sums of the terms inside them.
            bound = 4 * (ROUNDING[dtype].relative + HIDDEN * ROUNDING["fp32"].relative) * terms
            assert float((made[token] - torch.tensor(expected, dtype=torch.float64)).abs().max()) <= bound
    assert_equal_but_for(places, images)


@settings(max_examples=8)
@given(
    data=st.data(),
    rows=st.sampled_from([1, 3, 16]),
    layout=st.sampled_from(["token_major", "head_major", "value_major"]),
)
def test_everything_else_is_its_twin(data: st.DataObject, rows: int, layout: Any) -> None:
    """Held rows keep their bytes wherever they lie, the rest of the copy is zero, and all else untouched."""
    dtype = data.draw(st.sampled_from(["bf16", "fp16", "fp32"]))
    form = plain_row(dtype, 8)
    item = ROUNDING[dtype].bytes if layout == "value_major" else 1
    bare = Geometry(rows, 2, form.cell_bytes, layout, offset=data.draw(st.integers(0, 5)), item_bytes=item)
    copy = replace(bare, block_bytes=bare.used_bytes + data.draw(st.integers(0, 9)), stride=0)
    path = drawn_path(dtype_of(dtype), HIDDEN, 2, 8, seed=1)
    case, _ = made_case(dtype, path, 8, form, copy, data.draw(st.integers(1, 20)), data.draw(st.integers(0, 3)))
    to = case["into"].key.end
    blocks = -(-(to - 22) // rows) + 1
    places = [span_in(pool_of(copy, blocks, poison=POISON, slack=9), 22, to, seed=rows + i) for i in range(2)]
    case["into"] = LayerRows(places[0], form, places[1], form)
    images = both(case, places)
    for span, one, two in zip(places, *images, strict=True):
        rows_made = [decode(read_span(Span(p, span.table, 22, span.end), 27, span.end), form) for p in (one, two)]
        torch.testing.assert_close(
            *rows_made, rtol=8 * ROUNDING[dtype].relative, atol=0.05 if dtype != "fp32" else 1e-4
        )
    assert_equal_but_for(places, images)


def test_rows_in_pages_with_scales() -> None:
    """A DeepSeek-V4 window row, 448 fp8 values with seven scales and 64 of bf16, is its twin's within a step."""
    turning = Rotary(frequencies(64, 10000.0), pairing="interleaved", place="trailing")
    draw = torch.Generator().manual_seed(1)
    key = Linear((torch.randn(512, HIDDEN, generator=draw) / HIDDEN**0.5).to(torch.bfloat16))
    path = CachePath(None, key, None, 1, Norm(torch.ones(512, dtype=torch.bfloat16), 1e-6), rotary=turning)
    page = Geometry(64, 1, 584, block_bytes=37_440, offset=1)
    case, places = made_case("bf16", path, 512, V4_ROW, page, missing=5)
    images = both(case, places)
    one, two = (decode(read_span(Span(pools[0], places[0].table, 22, 32), 27, 32), V4_ROW)[:, 0] for pools in images)
    # Where a bfloat16 step before the scales went the other way, a value may land on the next fp8 number.
    step = 2 * ROUNDING["fp8_e4m3"].relative
    torch.testing.assert_close(two[:, :448], one[:, :448], rtol=step, atol=0.02)
    torch.testing.assert_close(two[:, 448:], one[:, 448:], rtol=4 * ROUNDING["bf16"].relative, atol=0.02)
    assert float((one == two).float().mean()) > 0.97
    assert_equal_but_for(places, images)


FAULTS = (
    "a gap between held and kept",
    "inputs end too early",
    "held begins too late",
    "nothing is missing",
    "another format",
    "inputs in fp8",
    "inputs of another size",
    "no values in the copy",
    "the copy has a block twice",
    "the copy has too few blocks",
    "the copy begins inside a block",
    "the copy's values lie over the held ones",
    "the copy's values have other heads",
)


@pytest.mark.parametrize("fault", FAULTS)
def test_what_cannot_be_filled_is_never_launched(fault: str) -> None:
    """The twin's faults are the kernel's, and no byte has changed."""
    case = faulty(fault)
    spans = [span for rows in (case["held"], case["into"]) for span in (rows.key, rows.value) if span is not None]
    before = [span.pool.buffer.clone() for span in spans]
    with pytest.raises(TensorError):
        launch.tail_fill(**case)
    assert all(torch.equal(was, span.pool.buffer) for was, span in zip(before, spans, strict=True))


def test_no_block_that_is_not_there_is_touched() -> None:
    """Tables that changed after they were looked at: nothing beyond the pools is read or written."""
    path = drawn_path(torch.float32, HIDDEN, 2, 8, seed=1)
    form = plain_row("fp32", 8)
    case, places = made_case("fp32", path, 8, form, Geometry(4, 2, 32, offset=3))
    filling = launch.prepare(**case)
    before = [span.pool.buffer.clone() for span in places]
    for step in filling.steps:
        names = dict(zip(step.kernel.arg_names, step.arguments, strict=False))
        names["target_table"].fill_(1 << 33)
        names["source_table"].fill_(-7)
        step.enqueue()
    assert all(torch.equal(was, span.pool.buffer) for was, span in zip(before, places, strict=True))


def test_what_was_prepared_is_launched_again() -> None:
    """What a graph would replay: the same launches make the new rows of new inputs."""
    path = drawn_path(torch.float32, HIDDEN, 2, 8, seed=1)
    form = plain_row("fp32", 8)
    case, places = made_case("fp32", path, 8, form, Geometry(4, 2, 32, offset=4), offset=4)
    filling = launch.prepare(**case)
    launch.tail_fill(**case, workspace=filling)
    first = places[0].pool.buffer.clone()
    write_span(case["inputs"], 27, encode(torch.randn(3, 1, HIDDEN), case["input_form"]))
    launch.tail_fill(**case, workspace=filling)
    again = places[0].pool.buffer.clone()
    assert not torch.equal(first, again)
    launch.tail_fill(**case)
    assert torch.equal(again, places[0].pool.buffer)
