"""Identity facts of a request and of what it writes, from what SGLang knows of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

__all__ = [
    "Identities",
    "NO_ADAPTER",
    "adapters_digest",
    "attention_digest",
    "weights_changed",
    "weights_digest",
    "weights_replaced",
]

NO_ADAPTER = "none"
_NAMED_BY_TOKENS = "named by tokens"
"""SGLang puts tokens of 62 bits of an item's hash in the place of media, and pages are filed under all their tokens."""

_EDGE = 1 << 16
_updates: list[str] = []


def weights_changed() -> None:
    """Weights were replaced while serving; what was computed before is of others. Changes every identity to come."""
    # Nobody tells a digest of the new ones, so they are nobody else's either.
    _updates[:] = [uuid4().hex]


def weights_replaced() -> bool:
    """Whether weights were replaced since this process began."""
    return bool(_updates)


def weights_digest(model_path: str, revision: str | None) -> str:
    """A digest of the files that weights are read from, or of their name where they are not in a local folder.

    Of each file the name, the size and both ends are read; nobody waits for terabytes.

    Args:
        model_path: Folder, or the name of a model on a hub.
        revision: The hub's revision.
    """
    digest = hashlib.sha256()
    folder = Path(model_path)
    files = sorted(one for one in folder.glob("*") if one.is_file()) if folder.is_dir() else []
    if not files:
        digest.update(json.dumps([model_path, revision]).encode())
    for file in files:
        size = file.stat().st_size
        digest.update(f"{file.name} {size}\n".encode())
        with file.open("rb") as opened:
            digest.update(opened.read(_EDGE))
            opened.seek(max(0, size - _EDGE))
            digest.update(opened.read(_EDGE))
    return digest.hexdigest()


def attention_digest(config: Mapping[str, Any], *more: object) -> str:
    """A digest of everything in a model's configuration, of which attention reads a part.

    Args:
        config: The parsed `config.json`.
        more: What the server sets beside it.
    """
    return hashlib.sha256(json.dumps([config, more], sort_keys=True, default=str).encode()).hexdigest()


def adapters_digest(loaded: Iterable[Any] | None) -> str:
    """A digest of the adapters that a server is started with.

    SGLang makes their ids of name and path, so the ids stay when other weights lie there.

    Args:
        loaded: SGLang's records of them.
    """
    named = sorted((str(one.lora_name), weights_digest(one.lora_path, None)) for one in loaded or ())
    return hashlib.sha256(json.dumps(named).encode()).hexdigest() if named else NO_ADAPTER


class Identities:
    """Answers of which weights, adapter, media and salt a request is.

    Args:
        weights: `weights_digest` of what was loaded.
        attention: `attention_digest` of the model.
    """

    def __init__(self, weights: str, attention: str) -> None:
        self._weights = weights
        self._attention = attention

    def usual(self) -> dict[str, Any]:
        """What holds for a request that brings nothing of its own."""
        return {
            "weights": ":".join((self._weights, *_updates)),
            "attention_config": self._attention,
            "adapter": NO_ADAPTER,
            "media": _NAMED_BY_TOKENS,
            "salt": _salt(None, None),
        }

    def of(self, request: Any | None) -> dict[str, Any]:
        """Identity of a request; without one, adapter and salt are unknown, and then nothing is usable."""
        if request is None:
            return {**self.usual(), "adapter": None, "salt": None}
        return {
            **self.usual(),
            # Within one process an id stands for the weights of one load.
            "adapter": request.lora_id or NO_ADAPTER,
            "media": _media(request.multimodal_inputs),
            "salt": _salt(request.extra_key, request.cache_salt),
        }


def _salt(extra_key: str | None, cache_salt: str | None) -> str:
    return json.dumps([extra_key or None, cache_salt or None])


def _media(inputs: Any | None) -> str | None:
    """Tokens name media, unless an item has no hash to make them of."""
    items = getattr(inputs, "mm_items", None) or ()
    return None if any(item.hash is None for item in items) else _NAMED_BY_TOKENS
