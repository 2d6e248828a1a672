"""What the SGLang adapter is made of, without SGLang."""

from __future__ import annotations

from array import array
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hitproof.integrations.sglang.build import refuse_unsupported, share_of_rank
from hitproof.integrations.sglang.digests import page_digests
from hitproof.integrations.sglang.discard import may_discard
from hitproof.integrations.sglang.identity import (
    NO_ADAPTER,
    Identities,
    adapters_digest,
    attention_digest,
    weights_changed,
    weights_digest,
)
from hitproof.integrations.sglang.pools import FULL, SWA, pool_groups
from hitproof.integrations.sglang.settings import VERIFY, verify_mode
from hitproof.integrations.sglang.versions import SUPPORTED, require_supported
from hitproof.integrations.sglang.watch import watch
from hitproof.kernels.checksum import fingerprint
from hitproof.spec.errors import UsageError

TOKENS = st.lists(st.integers(0, 3), max_size=40)


class TestDigests:
    """`page_digests`."""

    @given(TOKENS, TOKENS, st.integers(1, 5))
    def test_two_pages_have_one_digest_exactly_where_all_tokens_up_to_them_agree(
        self, one: list[int], other: list[int], page: int
    ) -> None:
        """A digest stands for the whole prefix, not for its own page."""
        left = page_digests(array("q", one), page, len(one))
        right = page_digests(array("q", other), page, len(other))
        assert (len(one) // page, len(other) // page) == (len(left), len(right))
        for index, (a, b) in enumerate(zip(left, right, strict=False)):
            end = (index + 1) * page
            assert (one[:end] == other[:end]) == (a == b)

    def test_tokens_behind_the_length_do_not_count(self) -> None:
        """A look-up that claims fewer tokens has the digests of those."""
        tokens = array("q", range(32))
        assert page_digests(tokens, 4, 32)[:3] == page_digests(tokens, 4, 13)


class _Allocator:
    """As SGLang's paged allocator: hands out rows, takes back pages."""

    page_size = 4

    def alloc(self, need: int) -> torch.Tensor | None:
        return None if need > 8 else torch.arange(8, 8 + need)

    def alloc_extend(self, rows: list[int], *, more: int = 0) -> torch.Tensor:
        return torch.tensor([*rows, more])

    def alloc_decode(self) -> torch.Tensor:
        return torch.empty(0, dtype=torch.int64)

    def free(self, rows: torch.Tensor) -> None:
        self._release_page_ids(torch.unique(rows // self.page_size))

    def _release_page_ids(self, *pages: torch.Tensor) -> None:
        self.taken = pages


class TestWatch:
    """`watch`."""

    def test_whoever_watches_is_told_of_pages_that_are_handed_out_or_taken_back(self) -> None:
        """The allocator answers as before."""
        allocator, told = _Allocator(), []
        watch(allocator, lambda pages: told.append(sorted(set(pages.tolist()))))
        assert [8, 9, 10, 11] == allocator.alloc(4).tolist()  # type: ignore[union-attr]
        assert allocator.alloc(9) is None
        assert [17, 18, 21] == allocator.alloc_extend([17, 18], more=21).tolist()
        assert 0 == allocator.alloc_decode().numel()
        allocator.free(torch.tensor([4, 5, 12]))
        assert [[2], [4, 5], [1, 3]] == told
        assert [1, 3] == allocator.taken[0].tolist()


def _pool(layers: int, heads: int, seed: int) -> Any:
    generator = torch.Generator().manual_seed(seed)
    halves = [[torch.randn(6 * 4, heads, 8, generator=generator) for _ in range(layers)] for _ in range(2)]
    shape = {"page_size": 4, "head_num": heads, "head_dim": 8, "v_head_dim": 8, "dtype": torch.float32}
    kind = type("MHATokenToKVPool", (SimpleNamespace,), {})
    return kind(k_buffer=halves[0], v_buffer=halves[1], kv_cache_layout="nhd", k_scale_buffer=None, **shape)


class TestPools:
    """`pool_groups`."""

    def test_a_page_is_its_rows_of_every_layer_of_the_group(self) -> None:
        """Keys and values of a layer are one block, and the fingerprint covers them layer by layer."""
        full, window = _pool(2, 2, seed=0), _pool(3, 1, seed=1)
        both = SimpleNamespace(full_kv_pool=full, swa_kv_pool=window)
        groups = pool_groups(both, {FULL: (1, 4), SWA: (0, 2, 3)})
        assert {FULL: (1, 4), SWA: (0, 2, 3)} == {name: group.layers for name, group in groups.items()}
        assert 4 * (2 * 8 + 2 * 8) * 4 == groups[FULL].blocks().stride
        halves = [
            half[8:12].reshape(1, 1, -1) for k, v in zip(full.k_buffer, full.v_buffer, strict=True) for half in (k, v)
        ]
        expected = fingerprint(torch.cat(halves, dim=2).view(torch.uint8))
        assert [expected] == groups[FULL].measure([2])
        before = groups[SWA].measure([0, 1])
        window.v_buffer[2][5] += 1
        after = groups[SWA].measure([0, 1])
        assert (True, False) == (before[0] == after[0], before[1] == after[1])

    @pytest.mark.parametrize("change", [{"kv_cache_layout": "hnd"}, {"k_scale_buffer": []}])
    def test_a_pool_that_keeps_pages_in_another_way_is_refused(self, change: dict[str, Any]) -> None:
        """Nothing is served as if it were gated."""
        pool = _pool(1, 1, seed=0)
        vars(pool).update(change)
        with pytest.raises(UsageError, match="not covered"):
            pool_groups(pool, {FULL: (0,), SWA: ()})


def _request(**named: Any) -> Any:
    return SimpleNamespace(
        **{"multimodal_inputs": None, "lora_id": None, "extra_key": None, "cache_salt": None, **named}
    )


class TestIdentity:
    """`Identities` and the digests."""

    def test_each_thing_that_tells_requests_apart_changes_one_fact(self) -> None:
        """Media are told apart by their tokens; without a request all that only it can tell is unknown."""
        who = Identities("w", "a")
        plain = who.of(_request())
        assert plain == who.usual() and plain["adapter"] == NO_ADAPTER
        assert {"adapter"} == _differing(plain, who.of(_request(lora_id="1f")))
        assert {"salt"} == _differing(plain, who.of(_request(cache_salt="t")))
        assert {"salt"} == _differing(plain, who.of(_request(extra_key="t")))
        pictured = _request(multimodal_inputs=SimpleNamespace(mm_items=[SimpleNamespace(hash=7)]))
        assert who.of(pictured) == plain
        nameless = _request(multimodal_inputs=SimpleNamespace(mm_items=[SimpleNamespace(hash=None)]))
        assert who.of(nameless)["media"] is None
        assert {None} == {who.of(None)["adapter"], who.of(None)["salt"]}

    def test_weights_that_were_replaced_are_of_another_identity(self) -> None:
        """Each replacement is another one."""
        who = Identities("w", "a")
        seen = [who.usual()["weights"]]
        for _ in range(2):
            weights_changed()
            seen.append(who.usual()["weights"])
        assert 3 == len(set(seen))

    def test_the_digest_of_weights_follows_the_ends_of_files_and_their_sizes(self, tmp_path: Path) -> None:
        """A folder's name does not count; a hub's name and revision do."""
        one, other = tmp_path / "one", tmp_path / "other"
        for folder in (one, other):
            folder.mkdir()
            (folder / "model.safetensors").write_bytes(b"x" * 200_000)
        assert weights_digest(str(one), None) == weights_digest(str(other), None)
        (other / "model.safetensors").write_bytes(b"x" * 199_999 + b"y")
        assert weights_digest(str(one), None) != weights_digest(str(other), None)
        adapters = [[SimpleNamespace(lora_name="a", lora_path=str(folder))] for folder in (one, other)]
        assert NO_ADAPTER == adapters_digest([]) and adapters_digest(adapters[0]) != adapters_digest(adapters[1])
        assert weights_digest("org/model", "a") != weights_digest("org/model", "b")
        assert attention_digest({"rope": 1}) != attention_digest({"rope": 2})


def _differing(one: dict[str, Any], other: dict[str, Any]) -> set[str]:
    return {name for name in {*one, *other} if one.get(name) != other.get(name)}


class TestSettings:
    """`verify_mode` and `require_supported`."""

    def test_pages_are_measured_at_every_use_unless_something_else_is_set(self) -> None:
        """A value that means nothing is an error."""
        assert ("use", "never") == (verify_mode({}), verify_mode({VERIFY: "Never"}))
        with pytest.raises(UsageError, match=VERIFY):
            verify_mode({VERIFY: "sometimes"})

    @pytest.mark.parametrize("found", [None, "0.5.22", "0.5.230", "1.0.0"])
    def test_another_version_is_refused_with_a_way_out(self, found: str | None) -> None:
        """The error names both versions and says what to leave out."""
        require_supported(f"{SUPPORTED[0]}+cpu")
        with pytest.raises(UsageError, match="not supported") as caught:
            require_supported(found)
        assert "--radix-cache-backend" in str(caught.value.hint)


def _context(**named: Any) -> Any:
    params = {"is_eagle": False, "pp_size": 1, "attn_cp_size": 1, "swa_gates_prefix_match": True}
    known = {"enable_hierarchical_cache": False, "is_hybrid_ssm": False, "is_hybrid_swa": True}
    changed = {name: value for name, value in named.items() if name in params}
    return SimpleNamespace(**{**known, **named}, params=SimpleNamespace(**{**params, **changed}))


class TestBuild:
    """What `build` asks of SGLang's context."""

    @pytest.mark.parametrize(
        "named",
        [
            {"enable_hierarchical_cache": True},
            {"is_hybrid_ssm": True},
            {"is_eagle": True},
            {"pp_size": 2},
            {"attn_cp_size": 2},
            {"swa_gates_prefix_match": False},
        ],
    )
    def test_what_is_not_covered_ends_the_start(self, named: dict[str, Any]) -> None:
        """Nothing is served as if it were gated."""
        refuse_unsupported(_context())
        with pytest.raises(UsageError):
            refuse_unsupported(_context(**named))

    def test_a_rank_has_its_share_of_the_heads_and_never_less_than_one(self) -> None:
        """In the text part of a configuration as well."""
        heads = {"num_key_value_heads": 8, "num_global_key_value_heads": 2, "head_dim": 64}
        shared = share_of_rank({**heads, "text_config": heads, "model_type": "x"}, 4)
        expected = {"num_key_value_heads": 2, "num_global_key_value_heads": 1, "head_dim": 64}
        assert {**expected, "text_config": expected, "model_type": "x"} == shared
        assert heads == share_of_rank(heads, 1)


class TestDiscarding:
    """`may_discard`."""

    def test_pages_are_freed_only_where_it_is_sure_whose_they_are(self) -> None:
        """An unknown fact of the request speaks against no page."""
        assert may_discard(["full_full/fingerprint_matches", "window_swa/same_adapter"])
        assert not may_discard(["full_full/fingerprint_matches", "window_swa/generation_current"])
        assert not may_discard(["door/media"])
