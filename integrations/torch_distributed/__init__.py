"""Ranks as processes of `torch.distributed`; torch is loaded when a transport is made."""

from hitproof.integrations.torch_distributed.transport import GlooTransport

__all__ = ["GlooTransport"]
