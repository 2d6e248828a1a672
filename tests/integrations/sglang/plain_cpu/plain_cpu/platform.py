"""The platform: every operator in its plain PyTorch form, and attention that reads the pools row by row."""

from __future__ import annotations

from typing import Any

from sglang.srt.platforms.cpu import CpuDeviceMixin
from sglang.srt.platforms.device_mixin import PlatformEnum
from sglang.srt.platforms.interface import SRTPlatform

from .copies import copy_plainly
from .memory import unpin

__all__ = ["PlainCpu"]


class PlainCpu(CpuDeviceMixin, SRTPlatform):
    """SGLang asks an out-of-tree platform for its operators, and falls back to their plain form."""

    _enum = PlatformEnum.OOT

    def get_default_attention_backend(self) -> str:
        return "triton"

    def init_backend(self) -> None:
        # Models with windows accept no other name of those that run without kernels.
        from sglang.srt.layers.attention.attention_registry import ATTENTION_BACKENDS

        ATTENTION_BACKENDS["triton"] = _attention
        unpin()
        copy_plainly()


def _attention(runner: Any) -> Any:
    from .attention import PlainAttention

    return PlainAttention(runner)
