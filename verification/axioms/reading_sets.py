"""Which stored positions a query reads: written from the models' papers, never from a rulebook.

Sources: sliding windows count the query itself, as in Gemma 3 (arXiv 2503.19786) and in the reference caches that keep
W - 1 older rows; chunked layers see the keys whose position gives the same quotient by the chunk as the query's, as in
the local layers of Llama 4; compression ratios, overlap and compressor rows are those of DeepSeek-V4 (arXiv
2606.19348). Native sparse attention (arXiv 2502.11089) reads an entry of each block that is complete, rows of whichever
blocks score best, which may be any, and a window of the same rows: so all raw rows are read, and entries up to the last
complete block. Recurrent state is that of gated delta networks (arXiv 2412.06464), of Kimi Delta Attention (arXiv
2510.26692) and of lightning attention (arXiv 2501.08313), which have no position that could be read apart. A layer that
shares another layer's keys and values reads what the owner's own query reads: the same positions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import z3

__all__ = ["BYTE_OBJECTS", "POSITIONAL", "STATEFUL", "reads", "state_is_read"]

POSITIONAL = ("full_kv", "compressed_global", "uncompressed_tail", "routing_index")
"""Objects whose rows stand for positions."""

STATEFUL = ("recurrent_state", "compressor_state")
"""Objects that are one state for one length."""

BYTE_OBJECTS = (*POSITIONAL, *STATEFUL)


def reads(kind: str, constants: Mapping[str, int | bool], length: Any, position: Any) -> Any:
    """Does a query at or after `length`, which reuses `length` tokens, read the row of the token at `position`?

    Args:
        kind: The object kind.
        constants: Window, ratio and chunk of the model.
        length, position: Z3 integers, in tokens.
    """
    inside = [0 <= position, position < length]
    match kind:
        case "full_kv":
            return z3.And(*inside)
        case "uncompressed_tail":
            # The query at `length` is the last of its own window: W - 1 older rows.
            seen = position > length - int(constants["window"])
            if "chunk" in constants:
                # In chunked layers history restarts at every multiple of the chunk; a query there opens its chunk anew.
                seen = z3.And(seen, position >= length - length % int(constants["chunk"]))
            return z3.And(*inside, seen)
        case "compressed_global" | "routing_index":
            ratio = int(constants["ratio"])
            return z3.And(*inside, position < length - length % ratio)
        case _:
            raise KeyError(kind)


def state_is_read(kind: str, constants: Mapping[str, int | bool], length: Any) -> Any:
    """Does continuing at `length` need a running state?

    A recurrent layer always continues its state. A compressor needs the rows of its unfinished entry, and with overlap
    also those of the entry before, once there is one.
    """
    if kind == "recurrent_state":
        return length > 0
    ratio, overlap = int(constants["ratio"]), int(constants.get("overlap", 0))
    unfinished = length % ratio > 0
    return z3.And(length > 0, z3.Or(unfinished, length >= ratio) if overlap else unfinished)
