"""A profile of a model as the library keeps its cache: groups by its configuration, rows by its element type."""

from __future__ import annotations

from typing import Any

import torch

from hitproof.rules.from_config import profile_from_config
from hitproof.spec.profile import Profile

__all__ = ["profile_of"]


def profile_of(config: Any, *, name: str | None = None, dtype: torch.dtype | None = None) -> Profile:
    """Derive the cache groups of a model.

    Args:
        config: `model.config`, or the configuration that holds a text model's.
        name: The profile's name in kebab case; without one, the model type.
        dtype: What the cache keeps rows in, that is the type of the model's weights; without one, the
            configuration's.

    Returns:
        Groups whose rows have the bytes of the library's own tensors: one element type, no scales. Recurrent and
        compressor states are float32.

    Raises:
        ProfileError: The model type is not known, or the configuration has what cannot be expressed.
    """
    text = config.get_text_config(decoder=True)
    # Some configurations count their layers and do not write the number down.
    values = {**text.to_dict(), "num_hidden_layers": text.num_hidden_layers}
    kept = dtype or text.dtype
    return profile_from_config(
        values,
        name=name,
        file=f"the configuration of {text.model_type}",
        kv_dtype=None if kept is None else str(kept).removeprefix("torch."),
        rows="plain",
    )
