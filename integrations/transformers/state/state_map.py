"""The one place that knows which tensors of which layer's cache are which group's rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import torch

from hitproof.integrations.transformers.state.entries import CompressorStates, Entries
from hitproof.integrations.transformers.state.layout import Piece, RowLayout
from hitproof.integrations.transformers.state.positions import Positions, positions_of
from hitproof.integrations.transformers.state.probe import new_cache, probed
from hitproof.integrations.transformers.state.recurrent import RecurrentStates
from hitproof.integrations.transformers.state.token_rows import TokenKeys, TokenRows, WindowRows
from hitproof.spec.errors import ProfileError, TensorError, UsageError
from hitproof.spec.memory import Payload
from hitproof.spec.profile import Group, Profile

__all__ = ["StateMap"]


class _Codec(Protocol):
    """One group's rows: read from a cache, and put into an empty one."""

    layout: RowLayout

    def held(self, cache: Any) -> tuple[int, int]: ...

    def read(self, cache: Any, start: int, end: int, row: int) -> Any: ...

    def build(self, cache: Any, pieces: Sequence[Piece], length: int, check: bool) -> None: ...


class StateMap:
    """Reads rows of groups from live caches of one model, and makes caches of nothing but such rows.

    Args:
        model: A model of the library; it runs once, to see what its cache holds.
        profile: Its groups, as `profile_of` derives them.

    Raises:
        ProfileError: The profile is not that of the model's tensors, or has what no cache of the library holds.
    """

    def __init__(self, model: Any, profile: Profile) -> None:
        self.model, self.profile = model, profile
        probe = probed(model)
        self._positions = positions_of(model)
        self._codecs = {
            group.id: codec
            for group in profile.groups
            if (codec := _codec(model, profile, group, probe, self._positions)) is not None
        }
        self._staged: WeakKeyDictionary[Any, dict[str, list[Piece]]] = WeakKeyDictionary()

    @property
    def groups(self) -> tuple[str, ...]:
        """Groups whose rows a live cache has; records, and inputs that nobody keeps, are none of them."""
        return tuple(self._codecs)

    def fresh(self) -> Any:
        """An empty cache of the model's own kind."""
        return new_cache(self.model)

    def length(self, cache: Any) -> int:
        """Tokens that the cache has seen."""
        return int(cache.get_seq_length())

    def held(self, cache: Any, group: str) -> tuple[int, int]:
        """Tokens [start, end) whose rows the live cache has; of a state, those that it is made of, up to its length.

        What the library's bookkeeping says is not believed: after a `crop` a window may have fewer rows, and a state is
        still of the length at which it was computed.
        """
        return self._codec(group).held(cache)

    def rows(self, cache: Any, group: str, start: int, end: int, row: int = 0) -> bytes:
        """Bytes of a segment as they lie in the live cache.

        Args:
            cache: A cache of the library, after any number of forward passes.
            group: One of `groups`.
            start: First token.
            end: One past the last; of a state, its length.
            row: Of the batch.

        Returns:
            [layers][rows][row_bytes], as the cache manager has it.

        Raises:
            NotHeldError: The cache does not hold them: the window slid on, or the state is of another length.
        """
        return bytes(self._codec(group).read(cache, start, end, row).numpy().tobytes())

    def install(self, cache: Any, group: str, start: int, end: int, payload: Payload) -> None:
        """Hand over the rows of the tokens [start, end) for a cache that is being made; `finish` puts them in.

        A group may be handed over in several segments, and with more rows than the length will read.

        Raises:
            TensorError: The payload is not of that many rows.
        """
        layout = self._codec(group).layout
        shape = (len(layout.layers), layout.rows(start, end), layout.row_bytes)
        rows = torch.frombuffer(bytearray(payload), dtype=torch.uint8) if len(payload) else torch.empty(0).byte()
        if rows.numel() != shape[0] * shape[1] * shape[2]:
            raise TensorError(
                "the payload is not of these rows", rule=group, got=f"{rows.numel()} bytes", expected=f"{shape}"
            )
        self._staged.setdefault(cache, {}).setdefault(group, []).append(Piece(start, end, rows.view(shape)))

    def finish(self, cache: Any, length: int, *, check: bool = True) -> Any:
        """Make the cache stand at a length, with what was handed over; answers the cache.

        A forward pass of the tokens from `length` on then gives what an uninterrupted run gives.

        Args:
            cache: One of `fresh`, with rows installed.
            length: Tokens that the next pass stands behind.
            check: Whether every row that the length reads must be there. Else rows are put in as they lie, and what was
                not handed over is left out; that is for those who want to see what comes of it.

        Raises:
            NotHeldError: A row that the length reads was not handed over.
            UsageError: The cache holds something already.
        """
        if self.length(cache):
            raise UsageError("the cache holds something already", got=self.length(cache), expected="a fresh one")
        pieces = self._staged.pop(cache, {})
        if length:
            for group, codec in self._codecs.items():
                codec.build(cache, pieces.get(group, ()), length, check)
            self._positions.put(cache, length)
        return cache

    def stack(self, caches: Sequence[Any]) -> Any:
        """One cache of a batch, from caches of one row each that stand at the same length.

        Raises:
            UsageError: There is none, or their lengths differ.
        """
        lengths = {self.length(cache) for cache in caches}
        if len(lengths) != 1:
            raise UsageError("caches of a batch stand at one length", got=sorted(lengths))
        made = self.fresh()
        if lengths == {0}:
            return made
        for place, layer in enumerate(made.layers):
            _stack(layer, [cache.layers[place] for cache in caches])
        self._positions.put(made, self._positions.of(caches[0]))
        return made

    def _codec(self, group: str) -> _Codec:
        if group not in self._codecs:
            raise UsageError("no rows of such a group", got=group, expected=", ".join(self._codecs))
        return self._codecs[group]


def _codec(model: Any, profile: Profile, group: Group, probe: Any, positions: Positions) -> _Codec | None:
    if group.object in ("window_boundary", "demoted_prefix", "layer_inputs"):
        return None
    layout = RowLayout.of(profile, group)
    match group.object:
        case "full_kv":
            return TokenRows(layout, probe)
        case "uncompressed_tail":
            return WindowRows(layout, probe)
        case "recurrent_state":
            return RecurrentStates(layout, probe, positions)
        case "compressed_global":
            return Entries(layout, probe, "compressor")
        case "routing_index" if hasattr(probe.layers[group.layers[0]], "compressed_kv"):
            return Entries(layout, probe, "indexer")
        case "routing_index":
            return TokenKeys(layout, probe)
        case "compressor_state":
            entries = profile.group(group.peers["entries"])
            name = "indexer" if entries.object == "routing_index" else "compressor"
            return CompressorStates(layout, probe, name, model)
    raise ProfileError("no cache of the library holds such a group", rule=group.id, got=group.object)


def _stack(layer: Any, rows: Sequence[Any]) -> None:
    """Take over what the same layer of several caches holds, tensors joined along the batch."""
    for name, first in vars(rows[0]).items():
        values = [vars(row)[name] for row in rows]
        if isinstance(first, dict):
            setattr(layer, name, {key: _joined([value[key] for value in values]) for key in first})
        else:
            setattr(layer, name, _joined(values))
    if getattr(rows[0], "values", None) is not None and rows[0].values is rows[0].keys:
        layer.values = layer.keys


def _joined(values: Sequence[Any]) -> Any:
    """Tensors along the batch; anything else, and single numbers, are equal in all."""
    first = values[0]
    return torch.cat(list(values)) if torch.is_tensor(first) and first.dim() else first
