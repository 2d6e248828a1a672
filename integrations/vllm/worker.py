"""What runs inside vLLM's workers, where the cache and the weights are; called by `collective_rpc`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import torch

from hitproof.integrations.vllm.adapters import digest_of_loaded
from hitproof.integrations.vllm.fingerprints import of_blocks, of_tensors

__all__ = ["LayerPlace", "describe_layers", "layer_caches", "loaded_adapter", "measure_blocks", "measure_weights"]


@dataclass(frozen=True, slots=True)
class LayerPlace:
    """Where the blocks of one layer lie, and how a kernel reads them.

    Args:
        address: Of block 0.
        stride: Bytes from one block to the next.
        layout: Shape, steps and element type of a block, and the attention backend that reads it.
        encoding: Element type.
    """

    address: int
    stride: int
    layout: str
    encoding: str


def layer_caches(worker: Any, name: str) -> list[torch.Tensor]:
    """The cache tensors of one attention layer; layers that keep states have several."""
    cache = worker.vllm_config.compilation_config.static_forward_context[name].kv_cache
    return list(cache) if isinstance(cache, (list, tuple)) else [cache]


def describe_layers(worker: Any, names: Sequence[str]) -> list[LayerPlace]:
    """The place of each layer's blocks in this worker."""
    places = []
    for name in names:
        layer = worker.vllm_config.compilation_config.static_forward_context[name]
        tensors = layer_caches(worker, name)
        first = tensors[0]
        backend = layer.get_attn_backend().get_name()
        shapes = [f"{list(one.shape[1:])} by {list(one.stride()[1:])}" for one in tensors]
        places.append(
            LayerPlace(
                address=first.data_ptr(),
                stride=first.stride(0) * first.element_size(),
                layout=f"{backend} {' '.join(shapes)}",
                encoding=str(first.dtype).removeprefix("torch."),
            )
        )
    return places


def measure_blocks(worker: Any, names: Sequence[str], blocks: Sequence[int]) -> list[str]:
    """A fingerprint a block, over the given layers. Waits for the device."""
    tensors = list(chain.from_iterable(layer_caches(worker, name) for name in names))
    return of_blocks(tensors, blocks)


def measure_weights(worker: Any) -> tuple[str, bool]:
    """A digest of the weights and buffers that this worker computes with, as they are now; adapters are no part.

    Returns:
        The digest, and whether it covers everything: a backend may pack weights into a form that cannot be read, and
        leave empty parameters behind, as vLLM does on CPUs.
    """
    model = worker.model_runner.get_model()
    named = list(chain(model.named_parameters(), model.named_buffers()))
    whole = all(parameter.numel() for parameter in model.parameters())
    # Where adapters are enabled, layers that can take one are wrapped.
    return of_tensors((name.replace(".base_layer.", "."), tensor) for name, tensor in named), whole


def loaded_adapter(worker: Any, adapter: int) -> str | None:
    """The digest of the adapter that this worker holds under a number; None where it holds none."""
    manager = getattr(worker.model_runner, "lora_manager", None)
    if manager is None:
        return None
    return digest_of_loaded(manager, adapter)
