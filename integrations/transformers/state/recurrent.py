"""States of recurrent layers: what the recurrence carries, and the last inputs of the convolution before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from hitproof.integrations.transformers.state.layout import (
    Piece,
    RowLayout,
    as_bytes,
    as_values,
    refuse,
    state_of,
)
from hitproof.integrations.transformers.state.positions import Positions
from hitproof.spec.errors import ProfileError

__all__ = ["RecurrentStates"]


class RecurrentStates:
    """One row a layer: the recurrent state as the library's tensor has it, then the convolution's last inputs.

    A convolution of K taps reads K - 1 inputs before the next one. The library keeps one more, which nothing reads.

    Args:
        layout: Of the group.
        probe: A cache that holds tokens.
        positions: How many tokens each cache's states have seen; the library does not count them.

    Raises:
        ProfileError: The profile's states are not those of the library's tensors.
    """

    def __init__(self, layout: RowLayout, probe: Any, positions: Positions) -> None:
        self.layout, self._positions = layout, positions
        layer = probe.layers[layout.layers[0]]
        if layer.number_of_states != 1:
            raise ProfileError("a layer has more than one state", rule=layout.group, got=layer.number_of_states)
        state, inputs = layer.recurrent_states[0][0], layer.conv_states[0][0]
        self._shape, self._dtype = state.shape, state.dtype
        self._channels, self._taps = (int(size) for size in inputs.shape)
        self._inputs_dtype = inputs.dtype
        self.device = state.device
        size = state.numel() * state.dtype.itemsize + self._channels * (self._taps - 1) * inputs.dtype.itemsize
        if size != layout.row_bytes:
            raise ProfileError(
                "the profile's states are not those of the model",
                rule=layout.group,
                got=f"{layout.row_bytes} bytes a layer",
                expected=f"{size} bytes a layer",
            )

    def held(self, cache: Any) -> tuple[int, int]:
        """The one length of which the cache has a state, which a crop does not change; 0 where nobody counted."""
        length = self._positions.of(cache)
        return length, length

    def read(self, cache: Any, start: int, end: int, row: int) -> Any:
        """uint8 [layers, 1, row_bytes]; a state is of one length and has no parts."""
        held = self.held(cache)
        if not end or end != held[1]:
            refuse(self.layout, start, end, held)
        rows = []
        for index in self.layout.layers:
            layer = cache.layers[index]
            inputs = layer.conv_states[0][row, :, -(self._taps - 1) :].transpose(0, 1)
            rows.append(
                torch.cat([as_bytes(layer.recurrent_states[0][row].flatten()), as_bytes(inputs.flatten())]).unsqueeze(0)
            )
        return torch.stack(rows)

    def build(self, cache: Any, pieces: Sequence[Piece], length: int, check: bool) -> None:
        """Give an empty cache the state of a length."""
        piece = state_of(self.layout, pieces, length, check)
        if piece is None:
            return
        cut = self._shape.numel() * self._dtype.itemsize
        for place, index in enumerate(self.layout.layers):
            layer, row = cache.layers[index], piece.rows[place, 0]
            state = as_values(row[:cut].clone(), self._dtype).view(self._shape).to(self.device).unsqueeze(0)
            past = as_values(row[cut:].clone(), self._inputs_dtype).view(self._taps - 1, self._channels)
            inputs = torch.nn.functional.pad(past.to(self.device).transpose(0, 1), (1, 0)).unsqueeze(0)
            layer.lazy_initialization(conv_states=inputs, conv_kernel_size=self._taps)
            layer.lazy_initialization(recurrent_states=state)
            layer.conv_states[0].copy_(inputs)
            layer.recurrent_states[0].copy_(state)
            layer.has_previous_state[0] = True
