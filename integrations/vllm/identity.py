"""Identity facts of a request, as the rulebook knows them, from what vLLM knows of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any
from uuid import uuid4

from hitproof.integrations.vllm.adapters import NO_ADAPTER, files_digest
from hitproof.integrations.vllm.workers import Workers

__all__ = ["Identities", "attention_digest", "checkpoint_digest"]

_NAMED_BY_HASH = "named by the block hash"
"""vLLM's block hash covers each picture with its place, so blocks that are found by it have the request's media."""


def attention_digest(config: Mapping[str, Any], overrides: Mapping[str, Any]) -> str:
    """A digest of everything in a model's configuration, of which attention reads a part.

    Args:
        config: The parsed `config.json` of the text model.
        overrides: What the engine sets beside it.
    """
    text = json.dumps([config, overrides], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def checkpoint_digest(model: str, revision: str | None) -> str:
    """A digest of a checkpoint's files; of its name where they do not lie in a folder of that name.

    Args:
        model: Folder or name.
        revision: Of a name.
    """
    return files_digest(model) or hashlib.sha256(f"{model}@{revision}".encode()).hexdigest()


class Identities:
    """Answers of which weights, adapter and salt a request is. Holds the weights' digest until it is told otherwise.

    Args:
        workers: Who holds weights and adapters.
        attention: `attention_digest` of the model.
        checkpoint: Digest of the files that the weights were loaded from; asked where weights cannot all be measured.
    """

    def __init__(self, workers: Workers, attention: str, checkpoint: Callable[[], str]) -> None:
        self._workers = workers
        self._attention = attention
        self._checkpoint = checkpoint
        self._version = "default"
        self._weights: str | None = None
        self._since = "as loaded"

    def weights_may_have_changed(self) -> None:
        """Something ran in the workers; the weights are measured anew before the next question."""
        self._weights = None
        self._since = uuid4().hex

    def name_weights(self, version: str) -> None:
        """The operator named the weights; another name is another identity."""
        self._version = version

    @property
    def weights(self) -> str:
        """The weights as they are now: the operator's name for them, and their digest.

        Where part of them cannot be measured, the files count that they came from, and every change that may have been.
        """
        if self._weights is None:
            digest, whole = self._workers.weights()
            self._weights = digest if whole else f"{digest}:{self._checkpoint()}:{self._since}"
        return f"{self._version}:{self._weights}"

    def usual(self) -> dict[str, str]:
        """What holds for a request that brings nothing of its own."""
        return {
            "weights": self.weights,
            "attention_config": self._attention,
            "adapter": NO_ADAPTER,
            "media": _NAMED_BY_HASH,
            "salt": "",
        }

    def of(self, request: Any) -> dict[str, str | None]:
        """Identity of a request; None for a fact that cannot be told, which then matches nothing."""
        return {
            **self.usual(),
            "adapter": self.adapter(request.lora_request),
            "salt": request.cache_salt or "",
        }

    def adapter(self, asked: Any) -> str | None:
        """The adapter that a request will be computed with: what is loaded, or else what will be read."""
        if asked is None:
            return NO_ADAPTER
        loaded = None if asked.load_inplace else self._workers.adapter(asked.lora_int_id)
        return loaded or files_digest(_folder(asked.lora_path))

    def still_loaded(self, asked: Any, adapter: str | None) -> bool:
        """Whether workers hold, after a step, the adapter that the request was taken to use."""
        if asked is None:
            return True
        return adapter is not None and self._workers.adapter(asked.lora_int_id) == adapter


def _folder(path: str) -> str:
    from vllm.lora.utils import get_adapter_absolute_path

    folder: str = get_adapter_absolute_path(path)
    return folder
