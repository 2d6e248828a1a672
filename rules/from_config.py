"""Profiles derived from a Hugging Face `config.json`; what cannot be derived is refused, never guessed."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from pydantic import ValidationError

from hitproof.rules.attention_families import interleaved, latent_with_index, linear_hybrid, plain, sliding
from hitproof.rules.deepseek_v4_family import compressed
from hitproof.rules.group_layouts import inputs, manifest
from hitproof.rules.model_config import ModelConfig, read_config
from hitproof.spec.errors import HitproofError, Position, ProfileError
from hitproof.spec.profile import MAX_LAYERS, Constant, Group, Profile

__all__ = ["KNOWN_MODEL_TYPES", "profile_from_config", "profile_from_config_file"]

_Derive = Callable[[ModelConfig, int, str | None], tuple[dict[str, Constant], list[Group]]]

_FAMILIES: Mapping[str, _Derive] = {
    "deepseek_v32": latent_with_index,
    "deepseek_v4": compressed,
    "gemma2": interleaved,
    "gemma3": interleaved,
    "gemma3_text": interleaved,
    "gpt_oss": interleaved,
    "llama": plain,
    "mistral": sliding,
    "qwen2": plain,
    "qwen3_next": linear_hybrid,
}
KNOWN_MODEL_TYPES: tuple[str, ...] = tuple(sorted(_FAMILIES))


def profile_from_config_file(path: Path, *, name: str | None = None, kv_dtype: str | None = None) -> Profile:
    """Read a `config.json` and derive its profile; see `profile_from_config`.

    Raises:
        HitproofError: The file cannot be read, or the profile cannot be derived.
    """
    return profile_from_config(read_config(path), name=name, file=str(path), kv_dtype=kv_dtype)


def profile_from_config(
    config: Mapping[str, object], *, name: str | None = None, file: str, kv_dtype: str | None = None
) -> Profile:
    """Derive a model's cache groups from its configuration.

    Args:
        config: The parsed `config.json`; a `text_config` inside is followed.
        name: The profile's name in kebab case; without one, the model type.
        file: Name used in errors and as the profile's source.
        kv_dtype: Element type of uncompressed keys and values; without one, the configuration's `dtype`.

    Raises:
        ProfileError: The model type is not known, a key is missing, or a value cannot be expressed. The
            message names the key by its path.
    """
    text = ModelConfig(config, file=file).text_model()
    model_type = text.text("model_type")
    derive = _FAMILIES.get(model_type)
    if derive is None:
        close = difflib.get_close_matches(model_type, KNOWN_MODEL_TYPES, n=1)
        text.refuse(
            "model_type",
            "is a model type whose cache groups are not known",
            got=model_type,
            expected=", ".join(KNOWN_MODEL_TYPES),
            hint=f"did you mean {close[0]}?" if close else "write the profile by hand",
        )
    layers = text.integer("num_hidden_layers", most=MAX_LAYERS)
    try:
        constants, groups = derive(text, layers, kv_dtype)
        extra = [manifest(layers)]
        if text.has("hidden_size"):
            extra.append(inputs(layers, text.integer("hidden_size")))
        return Profile.model_validate(
            {
                "profile": name or re.sub(r"[^a-z0-9]+", "-", model_type),
                "title": f"{model_type} of {layers} layers, derived from its configuration",
                "layers": layers,
                "sources": [file[-200:]],
                "constants": constants,
                "groups": [group.model_dump() for group in (*groups, *extra)],
            }
        )
    except HitproofError:
        raise
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ProfileError(
            f"the derived profile is not valid at {place}: {first['msg']}", where=Position(file)
        ) from error
