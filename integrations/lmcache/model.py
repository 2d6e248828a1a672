"""What LMCache keeps, as a profile: each chunk has the rows of all layers, whatever the layers attend to."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from hitproof.spec.profile import Profile

__all__ = ["ChunkShape", "GROUP", "chunk_profile", "layout_digest"]

GROUP = "chunks"
"""Id of the only group."""


@dataclass(frozen=True, slots=True)
class ChunkShape:
    """Geometry of a chunk.

    Args:
        shapes: Shape of each tensor of a chunk of one token, the layers among its dimensions.
        itemsizes: Bytes of one element of each.
        layers: Layers of the model.
    """

    shapes: tuple[tuple[int, ...], ...]
    itemsizes: tuple[int, ...]
    layers: int

    @property
    def row_bytes(self) -> int:
        """Bytes of one token in all layers."""
        return sum(prod(shape) * size for shape, size in zip(self.shapes, self.itemsizes, strict=True))


def chunk_profile(model: str, shape: ChunkShape) -> Profile:
    """The profile of a model's chunks.

    To the rules a chunk is full keys and values: LMCache stores every token of every layer, those of windows too.
    Whether a number format has scales shows in its size: formats of one byte have them.

    Args:
        model: Name of the model.
        shape: Geometry of its chunks.
    """
    name = re.sub(r"[^a-z0-9]+", "-", model.lower()).strip("-")[:50]
    if not name[:1].isalpha():
        name = f"model-{name}".rstrip("-")
    return Profile.model_validate(
        {
            "profile": name,
            "title": f"Chunks that LMCache keeps of {model}"[:1000],
            "layers": shape.layers,
            "constants": {"receptive_field": 0, "warmable": False, "lookahead": 0, "ranks": 1},
            "groups": [
                {
                    "id": GROUP,
                    "object": "full_kv",
                    "layers": [f"0-{shape.layers - 1}"],
                    "constants": {
                        "row_tokens": 1,
                        "row_bytes": shape.row_bytes,
                        "has_v": True,
                        "scaled": min(shape.itemsizes) == 1,
                    },
                },
                {"id": "manifest", "object": "demoted_prefix", "layers": [f"0-{shape.layers - 1}"]},
                {
                    "id": "layer_inputs",
                    "object": "layer_inputs",
                    "layers": [f"0-{shape.layers - 1}"],
                    "constants": {"row_bytes": shape.row_bytes},
                },
            ],
        }
    )


def layout_digest(model: str, shape: ChunkShape, use_mla: bool) -> str:
    """Stands for the attention configuration where nobody states one."""
    parts: Sequence[object] = (model, shape.shapes, shape.itemsizes, shape.layers, use_mla)
    return hashlib.blake2b(repr(tuple(parts)).encode(), digest_size=16).hexdigest()
