"""SGLang's file storage with sealed pages: what comes back is judged by the rulebook before it reaches the host."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from sglang.srt.mem_cache.hicache_storage import HiCacheFile, HiCacheStorageConfig, PoolName

from hitproof.engine.store.answers import Unusable
from hitproof.integrations.gate import PageRefused, PageSeal
from hitproof.integrations.gate.page_record import record_size
from hitproof.integrations.sglang.identity import adapters_digest, weights_replaced
from hitproof.integrations.sglang.pools import FULL, SWA
from hitproof.integrations.sglang.seals import page_seals
from hitproof.integrations.sglang.versions import installed_version, require_supported

__all__ = ["RECORD", "SealedFile"]

RECORD = 4096
"""Bytes before a page in its file: its record, then zeros."""

_log = logging.getLogger(__name__)
_GROUPS = {PoolName.KV: FULL, PoolName.SWA: SWA}


class SealedFile(HiCacheFile):
    """A page is kept with a record of its identity, layout, key and bytes, and opened only if all of it agrees.

    A refused page is taken away, so that the page which is computed instead can be kept.

    Args:
        storage_config: SGLang's.
        kwargs: What SGLang hands to backends that are named in its configuration; not used.
        seals: By the name of the pool; made from the server's arguments when SGLang registers its pools where left out.

    Raises:
        UsageError: This version of SGLang is not supported.
    """

    def __init__(
        self,
        storage_config: HiCacheStorageConfig,
        kwargs: Mapping[str, Any] | None = None,
        seals: Mapping[str, PageSeal] | None = None,
    ) -> None:
        require_supported(installed_version())
        self.seals: dict[str, PageSeal] = dict(seals or {})
        self.opened: Counter[str] = Counter()
        self._config = storage_config
        # Sealed pages have names of their own, so that a server without seals never reads one.
        super().__init__(replace(storage_config, model_name=f"{storage_config.model_name or ''}-sealed"))

    def on_host_pools_registered(self) -> None:
        """SGLang has told of all its pools."""
        super().on_host_pools_registered()
        if not self.seals:
            pools = {str(PoolName.KV): self.mem_pool_host, **getattr(self, "registered_pools", {})}
            self.seals = _seals_of_server({str(name): pool for name, pool in pools.items()}, self._config)

    def set(
        self,
        key: str,
        value: torch.Tensor | None = None,
        target_location: Any | None = None,
        target_sizes: Any | None = None,
    ) -> bool:
        seal = self._seal(key)
        if seal is None or value is None:
            return False
        payload = _bytes(value)
        record = seal.seal(memoryview(payload.numpy()), start=0, end=self._tokens(key), digest=key)
        if len(record) > RECORD:
            _log.error("the record of page %s has %d bytes and is not kept", key, len(record))
            return False
        blob = torch.zeros(RECORD + len(payload), dtype=torch.uint8)
        blob[: len(record)] = torch.frombuffer(bytearray(record), dtype=torch.uint8)
        blob[RECORD:] = payload
        kept: bool = super().set(key, blob)
        return kept

    def get(self, key: str, target_location: torch.Tensor, target_sizes: Any | None = None) -> torch.Tensor | None:
        seal = self._seal(key)
        if seal is None:
            return None
        payload = _bytes(target_location)
        blob = torch.zeros(RECORD + len(payload), dtype=torch.uint8)
        try:
            if super().get(key, blob) is None:
                return None
            view = memoryview(blob.numpy())
            answer = seal.open(view[: record_size(view)], view[RECORD:], start=0, end=self._tokens(key), digest=key)
        except (OSError, Unusable) as error:
            answer = PageRefused(("page/torn",), detail=str(error))
        if isinstance(answer, PageRefused):
            self.opened.update(answer.failed)
            _log.warning("page %s is refused: %s %s", key, ", ".join(answer.failed), answer.detail)
            self._take_away(key)
            return None
        self.opened["opened"] += 1
        payload.copy_(blob[RECORD:])
        return target_location

    def _seal(self, key: str) -> PageSeal | None:
        if weights_replaced():
            # Pages of the old weights may still be on their way here, and none says of which it is.
            self.opened["page/weights_replaced"] += 1
            return None
        name = self._pool(key)
        seal = self.seals.get(name)
        if seal is None:
            self.opened["page/other_group"] += 1
            _log.warning("pages of pool %s are not covered by seals and are neither kept nor read", name)
        return seal

    def _pool(self, key: str) -> str:
        return key.rpartition(".")[2] if "." in key else str(PoolName.KV)

    def _tokens(self, key: str) -> int:
        """Tokens of a page; its key stands for all tokens before it too, so where it begins is not asked."""
        pools: Mapping[Any, Any] = getattr(self, "registered_pools", {})
        pool = pools.get(self._pool(key), self.mem_pool_host)
        return int(pool.page_size)

    def _take_away(self, key: str) -> None:
        name = self._get_suffixed_key(key)
        try:
            os.remove(os.path.join(self.file_path, f"{name}.bin"))
        except FileNotFoundError:
            return
        if self.metadata_cache is not None:
            self.metadata_cache.remove(name)


def _bytes(page: torch.Tensor) -> torch.Tensor:
    return page.detach().contiguous().view(-1).view(torch.uint8)


def _seals_of_server(pools: Mapping[str, Any], config: HiCacheStorageConfig) -> dict[str, PageSeal]:
    from sglang.srt.configs.model_config import ModelConfig
    from sglang.srt.runtime_context import get_server_args

    from hitproof.integrations.sglang.build import identities, layer_ids, rank_profile

    server_args = get_server_args()
    model = ModelConfig.from_server_args(server_args)
    layers = layer_ids(model)
    covered = {name: pool for name, pool in pools.items() if name in {str(one) for one in _GROUPS}}
    profile = rank_profile(model, {str(next(iter(covered.values())).dtype).removeprefix("torch.")}, config.tp_size)
    groups = {str(pool): layers[group] for pool, group in _GROUPS.items()}
    # Which adapter, media and salt a page is of is in the key that SGLang derives from all tokens before it; what an
    # adapter of that name holds is not.
    who = {**identities(server_args, model).usual(), "adapter": adapters_digest(server_args.lora_paths)}
    return page_seals(profile, covered, groups, who, f"{config.tp_rank} of {config.tp_size}")
