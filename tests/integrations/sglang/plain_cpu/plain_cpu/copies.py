"""HiCache's copies between host and device in plain PyTorch, where both are one memory and nothing runs ahead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

__all__ = ["copy_plainly"]


class _Stream:
    """What was asked of it is done already."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: None


class _Event(_Stream):
    def query(self) -> bool:
        return True

    def elapsed_time(self, other: Any) -> float:
        return 0.0


class _On:
    """May be entered again and again, as PyTorch's own."""

    def __init__(self, stream: Any) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *raised: object) -> None:
        pass


def _transfer(
    src_layers: Sequence[torch.Tensor],
    dst_layers: Sequence[torch.Tensor],
    src_indices: torch.Tensor,
    dst_indices: torch.Tensor,
    page_size: int,
) -> None:
    for source, target in zip(src_layers, dst_layers, strict=True):
        target[dst_indices.long()] = source[src_indices.long()]


def copy_plainly() -> None:
    """From now on direct copies of HiCache's layout `layer_first` work in this process. Changes PyTorch and SGLang."""
    cpu: Any = torch.cpu
    cpu.Stream, cpu.Event, cpu.stream, cpu.current_stream = _Stream, _Event, _On, _Stream
    from sglang.srt.mem_cache.pool_host import common, mha

    common._cuda_host_register = lambda *args, **kwargs: None
    mha.transfer_kv_direct = _transfer
