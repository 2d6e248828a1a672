"""SGLang's real file storage with sealed pages, between two host pools, with faults in its files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

pytestmark = pytest.mark.usefixtures("with_sglang")

KEYS = ["a" * 64, "b" * 64, "c" * 64]
IDENTITY = {"weights": "w", "attention_config": "a", "adapter": "none", "media": "none", "salt": "none"}


def host_pool(layout: str, seed: int | None) -> Any:
    """A host pool of two full layers, with three pages of numbers or with zeros."""
    from sglang.srt.mem_cache.memory_pool import MHATokenToKVPool
    from sglang.srt.mem_cache.pool_host.mha import MHATokenToKVPoolHost

    from .small_cache import PAGE

    device = MHATokenToKVPool(
        size=16 * PAGE,
        page_size=PAGE,
        dtype=torch.float32,
        head_num=2,
        head_dim=8,
        layer_num=2,
        device="cpu",
        enable_memory_saver=False,
    )
    host = MHATokenToKVPoolHost(
        device._mha_buffer_info(),
        1.0,
        0,
        PAGE,
        layout,
        pin_memory=False,
        device_capacity_tokens=device.size,
        start_layer=0,
        end_layer=2,
    )
    if seed is None:
        host.kv_buffer.zero_()
    else:
        host.kv_buffer.normal_(generator=torch.Generator().manual_seed(seed))
    return host


def storage(folder: Path, pool: Any, *, sealed: bool, **identity: str) -> Any:
    """SGLang's storage over a folder, for a pool."""
    from sglang.srt.mem_cache.hicache_storage import HiCacheFile, HiCacheStorageConfig

    from hitproof.integrations.sglang.seals import page_seals
    from hitproof.integrations.sglang.storage import SealedFile
    from hitproof.rules.from_config import profile_from_config

    from .small_cache import CONFIG

    config = HiCacheStorageConfig(
        tp_rank=0,
        tp_size=1,
        pp_rank=0,
        pp_size=1,
        attn_cp_rank=0,
        attn_cp_size=1,
        is_mla_model=False,
        enable_storage_metrics=False,
        is_page_first_layout=pool.layout == "page_first",
        model_name="tiny",
        extra_config={"file_storage_path": str(folder)},
    )
    if sealed:
        full = {**CONFIG, "num_hidden_layers": 2, "layer_types": ["full_attention"] * 2}
        profile = profile_from_config(full, file="config.json", kv_dtype="float32")
        seals = page_seals(profile, {"kv": pool}, {"kv": (0, 1)}, {**IDENTITY, **identity}, "0 of 1")
        made = SealedFile(config, {}, seals)
    else:
        made = HiCacheFile(config)
    made.register_mem_pool_host(pool)
    made.register_mem_host_pool_v2(pool, "kv")
    return made


def put(store: Any, pool: Any) -> list[bool]:
    """Write three pages as SGLang does."""
    return list(store.batch_set_v2([_transfer(pool)])["kv"])


def fetch(store: Any, pool: Any) -> list[bool]:
    """Read them as SGLang does."""
    return list(store.batch_get_v2([_transfer(pool)])["kv"])


def _transfer(pool: Any) -> Any:
    from sglang.srt.mem_cache.hicache_storage import PoolTransfer

    return PoolTransfer(name="kv", host_indices=torch.arange(3 * pool.page_size), keys=KEYS)


def page(pool: Any, index: int) -> torch.Tensor:
    """Numbers of a page by layer, half, token and head, however the pool keeps them."""
    rows = slice(index * pool.page_size, (index + 1) * pool.page_size)
    if pool.layout == "layer_first":
        return pool.kv_buffer[:, :, rows].clone()
    return pool.kv_buffer[:, rows].transpose(1, 2).clone()


def files(folder: Path) -> list[Path]:
    """The pages' files in the order of their keys."""
    return sorted(folder.glob("*.bin"))


def flip(path: Path) -> None:
    """One bit of the page."""
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)


def cut(path: Path) -> None:
    """The writer died in the middle."""
    path.write_bytes(path.read_bytes()[:-100])


def swap(path: Path) -> None:
    """Another prompt's page lies under this name."""
    path.write_bytes(files(path.parent)[0].read_bytes())


def blank(path: Path) -> None:
    """The file has its size and nothing else."""
    path.write_bytes(bytes(len(path.read_bytes())))


FAULTS = {"flipped": flip, "cut": cut, "stale": swap, "blank": blank}


