"""Index keys, their scores and choices: equal to slow readings, stable among equals, and told apart by their digest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from hitproof.kernels.checksum import fingerprint  # noqa: E402
from hitproof.kernels.index_rebuild import (  # noqa: E402
    KeyConfig,
    SelfCheck,
    compressed_keys,
    hadamard,
    index_scores,
    key_digest,
    self_check,
    stable_top_k,
    token_keys,
)
from hitproof.kernels.index_rebuild.slow import (  # noqa: E402
    drawn_indexer,
    slow_choice,
    slow_hadamard,
    slow_keys,
    slow_scores,
)
from hitproof.kernels.numbers import V4_INDEX_ROW, decode, encode  # noqa: E402
from hitproof.kernels.recompress.slow import drawn_compressor, drawn_rows, slow_entries  # noqa: E402
from hitproof.spec.errors import TensorError  # noqa: E402

TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-5, torch.bfloat16: 2**-8 * 8}
"""Of numbers about 1; angles are float32 even for float64 rows, and bfloat16 rounds at three places."""
MANY = st.integers(0, 2**32 - 1)


def drawn(*shape: int, seed: int = 0, dtype: Any = torch.float32) -> Any:
    """Normal numbers."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize(
    ("inputs", "size", "rotary", "tokens", "first"),
    [(7, 4, 2, 5, 0), (48, 128, 64, 33, 0), (48, 128, 64, 3, 70000), (16, 64, 64, 63, 128), (16, 24, 8, 0, 4)],
)
def test_each_token_has_its_key(dtype: Any, inputs: int, size: int, rotary: int, tokens: int, first: int) -> None:
    """Keys equal a slow reading: projection, layer norm with its bias, and the front turned in halves."""
    indexer = drawn_indexer(inputs, size, rotary)
    rows = drawn(tokens, inputs, dtype=dtype)
    made = token_keys(rows, indexer, first)
    assert dtype == made.dtype
    torch.testing.assert_close(
        made.double(), slow_keys(rows, indexer, first), rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype]
    )


def test_keys_of_tokens_do_not_depend_on_the_cut() -> None:
    """Keys made in parts, each from its own position, are the keys made at once; batches are apart."""
    indexer = drawn_indexer(16, 32, 16)
    rows = drawn(2, 3, 21, 16)
    whole = token_keys(rows, indexer, 40)
    parts = [token_keys(rows[..., low:high, :], indexer, 40 + low) for low, high in ((0, 1), (1, 13), (13, 21))]
    torch.testing.assert_close(torch.cat(parts, dim=-2), whole)
    torch.testing.assert_close(token_keys(rows[1, 2], indexer, 40), whole[1, 2])


