"""Faults of whose state it is: other weights, adapter, compressor, indexer, rotary or scale version."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from hitproof.integrations.transformers.oracle.fault import Fault
from hitproof.integrations.transformers.oracle.stage import NotHere, Stage

__all__ = ["OTHERS"]

_SCALES = {"compressed_global": 1.05, "full_kv": 2.0}
"""How far the scales of two versions are apart: as measured on DeepSeek-V4; elsewhere powers of two, one apart."""


def _noisy(share: float) -> Any:
    """Adds noise of a share of the spread, the same each time."""

    def change(tensor: Any) -> Any:
        draw = torch.Generator().manual_seed(tensor.numel())
        noise = torch.randn(tensor.shape, generator=draw, dtype=torch.float32).to(tensor.dtype)
        return tensor + share * noise * (tensor.std() if tensor.numel() > 1 else 1.0)

    return change


def _in_compressor(name: str) -> bool:
    return "compressor" in name and "inv_freq" not in name


def _in_indexer(name: str) -> bool:
    return "indexer" in name and "inv_freq" not in name


def _in_attention(name: str) -> bool:
    return name.endswith("weight") and any(
        part in name for part in ("k_proj", "kv_proj", "kv_a_proj", "in_proj", "v_proj")
    )


def _stored_under(stage: Stage, matches: Callable[[str], bool], change: Callable[[Any], Any]) -> None:
    """Store what a model of other weights computes, and read off the weights what the request says of itself."""
    with stage.otherwise(matches, change):
        stage.cache.identify()
        stage.store(stage.shared)
    stage.cache.identify()


def _other_weights(stage: Stage) -> None:
    _stored_under(stage, lambda name: name.endswith(("weight", "bias")), _noisy(0.05))


def _other_adapter(stage: Stage) -> None:
    with stage.otherwise(_in_attention, _noisy(0.2)):
        stage.store(stage.shared, {"adapter": "digest of a"})
    stage.facts = {"adapter": "digest of b"}


def _compressor_throughout(stage: Stage) -> None:
    _stored_under(stage, _in_compressor, _noisy(0.3))


def _indexer_throughout(stage: Stage) -> None:
    _stored_under(stage, _in_indexer, _noisy(1.0))


def _compressor_by_name(stage: Stage) -> None:
    with stage.otherwise(_in_compressor, _noisy(0.3)):
        stage.store(stage.shared, {"compressor_version": "1"})
    stage.facts = {"compressor_version": "2"}


def _indexer_by_name(stage: Stage) -> None:
    with stage.otherwise(_in_indexer, _noisy(1.0)):
        stage.store(stage.shared, {"index_config": "1"})
    stage.facts = {"index_config": "2"}


def _other_compressor(stage: Stage) -> None:
    _written_by_other(stage, _in_compressor, 0.3, "compressor_version", "compressed_global", "compressor_state")


def _other_indexer(stage: Stage) -> None:
    _written_by_other(stage, _in_indexer, 1.0, "index_config", "routing_index")


def _written_by_other(stage: Stage, matches: Callable[[str], bool], share: float, fact: str, *objects: str) -> None:
    """The prefill was this version's; what it left of these objects was written by another one, which says so."""
    stage.store(stage.shared)
    slots = stage.slots(stage.shared, *objects)
    with stage.otherwise(matches, _noisy(share)):
        rows = [stage.rows_after(stage.shared, slot) for slot in slots]
    for slot, payload in zip(slots, rows, strict=True):
        stage.write_as_meant(slot, payload)
        setattr(slot.facts, fact, "another version")


def _other_rotary(stage: Stage) -> None:
    with stage.otherwise(lambda name: "inv_freq" in name, lambda tensor: 0.7 * tensor):
        stage.store(stage.shared, {"attention_config": "positions stretched"})
    stage.facts = {"attention_config": "positions as they are"}


def _other_scale(stage: Stage) -> None:
    stage.store(stage.shared)
    wanted = next((name for name in _SCALES if name in stage.objects), None)
    if wanted is None:
        raise NotHere("the model keeps no rows of its whole history")
    for slot in stage.slots(stage.shared, wanted):
        rows = torch.frombuffer(stage.read(slot), dtype=torch.float32) * _SCALES[wanted]
        stage.write_as_meant(slot, rows.numpy().tobytes())
        slot.facts.encoding = f"{slot.facts.encoding}, {_SCALES[wanted]} to one"


OTHERS = (
    Fault(
        "other_weights",
        "New weights are served under the old name.",
        "scenario 037; sgl-project/sglang#24758",
        _other_weights,
    ),
    Fault(
        "other_adapter",
        "Two adapters share a name.",
        "scenario 032; vllm-project/vllm#30931",
        _other_adapter,
    ),
    Fault(
        "other_compressor",
        "Entries and running states were written by another compression function; the prefill was this one's.",
        "article 3.1 (compression function version)",
        _other_compressor,
        inputs=True,
    ),
    Fault(
        "other_indexer",
        "Index keys were written by another indexer; the prefill was this one's.",
        "article 4.3 (second level); scenario indexer-configured-anew",
        _other_indexer,
        inputs=True,
    ),
    Fault(
        "compressor_throughout",
        "The whole prefill ran with another compressor, so every later layer's state is another.",
        "article 3.1 (compression function version)",
        _compressor_throughout,
        inputs=True,
    ),
    Fault(
        "indexer_throughout",
        "The whole prefill ran with another indexer, so every later layer's state is another.",
        "article 4.3 (second level)",
        _indexer_throughout,
        inputs=True,
    ),
    Fault(
        "compressor_by_name",
        "The same, and nothing tells the two apart but the name of the compressor's version.",
        "article 3.1 (compression function version)",
        _compressor_by_name,
        inputs=True,
    ),
    Fault(
        "indexer_by_name",
        "The same, and nothing tells the two apart but the name of the indexer's configuration.",
        "article 4.3 (second level)",
        _indexer_by_name,
        inputs=True,
    ),
    Fault(
        "other_rotary",
        "Keys were turned by other speeds.",
        "article 4.2 (write version)",
        _other_rotary,
    ),
    Fault(
        "other_scale",
        "Rows were written in another scale than the kernel reads: entries 1.05 to one, keys and values two to one.",
        "measured on DeepSeek-V4 with transformers 5.24; scenario 043, vllm-project/vllm#45720",
        _other_scale,
    ),
)