class TestSealedPages:
    """`SealedFile` beside `HiCacheFile`."""

    @pytest.mark.parametrize("layout", ["layer_first", "page_first"])
    def test_pages_come_back_as_they_were_written(self, layout: str, tmp_path: Path) -> None:
        """And are found by SGLang's own questions."""
        from sglang.srt.mem_cache.hicache_storage import PoolTransfer

        out, back = host_pool(layout, seed=1), host_pool(layout, seed=None)
        assert [True] * 3 == put(storage(tmp_path, out, sealed=True), out)
        reader = storage(tmp_path, back, sealed=True)
        assert 3 == reader.batch_exists(KEYS) == reader.batch_exists_v2(KEYS, [PoolTransfer(name="kv")]).kv_hit_pages
        assert [True] * 3 == fetch(reader, back)
        assert all(torch.equal(page(out, index), page(back, index)) for index in range(3))
        values = reader.batch_get(KEYS, [back.get_dummy_flat_data_page() for _ in KEYS])
        assert torch.equal(out.get_data_page(0), values[0])

    @pytest.mark.parametrize("fault", FAULTS)
    def test_a_fault_in_a_file_reaches_the_host_without_seals_and_is_refused_with_them(
        self, fault: str, tmp_path: Path
    ) -> None:
        """The page is taken away, so that the one that is computed instead is kept."""
        pools: dict[bool, Any] = {}
        for sealed in (False, True):
            folder = tmp_path / str(sealed)
            out, back = host_pool("layer_first", seed=1), host_pool("layer_first", seed=None)
            pools[sealed] = back
            put(storage(folder, out, sealed=sealed), out)
            FAULTS[fault](files(folder)[1])
            reader = storage(folder, back, sealed=sealed)
            if sealed:
                assert [True, False, True] == fetch(reader, back)
                assert 0 == page(back, 1).abs().sum()
                assert [True] * 3 == put(reader, out)
                assert [True] * 3 == fetch(storage(folder, back, sealed=True), back)
            elif fault == "cut":
                with pytest.raises(OSError, match="Short read"):
                    fetch(reader, back)
            else:
                assert [True] * 3 == fetch(reader, back)
                assert not torch.equal(page(out, 1), page(back, 1))

    def test_a_page_of_another_layout_is_misread_without_seals_and_refused_with_them(self, tmp_path: Path) -> None:
        """SGLang's file storage writes bytes of any layout under one name."""
        out = host_pool("layer_first", seed=1)
        for sealed in (False, True):
            back = host_pool("page_first", seed=None)
            put(storage(tmp_path / str(sealed), out, sealed=sealed), out)
            reader = storage(tmp_path / str(sealed), back, sealed=sealed)
            assert [not sealed] * 3 == fetch(reader, back)
            if sealed:
                assert {"full_kv/layout_matches": 3, "full_kv/v_layout_matches": 3}.items() <= reader.opened.items()
            else:
                assert not torch.equal(page(out, 0), page(back, 0))

    @pytest.mark.parametrize("fact", ["weights", "adapter", "salt"])
    def test_a_page_of_another_identity_is_refused(self, fact: str, tmp_path: Path) -> None:
        """A folder that two servers share tells their pages apart."""
        out, back = host_pool("layer_first", seed=1), host_pool("layer_first", seed=None)
        put(storage(tmp_path, out, sealed=True, **{fact: "another"}), out)
        reader = storage(tmp_path, back, sealed=True)
        assert [False] * 3 == fetch(reader, back)
        assert {f"full_kv/same_{fact}": 3} == dict(reader.opened)

    def test_nothing_is_kept_or_read_once_weights_were_replaced(self, tmp_path: Path) -> None:
        """Pages that old weights computed may still be on their way."""
        from hitproof.integrations.sglang.identity import weights_changed

        out, back = host_pool("layer_first", seed=1), host_pool("layer_first", seed=None)
        put(storage(tmp_path, out, sealed=True), out)
        weights_changed()
        assert [False] * 3 == put(storage(tmp_path / "new", out, sealed=True), out)
        assert [False] * 3 == fetch(storage(tmp_path, back, sealed=True), back)

    def test_pages_without_seals_are_never_read(self, tmp_path: Path) -> None:
        """A folder that was filled before has other names."""
        out, back = host_pool("layer_first", seed=1), host_pool("layer_first", seed=None)
        put(storage(tmp_path, out, sealed=False), out)
        assert [False] * 3 == fetch(storage(tmp_path, back, sealed=True), back)
