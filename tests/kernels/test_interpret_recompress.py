"""The kernels that make entries and states: equal to their twins within float32 sums, and to the byte elsewhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from hitproof.kernels.blocks import Geometry, pool_of  # noqa: E402
from hitproof.kernels.jobs import Held, RepairFault  # noqa: E402
from hitproof.kernels.norms import Linear  # noqa: E402
from hitproof.kernels.numbers import V4_INDEX_ROW, V4_ROW, RowFormat, encode, plain_row  # noqa: E402
from hitproof.kernels.recompress import launch, layers  # noqa: E402
from hitproof.kernels.recompress.inputs import LayerWeights  # noqa: E402
from hitproof.kernels.recompress.layers import StoredState  # noqa: E402
from hitproof.kernels.recompress.pages import read_rows, state_format, state_rows, write_state  # noqa: E402
from hitproof.kernels.recompress.reference import Compressor, live_rows, state_from_rows  # noqa: E402
from hitproof.kernels.recompress.slow import drawn_compressor, drawn_rows, slow_entries  # noqa: E402
from hitproof.kernels.recompress.sources import scratch_size  # noqa: E402
from hitproof.kernels.recompress.trial import allowed_row_error  # noqa: E402
from hitproof.kernels.registry import INTERPRETER_SWITCH  # noqa: E402
from hitproof.kernels.rotary import Rotary  # noqa: E402
from hitproof.kernels.selftest.trial import empty_copy, held_rows  # noqa: E402
from hitproof.spec.errors import TensorError  # noqa: E402
from tests.architecture.source_tree import LINKS  # noqa: E402

# The interpreter divides by way of numpy, which warns of what becomes a NaN on purpose.
pytestmark = pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
TERMS = 2.0**-15
"""What float32 may add to a number about 1: a softmax, a norm and a rotation."""
COMPRESSORS = {
    "ratio 4": drawn_compressor(4, 12, 4, overlap=True),
    "ratio 128": drawn_compressor(128, 10, 6, overlap=False),
    "ratio 3, all turned": drawn_compressor(3, 18, 18, overlap=True),
    "ratio 5, leading halves": replace(
        drawn_compressor(5, 33, 4, overlap=False), rotary=Rotary(torch.tensor([1.0, 0.3, 0.01]))
    ),
}


def kept(values: Any, gates: Any, dtype: str = "fp32", start: int = 0, offset: int = 3) -> Held:
    """Projections as they are kept: values and gates of a token in a row, at any byte."""
    form = plain_row(dtype, 2 * values.shape[-1])
    cells = encode(torch.cat([values, gates], dim=-1), form)[:, None, None]
    return held_rows(cells, Geometry(5, 1, form.cell_bytes, offset=offset), form, first=2, start=start)


def copy_for(form: RowFormat, count: int, rows: int = 3, page: int = 0, first: int = 1) -> Held:
    """Poisoned blocks of a copy, which begins amid a block."""
    return empty_copy(Geometry(rows, 1, form.cell_bytes, block_bytes=page, offset=1), form, count, first=first)


def emptied(target: Held) -> Held:
    """The same copy in memory of its own."""
    pools = tuple(replace(pool, buffer=pool.buffer.clone()) for pool in target.layers)
    return replace(target, layers=pools)


def rows_in(target: Held, count: int) -> Any:
    """Float32 rows of the first layer's copy."""
    return read_rows(target.layers[0], target.table, count, target.form, target.first)


def assert_close_but_for_nothing_else(one: Held, two: Held, count: int, near: float = TERMS) -> None:
    """Rows agree within float32 sums, and every other byte to the bit."""
    torch.testing.assert_close(rows_in(two, count), rows_in(one, count), rtol=near, atol=near)
    assert changed(one, count) == changed(two, count) == set()


