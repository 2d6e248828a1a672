"""Attention over SGLang's pools in plain PyTorch, for full and window layers."""

from __future__ import annotations

from typing import Any

import torch
from sglang.srt.layers.attention.torch_native_backend import TorchNativeAttnBackend
from sglang.srt.mem_cache.memory_pool import KVWriteLoc

__all__ = ["PlainAttention"]


class PlainAttention(TorchNativeAttnBackend):
    """As SGLang's own, but window layers read through the table that leads to the window pool."""

    def forward_extend(self, q: Any, k: Any, v: Any, layer: Any, forward_batch: Any, save_kv_cache: bool = True) -> Any:
        counts = [int(count) for count in forward_batch.extend_seq_lens]
        return self._attend(q, k, v, layer, forward_batch, save_kv_cache, counts)

    def forward_decode(self, q: Any, k: Any, v: Any, layer: Any, forward_batch: Any, save_kv_cache: bool = True) -> Any:
        return self._attend(q, k, v, layer, forward_batch, save_kv_cache, [1] * len(forward_batch.seq_lens))

    def _attend(self, q: Any, k: Any, v: Any, layer: Any, batch: Any, save: bool, counts: list[int]) -> torch.Tensor:
        pool = self.token_to_kv_pool
        if save and k is not None:
            pool.set_kv_buffer(layer, KVWriteLoc(batch.out_cache_loc, self.swa_out_cache_loc), k, v)
        query = q.reshape(-1, layer.tp_q_head_num, layer.qk_head_dim)
        out = query.new_empty(len(query), layer.tp_q_head_num, layer.v_head_dim)
        keys, values = pool.get_key_buffer(layer.layer_id), pool.get_value_buffer(layer.layer_id)
        first = 0
        for index, count in enumerate(counts):
            length = int(batch.seq_lens[index])
            rows = self._rows(layer, batch.req_pool_indices[index], length)
            key, value = (_spread(one[rows].to(query.dtype), layer.tp_q_head_num) for one in (keys, values))
            scores = torch.einsum("qhd,khd->hqk", query[first : first + count], key) * layer.scaling
            scores = scores.masked_fill(~_seen(length, count, layer.sliding_window_size), float("-inf"))
            out[first : first + count] = torch.einsum("hqk,khd->qhd", scores.softmax(-1), value)
            first += count
        return out.reshape(len(query), -1)

    def _rows(self, layer: Any, request: torch.Tensor, length: int) -> torch.Tensor:
        rows = self.req_to_token_pool.req_to_token[request, :length].long()
        pool = self.token_to_kv_pool
        if self.use_sliding_window_kv_pool and pool.layers_mapping[layer.layer_id][1]:
            rows = pool.translate_loc_from_full_to_swa(rows).long()
        return rows


def _spread(rows: torch.Tensor, heads: int) -> torch.Tensor:
    return rows.repeat_interleave(heads // rows.shape[1], dim=1)


def _seen(length: int, count: int, window: int | None) -> torch.Tensor:
    """Which tokens each of the last `count` ones attends to."""
    queries = torch.arange(length - count, length)[:, None]
    keys = torch.arange(length)[None]
    seen = keys <= queries
    if window is not None and window > -1:
        seen &= keys >= queries - window
    return seen
