"""DeepSeek caches mended from nothing but what a cache holds: logits are those of a run that never lost anything.

Kept layer inputs are a cached group: captured during the prefill, stored in blocks, and the only source. The rest of
the prompt follows in one pass, and logits are compared, not tokens. The top-k of the models' indexers is replaced by a
stable one in all runs, since the library's breaks ties as it pleases.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache as once
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers", minversion="5.24")

from tests.kernels.deepseek_cache import (  # noqa: E402
    KeptInputs,
    compressing,
    entries_of,
    mend_by_protocol,
    put_entries,
    put_state,
    rebuilt,
    rebuilt_state,
    rebuilt_token_keys,
)
from tests.kernels.tiny_deepseek import (  # noqa: E402
    compressor_of,
    keeping_inputs,
    new_cache,
    random_tokens,
    run,
    tiny_v4,
    tiny_v32,
)

SUFFIX = 24
VALID, FAULT = 1e-5, 1e-2
"""Of the spread of logits, float32: what a valid cache stays below, and what every fault here passes."""
Damage = Callable[[Any, Any, Any, int], None]


@once
def model_of(kind: str, seed: int) -> Any:
    """A tiny model, made once."""
    return tiny_v4(seed=seed) if kind == "v4" else tiny_v32(seed=seed)


def prefilled(model: Any, tokens: Any) -> tuple[Any, KeptInputs]:
    """A cache after the prefix, and the kept inputs of its layers."""
    cache = new_cache(model)
    with keeping_inputs(model) as kept:
        run(model, tokens[:, :-SUFFIX], cache)
    return cache, KeptInputs(kept)


def error(model: Any, tokens: Any, cache: Any) -> float:
    """Largest difference of a logit from the cold run, as a share of the cold logits' spread."""
    cold = run(model, tokens, new_cache(model))[-SUFFIX:]
    return float((run(model, tokens[:, -SUFFIX:], cache) - cold).abs().max() / cold.std())


def drop_entries(model: Any, cache: Any, other: Any, length: int) -> None:
    """No compressed entry is left of the compressing layers, only room for them."""
    for layer, name, _ in compressing(model):
        if name == "compressor":
            put_entries(cache, layer, name, torch.zeros_like(entries_of(cache, layer, name)))


def spoil_entries(model: Any, cache: Any, other: Any, length: int) -> None:
    """The entries of the first compressing layer are another prompt's."""
    put_entries(cache, 1, "compressor", entries_of(other, 1, "compressor"))


def shift_index(model: Any, cache: Any, other: Any, length: int) -> None:
    """The index keys of one layer stand one entry off."""
    put_entries(cache, 3, "indexer", entries_of(cache, 3, "indexer").roll(1, 0))


def drop_index(model: Any, cache: Any, other: Any, length: int) -> None:
    """No index key is left of any layer, only room for them."""
    for layer, name, _ in compressing(model):
        if name == "indexer":
            put_entries(cache, layer, name, torch.zeros_like(entries_of(cache, layer, name)))


def drop_rows(model: Any, cache: Any, other: Any, length: int) -> None:
    """The rows of unfinished windows are blank."""
    for layer, name, _ in compressing(model):
        held = cache.layers[layer]
        held.buffer_kv[name] = torch.zeros_like(held.buffer_kv[name])
        held.buffer_gate[name] = torch.zeros_like(held.buffer_gate[name])


def swap_overlap(model: Any, cache: Any, other: Any, length: int) -> None:
    """The overlap of every layer is another prompt's."""
    for layer, name, module in compressing(model):
        if compressor_of(module).overlap:
            for held in ("overlap_kv", "overlap_gate"):
                getattr(cache.layers[layer], held)[name] = getattr(other.layers[layer], held)[name]


def all_of_them(model: Any, cache: Any, other: Any, length: int) -> None:
    """Entries, index keys and states of every compressing layer at once."""
    for damage in (drop_entries, drop_index, drop_rows, swap_overlap):
        damage(model, cache, other, length)


def mend_entries(model: Any, cache: Any, kept: KeptInputs) -> None:
    """Entries and index keys of every layer anew."""
    for layer, name, module in compressing(model):
        put_entries(cache, layer, name, rebuilt(kept, layer, name, module).entries)


