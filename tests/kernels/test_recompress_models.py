"""Entries and states equal those that DeepSeek-V4's own code keeps, at every kind of length."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers", minversion="5.24")

from hitproof.kernels.recompress import Compressor, CompressorState, project, recompress  # noqa: E402
from tests.kernels.deepseek_cache import compressing, entries_of, state_of  # noqa: E402
from tests.kernels.tiny_deepseek import (  # noqa: E402
    compressor_of,
    keeping_inputs,
    new_cache,
    projections_of,
    random_tokens,
    run,
    tiny_v4,
)

TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 2**-8 * 6}
"""Of numbers about 1. Both round to float32 at the same places; in bfloat16 the library rounds at many more."""
TURNED = {**TOLERANCE, torch.float64: 1e-6}
"""Of the rotary part: the library turns in float32 even in a float64 model."""
ROTARY = 8
LENGTHS = [1, 3, 4, 5, 8, 31, 127, 128, 129, 132, 255, 256, 258, 300]


def assert_same(expected: Any, got: Any, tolerances: dict[Any, float] = TOLERANCE) -> None:
    """Equal within the tolerance of the type."""
    tolerance = tolerances[expected.dtype]
    torch.testing.assert_close(got.to(expected.dtype), expected, rtol=tolerance, atol=tolerance)


def assert_same_entries(expected: Any, got: Any) -> None:
    """Equal in the part that is turned to a position, and more strictly in the other."""
    assert_same(expected[:, :-ROTARY], got[:, :-ROTARY])
    assert_same(expected[:, -ROTARY:], got[:, -ROTARY:], TURNED)


def assert_same_state(expected: CompressorState, got: CompressorState, compressor: Compressor) -> None:
    """Equal in every row that is read; of overlap rows only the first series is."""
    assert expected.length == got.length
    overlap = got.values.shape[0] - got.length % compressor.ratio
    for kept, made in ((expected.values, got.values), (expected.scores, got.scores)):
        assert kept.shape == made.shape
        assert_same(kept[overlap:], made[overlap:].to(kept.dtype))
        assert_same(kept[:overlap, : compressor.size], made[:overlap, : compressor.size].to(kept.dtype))


@pytest.fixture(scope="module", params=[torch.float32, torch.float64, torch.bfloat16], ids=str)
def model(request: pytest.FixtureRequest) -> Any:
    """A tiny DeepSeek-V4 of each type."""
    return tiny_v4(request.param)


@pytest.mark.parametrize("length", LENGTHS)
def test_made_of_layer_inputs_they_equal_the_cache(model: Any, length: int) -> None:
    """From the inputs of one pass, every compressor's entries and state are those in the model's cache."""
    cache = new_cache(model)
    with keeping_inputs(model) as kept:
        run(model, random_tokens(length, length), cache)
    modules = compressing(model)
    assert 5 == len(modules)
    for layer, name, module in modules:
        compressor = compressor_of(module)
        made = recompress(*project(kept[layer][0], *projections_of(module)), compressor)
        assert cache.layers[layer].entry_count[name] == length // compressor.ratio == made.entries.shape[0]
        assert_same_entries(entries_of(cache, layer, name), made.entries)
        assert_same_state(state_of(cache, layer, name, compressor), made.state, compressor)


@pytest.mark.parametrize(
    ("start", "length"), [(1, 2), (3, 4), (4, 9), (6, 7), (7, 130), (127, 129), (128, 256), (130, 263), (257, 300)]
)
def test_they_resume_from_the_cache_of_the_model(model: Any, start: int, length: int) -> None:
    """From the model's own state amid a window and the inputs after it, later entries and states are the model's."""
    tokens = random_tokens(length, 7)
    cache = new_cache(model)
    run(model, tokens[:, :start], cache)
    before = {
        (layer, name): state_of(cache, layer, name, compressor_of(module)) for layer, name, module in compressing(model)
    }
    with keeping_inputs(model) as kept:
        run(model, tokens[:, start:], cache)
    for layer, name, module in compressing(model):
        compressor = compressor_of(module)
        rows = project(kept[layer][0], *projections_of(module))
        made = recompress(*rows, compressor, before[layer, name])
        assert start // compressor.ratio == made.first
        assert_same_entries(entries_of(cache, layer, name)[made.first :], made.entries)
        assert_same_state(state_of(cache, layer, name, compressor), made.state, compressor)


def test_a_state_of_another_length_makes_other_entries() -> None:
    """The comparison can fail: a state that is one token off gives entries that are not the model's."""
    model = tiny_v4()
    cache = new_cache(model)
    with keeping_inputs(model) as kept:
        run(model, random_tokens(24, 3), cache)
    for layer, name, module in compressing(model):
        compressor = compressor_of(module)
        if not compressor.overlap:
            continue
        values, gates = project(kept[layer][0], *projections_of(module))
        stale = recompress(values[:11], gates[:11], compressor).state
        moved = CompressorState(12, stale.values[3:], stale.scores[3:])
        made = recompress(values[12:], gates[12:], compressor, moved)
        expected = entries_of(cache, layer, name)[3:]
        assert float((expected[0] - made.entries[0]).abs().max()) > 1e-2
        assert_same_entries(expected[1:], made.entries[1:])