def changed(target: Held, count: int) -> set[int]:
    """Bytes that are not the poison any more, though they belong to none of the rows."""
    pool, geometry = target.layers[0], target.layers[0].geometry
    found = set(torch.nonzero(pool.buffer != 0xA5).flatten().tolist())
    for row in range(target.first, target.first + count):
        at = (
            geometry.offset
            + int(target.table[row // geometry.rows]) * geometry.stride
            + row % geometry.rows * geometry.pitch
        )
        found -= set(range(at, at + geometry.cell_bytes))
    return found


@pytest.mark.parametrize("name", sorted(COMPRESSORS))
@settings(max_examples=8)
@given(data=st.data())
def test_entries_are_their_twins(name: str, data: st.DataObject) -> None:
    """From the first token or from amid, from kept rows alone or behind a state at any token of the window."""
    compressor = COMPRESSORS[name]
    ratio, weights = compressor.ratio, LayerWeights(compressor)
    first, count = data.draw(st.integers(0, 3)) * ratio, data.draw(st.integers(1, 3))
    to = first + count * ratio
    values, gates = drawn_rows(to, compressor)
    length = first + data.draw(st.integers(0, ratio - 1))
    behind = data.draw(st.booleans())
    state = stored_state(values, gates, compressor, length) if behind else None
    since = length if behind else first - live_rows(first, ratio, compressor.overlap)
    dtype = data.draw(st.sampled_from(["fp32", "bf16"])) if not behind else "fp32"
    inputs = kept(values[since:], gates[since:], dtype, since, data.draw(st.integers(0, 4)))
    one = copy_for(plain_row("fp32", compressor.size), count)
    two = emptied(one)
    layers.entries_into(inputs, 0, weights, first, to, one, state)
    launch.entries_into(inputs, 0, weights, first, to, two, state)
    assert_close_but_for_nothing_else(one, two, count)
    if dtype == "fp32" and compressor.rotary.place == "trailing":
        expected = slow_entries(values, gates, compressor)[first // ratio :]
        torch.testing.assert_close(rows_in(two, count).double(), expected, rtol=TERMS, atol=TERMS)


def stored_state(values: Any, gates: Any, compressor: Compressor, length: int) -> StoredState:
    """The state at a length in blocks at an odd byte, amid which it begins; NaN in all rows that are not live."""
    form = state_format(compressor)
    pool = pool_of(Geometry(4, 1, form.cell_bytes, offset=3), 60, poison=0xFF)
    table = torch.randperm(60, generator=torch.Generator().manual_seed(length))
    state = state_from_rows(values[:length], gates[:length], compressor)
    write_state(pool, table, state, compressor, 2)
    live = state.values.shape[0]
    for row in range(2 + live, 2 + state_rows(compressor)):
        pool.cells[table[row // 4], row % 4] = 0xFF
    return StoredState(pool, table, length, 2)


@pytest.mark.parametrize("name", ["ratio 128", "ratio 3, all turned", "ratio 4"])
@settings(max_examples=6)
@given(data=st.data())
def test_states_are_their_twins_to_the_bit(name: str, data: st.DataObject) -> None:
    """Live rows, blank ones and all bytes around, from kept rows and from an earlier state."""
    compressor = COMPRESSORS[name]
    weights, ratio = LayerWeights(compressor), compressor.ratio
    length = data.draw(st.integers(0, 3 * ratio))
    values, gates = drawn_rows(length, compressor)
    earlier = data.draw(st.integers(0, length)) if data.draw(st.booleans()) else None
    state = None if earlier is None else stored_state(values, gates, compressor, earlier)
    since = length - live_rows(length, ratio, compressor.overlap) if earlier is None else earlier
    inputs = kept(values[since:], gates[since:], start=since, offset=data.draw(st.integers(0, 4)))
    count = state_rows(compressor)
    one = copy_for(state_format(compressor), count)
    two = emptied(one)
    layers.state_into(inputs, 0, weights, length, one, state)
    launch.state_into(inputs, 0, weights, length, two, state)
    assert torch.equal(one.layers[0].buffer, two.layers[0].buffer)
    assert set() == changed(two, count)


@pytest.mark.parametrize("weight", ["fp32", "bf16"])
@pytest.mark.parametrize("dtype", ["bf16", "fp16", "fp32"])
def test_hidden_states_are_projected(dtype: str, weight: str) -> None:
    """Inputs of any plain format, weights of another, a bias: entries and state are the twins'."""
    # More than one tile of tokens, of columns and of inputs, and no multiple of any.
    compressor = drawn_compressor(4, 36, 4, overlap=True)
    draw = torch.Generator().manual_seed(4)
    kind = torch.bfloat16 if weight == "bf16" else torch.float32
    value, gate = ((torch.randn((72, 530), generator=draw) / 23).to(kind) for _ in range(2))
    weights = LayerWeights(compressor, Linear(value, torch.randn(72, generator=draw)), Linear(gate))
    form = plain_row(dtype, 530)
    cells = encode(torch.randn((20, 1, 1, 530), generator=draw), form)
    inputs = held_rows(cells, Geometry(4, 1, form.cell_bytes, offset=1), form, first=1, start=4)
    for into, count, made in (
        ((8, 24), 4, plain_row("fp32", 36)),
        ((22,), state_rows(compressor), state_format(compressor)),
    ):
        one = copy_for(made, count)
        two, three = emptied(one), emptied(one)
        name = "entries_into" if len(into) == 2 else "state_into"
        getattr(layers, name)(inputs, 0, weights, *into, one)
        getattr(launch, name)(inputs, 0, weights, *into, two)
        assert_close_but_for_nothing_else(one, two, count)
        workspace = torch.full((scratch_size(weights, 20),), torch.nan)
        getattr(launch, name)(inputs, 0, weights, *into, three, workspace=workspace)
        assert torch.equal(two.layers[0].buffer, three.layers[0].buffer)


@pytest.mark.parametrize(
    ("ratio", "size", "form", "rows", "page"),
    [(4, 512, V4_ROW, 64, 37_440), (128, 512, V4_ROW, 2, 1_728), (4, 128, V4_INDEX_ROW, 64, 8_640)],
    ids=["ratio 4", "ratio 128", "index keys"],
)
def test_pages_hold_entries_within_rounding(ratio: int, size: int, form: RowFormat, rows: int, page: int) -> None:
    """In DeepSeek-V4's pages entries are off by one rounding; scales and padding are the twin's."""
    compressor = drawn_compressor(ratio, size, 64, overlap=ratio == 4)
    count = 3
    values, gates = drawn_rows(count * ratio, compressor)
    # A row of zeros has scales of one, and numbers far below one small scales.
    values[:ratio] = 0
    values[ratio : 2 * ratio] *= 2.0**-40
    inputs, weights = kept(values, gates), LayerWeights(compressor)
    one = copy_for(form, count, rows, page)
    two = emptied(one)
    layers.entries_into(inputs, 0, weights, 0, count * ratio, one)
    launch.entries_into(inputs, 0, weights, 0, count * ratio, two)
    exact = slow_entries(values, gates, compressor)
    assert bool(((rows_in(two, count).double() - exact).abs() <= allowed_row_error(exact, form)).all())
    assert set() == changed(two, count)
    same = rows_in(one, count) == rows_in(two, count)
    assert float(same.float().mean()) > 0.99
    # Bytes of the pad, and of the scales of zeros.
    assert torch.equal(
        one.layers[0].cells[one.table[0], one.first, 0, 0, -8:], two.layers[0].cells[two.table[0], two.first, 0, 0, -8:]
    )


def test_no_series_is_read_for_another_window() -> None:
    """NaN in the second series of the overlap and in the first of the last window reaches no entry."""
    compressor = COMPRESSORS["ratio 4"]
    values, gates = drawn_rows(12, compressor)
    one = copy_for(plain_row("fp32", 12), 1)
    two = emptied(one)
    weights = LayerWeights(compressor)
    launch.entries_into(kept(values[4:], gates[4:], start=4), 0, weights, 8, 12, one)
    for rows in (values, gates):
        rows[4:8, 12:] = torch.nan
        rows[8:, :12] = torch.nan
    launch.entries_into(kept(values[4:], gates[4:], start=4), 0, weights, 8, 12, two)
    assert torch.equal(one.layers[0].buffer, two.layers[0].buffer)


def test_empty_scores_weigh_nothing() -> None:
    """A state whose overlap is blank gives the entry of the own series alone, and no NaN."""
    compressor = COMPRESSORS["ratio 3, all turned"]
    values, gates = drawn_rows(6, compressor)
    state = stored_state(values, gates, compressor, 3)
    blank = torch.full((3, compressor.width), -torch.inf)
    write_state(state.pool, state.table, replace_scores(values, gates, compressor, blank), compressor, 2)
    one = copy_for(plain_row("fp32", 18), 1)
    two = emptied(one)
    inputs, weights = kept(values[3:], gates[3:], start=3), LayerWeights(compressor)
    layers.entries_into(inputs, 0, weights, 3, 6, one, state)
    launch.entries_into(inputs, 0, weights, 3, 6, two, state)
    assert bool(rows_in(two, 1).isfinite().all())
    assert_close_but_for_nothing_else(one, two, 1)


def replace_scores(values: Any, gates: Any, compressor: Compressor, scores: Any) -> Any:
    """The state at three tokens with other scores."""
    return replace(state_from_rows(values[:3], gates[:3], compressor), scores=scores)


def test_positions_need_more_than_32_bits() -> None:
    """Far behind 2**32 tokens entries are turned by their own positions, and kept rows are found by theirs."""
    compressor = drawn_compressor(4, 12, 4, overlap=True)
    slow = Rotary(torch.full((2,), 2.0**-33 * torch.pi), pairing="interleaved", place="trailing")
    weights = LayerWeights(Compressor(compressor.position_bias, compressor.norm, slow, overlap=True))
    first = 2**32
    values, gates = drawn_rows(12, compressor)
    inputs = kept(values, gates, start=first - 4)
    one = copy_for(plain_row("fp32", 12), 2)
    two = emptied(one)
    layers.entries_into(inputs, 0, weights, first, first + 8, one)
    launch.entries_into(inputs, 0, weights, first, first + 8, two)
    assert_close_but_for_nothing_else(one, two, 2)


CSA = COMPRESSORS["ratio 4"]
FAULTS: dict[str, dict[str, Any]] = {
    "no whole windows": {"first": 5},
    "a window before that is not kept": {"first": 4},
    "a token that is not kept": {"to": 20},
    "a state of another window": {"state": StoredState(pool_of(Geometry(4, 1, 192), 3), torch.arange(3), 6)},
    "a state in too few blocks": {"state": StoredState(pool_of(Geometry(4, 1, 192), 3), torch.arange(1), 9)},
    "a state of another size": {"state": StoredState(pool_of(Geometry(4, 1, 96), 3), torch.arange(3), 9)},
    "entries of another size": {"form": plain_row("fp32", 13)},
    "blocks of another size": {"cell": 52},
    "blocks that are not there": {"table": torch.tensor([7, 8])},
    "a block twice": {"table": torch.tensor([1, 1])},
    "too few blocks": {"table": torch.tensor([1])},
    "rows of another compressor": {"weights": LayerWeights(drawn_compressor(4, 13, 4, overlap=True))},
    "projections of another size": {"weights": LayerWeights(CSA, Linear(torch.ones(24, 5)), Linear(torch.ones(24, 5)))},
    "a workspace that is too small": {
        "weights": LayerWeights(CSA, Linear(torch.ones(24, 48)), Linear(torch.ones(24, 48))),
        "workspace": torch.empty(3),
    },
}


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_what_does_not_fit_is_never_launched(fault: str) -> None:
    """It is an error, as with the twin, and no byte has changed."""
    given_ = {"first": 8, "to": 16, "weights": LayerWeights(CSA), "form": plain_row("fp32", 12), **FAULTS[fault]}
    values, gates = drawn_rows(13, CSA)
    inputs = kept(values, gates, start=4)
    target = copy_for(given_["form"], 2, rows=2)
    geometry = Geometry(2, 1, given_.get("cell", given_["form"].cell_bytes), offset=1)
    pool = pool_of(geometry, 4, poison=0xA5)
    target = replace(target, layers=(pool,), table=given_.get("table", target.table))
    makers: list[tuple[Any, dict[str, Any]]] = [
        (layers.entries_into, {}),
        (launch.entries_into, {"workspace": given_.get("workspace")}),
    ]
    for make, more in makers[1:] if "workspace" in given_ else makers:
        with pytest.raises((TensorError, RepairFault)):
            make(inputs, 0, given_["weights"], given_["first"], given_["to"], target, given_.get("state"), **more)
        assert bool((pool.buffer == 0xA5).all())


def test_no_block_that_is_not_there_is_touched() -> None:
    """Tables that changed after they were looked at: nothing beyond the pools is read or written."""
    values, gates = drawn_rows(12, CSA)
    target = copy_for(plain_row("fp32", 12), 2)
    steps = launch.prepare_entries(kept(values, gates), 0, LayerWeights(CSA), 4, 12, target)
    state = copy_for(state_format(CSA), 7)
    steps += launch.prepare_state(kept(values, gates), 0, LayerWeights(CSA), 9, state)
    for step in steps:
        names = dict(zip(step.kernel.arg_names, step.arguments, strict=False))
        names["target_table"].fill_(1 << 33)
        names["source_table"].fill_(-7)
        step.enqueue()
    assert all(bool((one.layers[0].buffer == 0xA5).all()) for one in (target, state))


CHILD = """
import json
from hitproof.kernels.recompress.cases import specs
from hitproof.kernels.targets import compile_one
chosen = [spec for spec in specs() if spec.kernel.__name__ == "project_kernel"]
print(json.dumps([[spec.constants["NATIVE"], compile_one("recompress", spec, "sm100").matrix] for spec in chosen]))
"""


def test_products_of_float32_stay_float32() -> None:
    """On sm100 no tensor core, which would round them to tf32, takes products of float32; it takes those of 16 bits."""
    environment = {name: value for name, value in os.environ.items() if name != INTERPRETER_SWITCH}
    environment["PYTHONPATH"] = str(LINKS.parent)
    done = subprocess.run([sys.executable, "-c", CHILD], env=environment, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert {0, 1} == {native for native, _ in found}
    assert all((matrix > 0) == bool(native) for native, matrix in found)