def mend_states(model: Any, cache: Any, kept: KeptInputs) -> None:
    """States of every layer anew, each from no more inputs than it has rows."""
    for layer, name, module in compressing(model):
        put_state(cache, layer, name, rebuilt_state(kept, layer, module), compressor_of(module))


ENTRIES = [drop_entries, spoil_entries, shift_index, drop_index, all_of_them]
STATES = [drop_rows, swap_overlap, all_of_them]


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("length", [130, 131, 259])
@pytest.mark.parametrize("damage", dict.fromkeys([*ENTRIES, *STATES]), ids=lambda damage: damage.__name__)
def test_v4_continues_from_mended_objects_as_if_never_broken(damage: Damage, length: int, seed: int) -> None:
    """Damaged, logits are visibly wrong; mended from kept inputs in the cache they are those of the cold run."""
    model, tokens = model_of("v4", seed), random_tokens(length + SUFFIX, 10 + seed)
    other = prefilled(model, random_tokens(length + SUFFIX, 90 + seed))[0]
    broken = prefilled(model, tokens)[0]
    damage(model, broken, other, length)
    assert error(model, tokens, broken) > FAULT
    mended, kept = prefilled(model, tokens)
    damage(model, mended, other, length)
    if damage in ENTRIES:
        mend_entries(model, mended, kept)
    if damage in STATES:
        mend_states(model, mended, kept)
    assert error(model, tokens, mended) < VALID


@pytest.mark.parametrize("length", [127, 128, 132, 256])
def test_v4_continues_at_boundaries(length: int) -> None:
    """At and around whole windows of both ratios, everything made anew at once stands for what the model wrote."""
    model, tokens = model_of("v4", 2), random_tokens(length + SUFFIX, length)
    other = prefilled(model, random_tokens(length + SUFFIX, 5))[0]
    mended, kept = prefilled(model, tokens)
    all_of_them(model, mended, other, length)
    mend_entries(model, mended, kept)
    mend_states(model, mended, kept)
    assert error(model, tokens, mended) < VALID


@pytest.mark.parametrize("length", [131, 256])
def test_v4_continues_from_what_the_protocol_wrote(length: int) -> None:
    """The same when every object is made by a repair request into private blocks, and read from there."""
    model, tokens = model_of("v4", 1), random_tokens(length + SUFFIX, length)
    other = prefilled(model, random_tokens(length + SUFFIX, 5))[0]
    mended, kept = prefilled(model, tokens)
    all_of_them(model, mended, other, length)
    mend_by_protocol(model, mended, kept)
    assert error(model, tokens, mended) < VALID


def test_v4_state_of_the_wrong_inputs_is_seen() -> None:
    """A repair from another prompt's kept inputs does not pass: the comparison is no formality."""
    model, tokens = model_of("v4", 0), random_tokens(130 + SUFFIX, 10)
    cache = prefilled(model, tokens)[0]
    kept = prefilled(model, random_tokens(130 + SUFFIX, 91))[1]
    mend_states(model, cache, kept)
    assert error(model, tokens, cache) > FAULT


def shift_keys(cache: Any) -> None:
    """Every layer's index keys stand one token off."""
    for held in cache.layers:
        held.indexer_keys = held.indexer_keys.roll(1, 1)


def drop_young_keys(cache: Any) -> None:
    """The youngest keys of one layer are blank."""
    cache.layers[1].indexer_keys[:, -40:] = 0


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("length", [63, 130])
@pytest.mark.parametrize("damage", [shift_keys, drop_young_keys], ids=lambda damage: damage.__name__)
def test_v32_continues_from_rebuilt_index_keys(damage: Callable[[Any], None], length: int, seed: int) -> None:
    """Damaged index keys lead to other logits; keys rebuilt from kept inputs in the cache lead to the cold ones."""
    model, tokens = model_of("v32", seed), random_tokens(length + SUFFIX, 20 + seed)
    broken = prefilled(model, tokens)[0]
    damage(broken)
    assert error(model, tokens, broken) > FAULT
    mended, kept = prefilled(model, tokens)
    damage(mended)
    for layer, held in enumerate(mended.layers):
        held.indexer_keys = rebuilt_token_keys(kept, model, layer)[None]
    assert error(model, tokens, mended) < VALID
