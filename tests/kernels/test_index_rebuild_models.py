"""Index keys, scores and choices equal those of DeepSeek-V3.2's and DeepSeek-V4's own indexers."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers", minversion="5.24")

from hitproof.kernels.index_rebuild import index_scores, stable_top_k, token_keys  # noqa: E402
from hitproof.kernels.rotary import Rotary, rotated  # noqa: E402
from tests.kernels.deepseek_cache import entries_of  # noqa: E402
from tests.kernels.tiny_deepseek import (  # noqa: E402
    indexer_of,
    keeping_inputs,
    new_cache,
    random_tokens,
    run,
    tiny_v4,
    tiny_v32,
)

TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-5, torch.bfloat16: 2**-8 * 8}
"""Of numbers about 1; the library's angles are float32, and in bfloat16 it rounds at more places."""


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("cuts", [(1,), (37,), (300,), (1, 2), (63, 64, 65, 200), (128, 129)], ids=str)
def test_keys_of_tokens_equal_the_cache(dtype: Any, cuts: tuple[int, ...]) -> None:
    """Whatever passes a prompt comes in, each pass's keys, made of its inputs, are those in the model's cache."""
    model, cache = tiny_v32(dtype), None
    tokens, cache = random_tokens(cuts[-1], 4), new_cache(model)
    with keeping_inputs(model) as kept:
        for start, end in zip((0, *cuts), cuts, strict=False):
            run(model, tokens[:, start:end], cache)
    for layer, held in enumerate(cache.layers):
        starts = (0, *cuts)[: len(cuts)]
        parts = zip(kept[layer], starts, strict=True)
        made = torch.cat([token_keys(rows, indexer_of(model, layer), start) for rows, start in parts])
        torch.testing.assert_close(made, held.indexer_keys[0], rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


def watched(model: Any, module_of: Any, tokens: Any, cache: Any) -> dict[int, tuple[Any, Any]]:
    """What each layer's indexer was given and what it chose, in one pass."""
    seen: dict[int, tuple[Any, Any]] = {}
    hooks = []
    for layer, block in enumerate(model.model.layers):
        if (module := module_of(block)) is not None:
            hooks.append(
                module.register_forward_hook(
                    lambda _module, args, out, layer=layer: seen.__setitem__(layer, (args, out[0]))
                )
            )
    run(model, tokens, cache)
    for hook in hooks:
        hook.remove()
    return seen


@pytest.mark.parametrize("start", [0, 70])
def test_choice_among_tokens_equals_the_model(start: int) -> None:
    """From the cached keys and the queries of a pass, scores and a stable top-k give DeepSeek-V3.2's own choice."""
    model, tokens = tiny_v32(), random_tokens(130, 6)
    cache = new_cache(model)
    if start:
        run(model, tokens[:, :start], cache)
    seen = watched(model, lambda block: block.self_attn.indexer, tokens[:, start:], cache)
    positions = torch.arange(start, 130)
    assert 3 == len(seen)
    for layer, (args, chosen) in seen.items():
        module = model.model.layers[layer].self_attn.indexer
        queries = module.wq_b(args[1])[0].unflatten(-1, (module.n_heads, module.head_dim)).detach()
        queries = rotated(queries, positions, Rotary(model.model.rotary_emb.inv_freq))
        weights = module.weights_proj(args[0])[0].detach()
        scores = index_scores(queries, cache.layers[layer].indexer_keys[0], weights)
        ours = stable_top_k(scores, module.index_topk, positions + 1)
        read = ours >= 0
        assert torch.equal(ours[read], chosen.long()[read])
        assert bool((chosen.long() > positions[:, None])[~read].all())


@pytest.mark.parametrize("start", [0, 70])
def test_choice_among_entries_equals_the_model(start: int) -> None:
    """The same for DeepSeek-V4, whose queries see the entries of whole windows behind them."""
    model, tokens = tiny_v4(), random_tokens(130, 6)
    cache = new_cache(model)
    if start:
        run(model, tokens[:, :start], cache)
    seen = watched(model, lambda block: getattr(block.self_attn.compressor, "indexer", None), tokens[:, start:], cache)
    positions = torch.arange(start, 130)
    assert [1, 3] == list(seen)
    for layer, (args, chosen) in seen.items():
        module = model.model.layers[layer].self_attn.compressor.indexer
        queries = module.q_b_proj(args[1])[0].unflatten(-1, (module.num_heads, module.head_dim)).detach()
        rotary = Rotary(module.rotary_emb.compress_inv_freq, pairing="interleaved", place="trailing")
        weights = module.scorer.weights_proj(args[0])[0].detach()
        scores = index_scores(rotated(queries, positions, rotary), entries_of(cache, layer, "indexer"), weights)
        assert torch.equal(chosen, stable_top_k(scores, module.index_topk, (positions + 1) // 4))