def test_each_entry_has_its_key() -> None:
    """DeepSeek-V4's keys are entries of the indexer's own compressor, with its own state."""
    compressor = drawn_compressor(4, 128, 64, overlap=True)
    values, gates = drawn_rows(22, compressor)
    half = compressed_keys(values[:9], gates[:9], compressor)
    rest = compressed_keys(values[9:], gates[9:], compressor, half.state)
    made = torch.cat([half.entries, rest.entries]).double()
    torch.testing.assert_close(made, slow_entries(values, gates, compressor), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("size", [1, 2, 16, 128])
def test_turning_keeps_products_and_is_its_own_inverse(size: int) -> None:
    """The matrix is the slow one, undoes itself, and leaves every query's product with a key as it was."""
    keys, queries = drawn(9, size), drawn(5, size, seed=1)
    torch.testing.assert_close(hadamard(keys).double(), slow_hadamard(keys), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(hadamard(hadamard(keys)), keys, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(hadamard(queries) @ hadamard(keys).T, queries @ keys.T, rtol=1e-5, atol=1e-5)
    if size > 1:
        assert not torch.allclose(hadamard(queries) @ keys.T, queries @ keys.T, atol=1e-2)


@settings(max_examples=30)
@given(queries=st.integers(1, 4), heads=st.integers(1, 3), keys=st.integers(1, 9), size=st.integers(1, 6), seed=MANY)
def test_scores_are_sums_over_heads(queries: int, heads: int, keys: int, size: int, seed: int) -> None:
    """Scores equal a slow reading: products below zero count for nothing, heads are weighted, the scale is one."""
    given_to = drawn(queries, heads, size, seed=seed), drawn(keys, size, seed=seed + 1)
    weights = drawn(queries, heads, seed=seed + 2)
    made = index_scores(*given_to, weights)
    assert torch.float32 == made.dtype
    torch.testing.assert_close(made.double(), slow_scores(*given_to, weights), rtol=1e-5, atol=1e-5)


@given(
    scores=st.lists(st.lists(st.sampled_from([-1.0, 0.0, 0.5, 2.0]), min_size=7, max_size=7), min_size=1, max_size=4),
    count=st.integers(0, 9),
    data=st.data(),
)
def test_choice_among_equals_is_the_earlier_one(scores: list[list[float]], count: int, data: st.DataObject) -> None:
    """With ties everywhere the choice is that of sorting by score and place, and hidden keys are never chosen."""
    visible = torch.tensor(data.draw(st.lists(st.integers(0, 8), min_size=len(scores), max_size=len(scores))))
    table = torch.tensor(scores)
    assert slow_choice(table, count, visible) == stable_top_k(table, count, visible).tolist()


def test_self_check_tells_right_keys_from_wrong_ones() -> None:
    """Equal keys agree wholly, keys stored in eight bits nearly, and keys that stand one off do not."""
    keys, queries = drawn(200, 128), drawn(40, 8, 128, seed=1)
    weights, visible = drawn(40, 8, seed=2).abs(), torch.arange(160, 200)
    assert SelfCheck(0.0, 1.0) == self_check(keys, keys, queries, weights, 16, visible)
    stored = decode(encode(keys, V4_INDEX_ROW), V4_INDEX_ROW)
    rounded = self_check(keys, stored, queries, weights, 16, visible)
    shifted = self_check(keys, keys.roll(1, 0), queries, weights, 16, visible)
    assert 0 < rounded.score_error < 0.3
    assert rounded.agreement > 0.9
    assert shifted.score_error > 1
    assert shifted.agreement < 0.3


def test_self_check_of_nothing_agrees() -> None:
    """Where no query may read a key, nothing is chosen and nothing disagrees; scores that all stand at zero differ."""
    keys, queries, weights = drawn(3, 4), drawn(2, 1, 4, seed=1), torch.zeros(2, 1)
    none = torch.zeros(2, dtype=torch.int64)
    assert SelfCheck(0.0, 1.0) == self_check(keys, keys.roll(1, 0), queries, weights, 2, none)
    assert SelfCheck(0.0, 1.0) == self_check(keys[:0], keys[:0], queries, weights, 2, none)
    few = torch.ones(2, dtype=torch.int64)
    assert SelfCheck(0.0, 1.0) == self_check(keys, keys, queries, weights, 3, few)
    blank = self_check(torch.zeros(3, 4), keys, drawn(2, 1, 4, seed=3), torch.ones(2, 1), 2, none)
    assert float("inf") == blank.score_error


CONFIG = KeyConfig(start=0, end=64, ratio=4, encoding="fp8_e4m3 with a float32 scale", rotation="hadamard")


@pytest.mark.parametrize(
    "change",
    [
        {"start": 4},
        {"end": 60},
        {"ratio": 2},
        {"encoding": "fp8_e4m3"},
        {"rotation": "none"},
        {"encoding": "fp8_e4m3 with a float32 scaleh", "rotation": "adamard"},
    ],
    ids=str,
)
def test_digest_covers_the_meaning_of_the_bytes(change: dict[str, object]) -> None:
    """The same bytes under another span, ratio, encoding or rotation have another digest."""
    rows = encode(drawn(16, 1, 128), V4_INDEX_ROW)
    taken = fingerprint(rows)
    assert key_digest(taken, CONFIG) == key_digest(taken, replace(CONFIG))
    assert 16 == len(key_digest(taken, CONFIG))
    assert key_digest(taken, CONFIG) != key_digest(taken, replace(CONFIG, **change))  # type: ignore[arg-type]


@settings(max_examples=30)
@given(row=st.integers(0, 15), byte=st.integers(0, 131), bit=st.integers(0, 7))
def test_digest_covers_every_bit(row: int, byte: int, bit: int) -> None:
    """One bit of one key makes another digest."""
    rows = encode(drawn(16, 1, 128), V4_INDEX_ROW)
    damaged = rows.clone()
    damaged[row, 0, byte] ^= 1 << bit
    assert key_digest(fingerprint(rows), CONFIG) != key_digest(fingerprint(damaged), CONFIG)


@pytest.mark.parametrize(
    "call",
    [
        lambda: token_keys(drawn(3, 5), drawn_indexer(6, 4, 2)),
        lambda: token_keys(drawn(3, 6), drawn_indexer(6, 4, 2), -1),
        lambda: token_keys(drawn(6), drawn_indexer(6, 4, 2)),
        lambda: hadamard(drawn(3, 12)),
        lambda: index_scores(drawn(2, 1, 4), drawn(3, 5), drawn(2, 1)),
        lambda: index_scores(drawn(2, 1, 4), drawn(3, 4), drawn(2, 2)),
        lambda: KeyConfig(0, 63, 4, "bf16"),
        lambda: KeyConfig(2, 64, 4, "bf16"),
        lambda: KeyConfig(64, 4, 4, "bf16"),
        lambda: KeyConfig(0, 64, 0, "bf16"),
    ],
)
def test_what_does_not_fit_is_refused(call: Callable[[], object]) -> None:
    """Other shapes and spans are an error that says what was got and what was expected."""
    with pytest.raises(TensorError) as caught:
        call()
    assert caught.value.got is not None
    assert caught.value.expected is not None
