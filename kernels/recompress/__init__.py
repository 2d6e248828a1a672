"""Compressed entries and compressor state from kept projections or hidden states."""

from hitproof.kernels.recompress.reference import (
    Compressed,
    Compressor,
    CompressorState,
    empty_state,
    live_rows,
    project,
    recompress,
    state_from_rows,
)

__all__ = [
    "Compressed",
    "Compressor",
    "CompressorState",
    "empty_state",
    "live_rows",
    "project",
    "recompress",
    "state_from_rows",
]
