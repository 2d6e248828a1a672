"""Who state belongs to: digests of weights and configuration, and the contract that rows of a live cache fulfil."""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import Any
from uuid import uuid4

import torch
import transformers

from hitproof.spec.facts import Value

__all__ = ["kernel_contract", "request_identity", "weights_digest"]

_NONE = "none"


def weights_digest(model: Any) -> str:
    """Digest of every parameter and buffer of a model, by name, shape and bytes.

    It reads all weights once; a server that knows what it has loaded states `weights` itself.
    """
    digest = blake2b(digest_size=16)
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def request_identity(model: Any) -> dict[str, Value]:
    """What requests to a model have in common unless they say otherwise.

    The salt is a new one each time, so that nobody else finds what is written under it; who shares a store between
    caches states a salt of its own. Compressor, indexer and window are versions of the model's configuration and
    weights.
    """
    config = _digest(json.dumps(model.config.to_dict(), sort_keys=True, default=str))
    weights = weights_digest(model)
    return {
        "weights": weights,
        "attention_config": config,
        "adapter": _NONE,
        "media": _NONE,
        "salt": uuid4().hex,
        "window_version": f"window/{config}",
        "separators": _NONE,
        "skipped": _NONE,
        "compressor_version": f"compressor/{config}/{weights}",
        "compression_seed": "zero",
        "index_config": f"index/{config}/{weights}/ties by place",
    }


def kernel_contract(model: Any) -> dict[str, Value]:
    """How rows lie and what their bytes mean: as the library's code of this version reads them."""
    return {
        "layout": "rows by token",
        "shard": "1 of 1",
        "version": f"transformers {transformers.__version__}",
        "encoding": str(model.dtype).removeprefix("torch."),
        "scale_version": _NONE,
        "v_layout": "rows by token",
    }


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=16).hexdigest()
