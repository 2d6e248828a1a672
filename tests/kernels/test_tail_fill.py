"""`tail_fill`: held rows copied, missing ones made from kept inputs, and nothing else touched."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from hitproof.kernels.blocks import Geometry, Pool, pool_of  # noqa: E402
from hitproof.kernels.norms import Norm  # noqa: E402
from hitproof.kernels.numbers import ROUNDING, decode, dtype_of, encode, plain_row  # noqa: E402
from hitproof.kernels.rotary import Rotary, frequencies  # noqa: E402
from hitproof.kernels.spans import Span, read_span, write_span  # noqa: E402
from hitproof.kernels.tail_fill import Filled, LayerRows, rows_from_inputs, tail_fill  # noqa: E402
from hitproof.kernels.tail_fill.slow import drawn_path, slow_row  # noqa: E402
from hitproof.spec.errors import TensorError  # noqa: E402

HIDDEN = 20
POISON = 0xA5


def span_in(pool: Pool, start: int, end: int, seed: int, first: int = 0) -> Span:
    """A span over blocks of the pool in random order."""
    count = -(-(first + end - start) // pool.geometry.rows)
    table = torch.randperm(pool.blocks, generator=torch.Generator().manual_seed(seed))[:count]
    return Span(pool, table, start, end, first)


def random_rows(span: Span, seed: int) -> Any:
    """Fill a span with random bytes that are numbers in every format, and hand them back."""
    geometry = span.pool.geometry
    shape = (span.end - span.start, geometry.heads, geometry.cell_bytes)
    rows = torch.randint(0, 0x60, shape, dtype=torch.uint8, generator=torch.Generator().manual_seed(seed))
    write_span(span, span.start, rows)
    return rows


PATHS: dict[str, dict[str, Any]] = {
    "grouped": {"heads": 2, "size": 16, "latent": False},
    "latent of 576": {"heads": 1, "size": 576, "latent": True},
    "one head of 64": {"heads": 1, "size": 64, "latent": False},
}
VARIANTS: dict[str, dict[str, Any]] = {
    "as Gemma": {},
    "no positions": {"rotary": None, "key_norm": None},
    # With a weight, since a norm without one and a turn may change places.
    "norm behind": {"norm_after_rotary": True},
    "norm kept out": {"input_norm": None},
    "value norm": {"value_norm": Norm(None, 1e-6)},
    "pairs": {"rotary": Rotary(frequencies(8, 1000.0), 1.3, "interleaved")},
}


@pytest.mark.parametrize("variant", sorted(VARIANTS))
@pytest.mark.parametrize("dtype", ["bf16", "fp16", "fp32"])
@pytest.mark.parametrize("shape", sorted(PATHS))
def test_rows_follow_the_formula(shape: str, dtype: str, variant: str) -> None:
    """Keys and values are those of loops in float64, within a few roundings of the terms that they are made of."""
    path = drawn_path(dtype_of(dtype), HIDDEN, **PATHS[shape], seed=3, **VARIANTS[variant])
    inputs = torch.randn(3, HIDDEN, generator=torch.Generator().manual_seed(5)).to(dtype_of(dtype))
    positions = torch.tensor([0, 77, 3001])
    made = rows_from_inputs(inputs, positions, path)
    for which, rows in (("key", made.key), ("value", made.value)):
        if rows is None:
            assert path.value is None
            continue
        assert rows.dtype == dtype_of(dtype)
        for t, position in enumerate(positions.tolist()):
            expected, size = slow_row(inputs[t].double().tolist(), position, path, which)
            # One rounding behind each of four steps, and float32 sums of the terms inside them.
            bound = 4 * (ROUNDING[dtype].relative + HIDDEN * 2.0**-24) * size
            assert float((rows[t].double() - torch.tensor(expected, dtype=torch.float64)).abs().max()) <= bound


@settings(max_examples=40)
@given(
    data=st.data(),
    rows=st.sampled_from([1, 3, 16]),
    layout=st.sampled_from(["token_major", "head_major"]),
    offset=st.integers(0, 33),
    dtype=st.sampled_from(["bf16", "fp16", "fp32"]),
)
def test_only_the_copy_is_written(data: st.DataObject, rows: int, layout: Any, offset: int, dtype: str) -> None:
    """Held rows keep their bytes, new ones follow the formula, the rest of the copy is zero, all else untouched."""
    start = data.draw(st.integers(0, 40))
    end = start + data.draw(st.integers(0, 20))
    first, to = data.draw(st.integers(start, end)), end + data.draw(st.integers(1, 12))
    path = drawn_path(dtype_of(dtype), HIDDEN, 2, 8, seed=1)
    form, cell = plain_row(dtype, 8), plain_row(dtype, 8).cell_bytes
    found = Geometry(16, 2, cell, offset=offset, pitch=2 * cell + 5)
    pools = [pool_of(found, 6, poison=POISON, slack=9) for _ in "kv"]
    held = [span_in(pool, start, end, seed=i, first=data.draw(st.integers(0, 15))) for i, pool in enumerate(pools)]
    kept = [random_rows(span, seed=9 + i) for i, span in enumerate(held)]
    copy = Geometry(rows, 2, cell, layout=layout, block_bytes=rows * 2 * cell + 7, offset=3)
    into = [span_in(pool_of(copy, 40, poison=POISON, slack=9), first, to, seed=7 + i) for i in range(2)]
    hidden = torch.randn(to - end + 4, 1, HIDDEN, generator=torch.Generator().manual_seed(2))
    input_form = plain_row(dtype, HIDDEN)
    inputs = span_in(
        pool_of(Geometry(5, 1, input_form.cell_bytes), 9, poison=POISON), end - min(end, 2), to + 2, seed=4
    )
    write_span(inputs, inputs.start, encode(hidden[: inputs.end - inputs.start], input_form))
    before = [pool.buffer.clone() for pool in (*pools, inputs.pool)]

    filled = tail_fill(
        LayerRows(held[0], form, held[1], form), inputs, input_form, path, LayerRows(into[0], form, into[1], form)
    )

    assert filled == Filled(first, to, to - end, 2 * (to - first) * 2 * cell)
    assert all(torch.equal(was, pool.buffer) for was, pool in zip(before, (*pools, inputs.pool), strict=True))
    taken = decode(read_span(inputs, end, to), input_form).to(dtype_of(dtype)).flatten(1)
    new = rows_from_inputs(taken, torch.arange(end, to), path)
    assert new.value is not None
    for span, source, fresh in zip(into, kept, (new.key, new.value), strict=True):
        expected = pool_of(copy, 40, poison=POISON, slack=9)
        expected.owned[span.table] = 0
        write_span(
            Span(expected, span.table, first, to), first, torch.cat((source[first - start :], encode(fresh, form)))
        )
        assert torch.equal(expected.buffer, span.pool.buffer)


def small_case() -> dict[str, Any]:
    """Tokens [4, 10) held, inputs of [8, 14), and [6, 14) wanted."""
    form, input_form = plain_row("fp32", 8), plain_row("fp32", HIDDEN)
    made = [span_in(pool_of(Geometry(4, 1, form.cell_bytes), 5, poison=POISON), 4, 10, seed=i) for i in range(2)]
    copies = [span_in(pool_of(Geometry(4, 1, form.cell_bytes), 5, poison=POISON), 6, 14, seed=i) for i in range(2)]
    inputs = span_in(pool_of(Geometry(4, 1, input_form.cell_bytes), 5), 8, 14, seed=3)
    return {
        "held": LayerRows(made[0], form, made[1], form),
        "inputs": inputs,
        "input_form": input_form,
        "path": drawn_path(torch.float32, HIDDEN, 1, 8),
        "into": LayerRows(copies[0], form, copies[1], form),
    }


def with_spans(rows: LayerRows, **changes: Any) -> LayerRows:
    """The same rows in spans that differ in some field."""
    assert rows.value is not None

    def changed(span: Span) -> Span:
        fields = {name: getattr(span, name) for name in ("pool", "table", "start", "end", "first")}
        return Span(**{**fields, **changes})

    return LayerRows(changed(rows.key), rows.key_form, changed(rows.value), rows.value_form)


def faulty(fault: str) -> dict[str, Any]:
    """A case in which one thing does not suit."""
    case = small_case()
    form, table = plain_row("fp32", 8), torch.arange(5)
    match fault:
        case "a gap between held and kept":
            case["inputs"] = Span(case["inputs"].pool, table, 11, 14)
        case "inputs end too early":
            case["inputs"] = Span(case["inputs"].pool, table, 8, 13)
        case "held begins too late":
            case["held"] = with_spans(case["held"], start=7, table=table)
        case "nothing is missing":
            case["into"] = with_spans(case["into"], end=10)
        case "another format":
            case["into"] = LayerRows(case["into"].key, plain_row("bf16", 16), case["into"].value, plain_row("bf16", 16))
        case "inputs in fp8":
            case["input_form"] = plain_row("fp8_e4m3", HIDDEN * 4)
        case "inputs of another size":
            case["input_form"] = plain_row("bf16", HIDDEN * 2)
        case "no values in the copy":
            case["into"] = LayerRows(case["into"].key, form)
            case["held"] = LayerRows(case["held"].key, form)
            case["held"], case["into"] = LayerRows(case["held"].key, form), LayerRows(case["into"].key, form)
        case "the copy has a block twice":
            case["into"] = with_spans(case["into"], table=torch.tensor([1, 1]))
        case "the copy has too few blocks":
            case["into"] = with_spans(case["into"], table=torch.tensor([1]))
        case "the copy begins inside a block":
            case["into"] = with_spans(case["into"], first=1, table=table)
        case "the copy's values lie over the held ones":
            key, value = case["into"].key, case["held"].value
            case["into"] = LayerRows(key, form, Span(value.pool, value.table, 6, 14), form)
        case "the copy's values have other heads":
            wide = Span(pool_of(Geometry(4, 2, 32), 5, poison=POISON), table, 6, 14)
            case["into"] = LayerRows(case["into"].key, form, wide, form)
    return case


@pytest.mark.parametrize(
    "fault",
    [
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
    ],
)
def test_what_cannot_be_filled_leaves_no_trace(fault: str) -> None:
    """Where a source or a place does not suit, the answer is a typed error, and no byte anywhere has changed."""
    case = faulty(fault)
    spans = [span for rows in (case["held"], case["into"]) for span in (rows.key, rows.value) if span is not None]
    before = [span.pool.buffer.clone() for span in spans]
    with pytest.raises(TensorError):
        tail_fill(**case)
    assert all(torch.equal(was, span.pool.buffer) for was, span in zip(before, spans, strict=True))


def test_the_case_without_a_fault_is_filled() -> None:
    """What the faults are made from is sound, so that each of them is refused for its own sake."""
    assert tail_fill(**small_case()) == Filled(6, 14, 4, 2 * 8 * 32)
