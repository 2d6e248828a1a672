"""`tail_fill` against the caches that real models write: the same rows from the inputs of their layers."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from hitproof.kernels.norms import Linear, Norm  # noqa: E402
from hitproof.kernels.numbers import ROUNDING  # noqa: E402
from hitproof.kernels.rotary import Rotary, frequencies  # noqa: E402
from hitproof.kernels.tail_fill import CachePath, rows_from_inputs  # noqa: E402
from tests.kernels import tiny_deepseek  # noqa: E402
from tests.kernels.tiny_models import MODELS, WINDOW, cache_path, keeping_inputs, random_tokens, tiny  # noqa: E402

# The start of the text, an offset off every grid, and one beyond which float32 angles lose their last digits.
STARTS = (0, 37, 5000)
NEAR = {torch.float32: 1e-5, torch.float64: 1e-12}


def near(name: str, dtype: Any) -> float:
    """How near the rows must be; Llama 4's own code turns in float32 whatever its type."""
    return NEAR[torch.float32 if name == "llama4" else dtype]


def cached(name: str, layer: Any) -> tuple[Any, Any]:
    """[T, H, D] keys and values of one layer's cache; a latent and its rotary part in one row, and no values."""
    key, value = layer.keys[0].transpose(0, 1), layer.values[0].transpose(0, 1)
    return (torch.cat((key, value), -1), None) if name == "deepseek_v3" else (key, value)


def apart(got: Any, expected: Any) -> float:
    """The largest difference, as a share of the largest number."""
    return float((got - expected).abs().max() / expected.abs().max())


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("name", sorted(MODELS))
def test_rows_equal_those_that_the_model_cached(name: str, dtype: Any, start: int) -> None:
    """In every layer, local and global, keys and values made from kept inputs are the ones in the model's cache."""
    model = tiny(name, dtype)
    tokens, positions = random_tokens(90, seed=start), torch.arange(start, start + 90)
    with keeping_inputs(model) as kept, torch.no_grad():
        cache = model(tokens, position_ids=positions[None], use_cache=True).past_key_values
    for index, layer in enumerate(cache.layers):
        key, value = cached(name, layer)
        held = key.shape[0]
        assert held == (WINDOW - 1 if layer.is_sliding else 90)
        made = rows_from_inputs(kept[index][0][-held:], positions[-held:], cache_path(name, model, index))
        assert made.key.dtype == dtype
        assert apart(made.key, key) < near(name, dtype), f"keys of layer {index}"
        if value is not None:
            assert apart(made.value, value) < near(name, dtype), f"values of layer {index}"


@pytest.mark.parametrize("name", sorted(MODELS))
def test_the_comparison_sees_a_shift_by_one(name: str) -> None:
    """Rows turned to the position beside their own are far from the cached ones, wherever positions count."""
    model = tiny(name)
    with keeping_inputs(model) as kept, torch.no_grad():
        cache = model(random_tokens(60, seed=1), use_cache=True).past_key_values
    for index, layer in enumerate(cache.layers):
        path = cache_path(name, model, index)
        key, _ = cached(name, layer)
        positions = torch.arange(60)[-key.shape[0] :] + 1
        made = rows_from_inputs(kept[index][0][-key.shape[0] :], positions, path)
        assert (apart(made.key, key) > 1e-2) == (path.rotary is not None)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_bfloat16_rows_are_a_few_roundings_away(name: str) -> None:
    """In the type in which models are served, rows differ by no more than a rounding behind each of four steps."""
    model = tiny(name, torch.bfloat16)
    with keeping_inputs(model) as kept, torch.no_grad():
        cache = model(random_tokens(90, seed=3), use_cache=True).past_key_values
    for index, layer in enumerate(cache.layers):
        key, value = cached(name, layer)
        held = key.shape[0]
        made = rows_from_inputs(kept[index][0][-held:], torch.arange(90)[-held:], cache_path(name, model, index))
        for got, expected in ((made.key, key), (made.value, value)):
            if expected is not None:
                assert got is not None and got.dtype == torch.bfloat16
                assert apart(got.double(), expected.double()) <= 4 * ROUNDING["bf16"].relative


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
def test_windows_of_deepseek_v4_are_made_from_what_attention_was_given(dtype: Any) -> None:
    """V4 keeps one row for key and value in each window, turned at its end; its inputs are kept behind the norm."""
    model = tiny_deepseek.tiny_v4(dtype)
    cache, tokens = tiny_deepseek.new_cache(model), tiny_deepseek.random_tokens(61, seed=2)
    with tiny_deepseek.keeping_inputs(model) as kept:
        tiny_deepseek.run(model, tokens, cache)
    for index, layer in enumerate(cache.layers):
        attention = model.model.layers[index].self_attn
        rope = model.config.rope_parameters[attention.rope_layer_type]
        size = int(model.config.head_dim * rope["partial_rotary_factor"])
        path = CachePath(
            None,
            Linear(attention.kv_proj.weight.detach()),
            None,
            1,
            key_norm=Norm(attention.kv_norm.weight.detach(), model.config.rms_norm_eps, rounds_first=True),
            rotary=Rotary(frequencies(size, rope["rope_theta"]), pairing="interleaved", place="trailing"),
        )
        rows = layer.keys[0].transpose(0, 1)
        held = rows.shape[0]
        made = rows_from_inputs(kept[index][0][-held:], torch.arange(61 - held, 61), path)
        # Its own code turns in float32 whatever its type.
        assert held == model.config.sliding_window - 1 and apart(made.key, rows) < NEAR[torch.float32]
