"""A model run again over the last tokens of a prefix, for windows and compressor states that are not held.

The pass begins a receptive field before the length. Windows and compressor states are blank there; what layers make
of that is wrong at first and right at the end, since a row of a windowed layer depends on no more than a window of the
layer below. Everything else is read as it is held: what the pass computes in its place is thrown away.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hitproof.engine.compile import CompiledGroup
from hitproof.integrations.transformers.rows import Part, assembled
from hitproof.integrations.transformers.running import run
from hitproof.integrations.transformers.state import StateMap
from hitproof.kernels.jobs import RepairFault
from hitproof.spec.memory import Memory
from hitproof.spec.rows import rows_of

__all__ = ["HISTORY", "reach", "warmed"]

HISTORY = ("full_kv", "compressed_global", "routing_index")
"""Objects that such a pass reads as they are held."""


def reach(constants: Mapping[str, int | bool], length: int, *, exact: bool) -> int:
    """How many tokens before a length a pass begins that restores a group there.

    Args:
        constants: The group's.
        length: Of which nothing is felt that lies before the chunk in which it ends, where layers have chunks.
        exact: Whether nothing that is blank at the beginning may be felt at the end; else one window is run, or the
            rows of the unfinished entry, and the result depends on where the pass began.
    """
    own = int(constants.get("ratio", 0)) + int(constants.get("overlap", 0))
    if exact:
        far = int(constants["receptive_field"]) + own
    else:
        far = own or int(constants["window"])
    return min(far, length % int(constants.get("chunk", length + 1)))


def warmed(
    model: Any,
    state: StateMap,
    memory: Memory,
    groups: Iterable[CompiledGroup],
    parts: Mapping[str, Iterable[Part]],
    tokens: Iterable[int],
    span: tuple[int, int],
) -> Any:
    """A live cache after the pass: its windows and compressor states are those of the last token.

    Args:
        model: The model.
        state: Which tensors are which group's rows.
        memory: The bytes.
        groups: All groups of the model.
        parts: Where the rows of each group lie.
        tokens: Tokens of the prompt.
        span: The tokens of the pass: those before the first one are not computed.

    Raises:
        RepairFault: The model has a state that no such pass restores.
    """
    start, length = span
    groups = tuple(groups)
    cache, held = (_cache(state, memory, groups, parts, at) for at in (start, length))
    for layer, exact in zip(cache.layers, held.layers, strict=True):
        _reads_held(layer, exact)
    run(model, list(tokens)[start:length], cache)
    return cache


def _cache(
    state: StateMap,
    memory: Memory,
    groups: Iterable[CompiledGroup],
    parts: Mapping[str, Iterable[Part]],
    length: int,
) -> Any:
    """A cache at a length with the history that is held, and blank windows and compressor states."""
    cache = state.fresh()
    for group in groups:
        bound = group.bound
        if bound.object == "recurrent_state":
            raise RepairFault("failed", "a recurrent state depends on every token before it")
        first, to = group.span(length)
        if group.id not in state.groups or first >= to:
            continue
        if bound.object in HISTORY:
            payload = assembled(memory, bound, parts[group.id], first, to)
        else:
            payload = bytes(memory.shape(group.id).payload_bytes(rows_of(bound, first, to)))
        state.install(cache, group.id, first, to, payload)
    return state.finish(cache, length)


def _reads_held(layer: Any, held: Any) -> None:
    """Let a layer's cache take rows that are held instead of those that the pass computes in their place."""
    if hasattr(layer, "update_compressor_states"):
        take_entries = layer.update_compressor_states

        def entries(name: str, made: Any) -> Any:
            first = layer.entry_count[name]
            return take_entries(name, held.compressed_kv[name][:, first : first + made.shape[1]])

        layer.update_compressor_states = entries
        return
    if layer.is_sliding:
        return
    take_rows = layer.update

    def rows(keys: Any, values: Any, *given: Any, **named: Any) -> Any:
        first = layer.get_seq_length()
        to = first + keys.shape[-2]
        return take_rows(held.keys[:, :, first:to], held.values[:, :, first:to], *given, **named)

    layer.update = rows
    if hasattr(layer, "update_indexer"):
        take_keys = layer.update_indexer

        def index_keys(made: Any) -> Any:
            first = 0 if layer.indexer_keys is None else layer.indexer_keys.shape[1]
            return take_keys(held.indexer_keys[:, first : first + made.shape[1]])

        layer.update_indexer = index_keys
