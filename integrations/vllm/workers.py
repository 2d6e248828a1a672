"""The workers as the scheduler's process sees them: questions that all of them answer, put together."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from hitproof.integrations.vllm.worker import (
    LayerPlace,
    describe_layers,
    loaded_adapter,
    measure_blocks,
    measure_weights,
)
from hitproof.spec.errors import UsageError

__all__ = ["Workers"]


class Workers:
    """Asks all workers of an engine; each call waits until they have done what they were given before.

    Args:
        ask: The executor's `collective_rpc`.
    """

    def __init__(self, ask: Callable[..., list[Any]]) -> None:
        self._ask = ask

    def places(self, names: Sequence[str]) -> list[LayerPlace]:
        """Where each layer's blocks lie in the first worker.

        Raises:
            UsageError: Workers keep their blocks in different layouts.
        """
        answers = self._ask(describe_layers, args=(list(names),))
        shapes = {tuple((place.layout, place.encoding, place.stride) for place in one) for one in answers}
        if len(shapes) != 1:
            raise UsageError("workers keep their blocks in different layouts", got=len(shapes), expected=1)
        places: list[LayerPlace] = answers[0]
        return places

    def fingerprints(self, names: Sequence[str], blocks: Sequence[int]) -> list[str]:
        """A fingerprint a block, over the given layers in all workers."""
        answers = self._ask(measure_blocks, args=(list(names), list(blocks)))
        return ["+".join(shares) for shares in zip(*answers, strict=True)]

    def weights(self) -> tuple[str, bool]:
        """A digest of the weights of all workers, as they are now, and whether it covers all of them."""
        answers = self._ask(measure_weights)
        digest = hashlib.sha256("\n".join(share for share, _ in answers).encode()).hexdigest()
        return digest, all(whole for _, whole in answers)

    def adapter(self, number: int) -> str | None:
        """The digest of the adapter that workers hold under a number; None where one holds none, or another."""
        answers = set(self._ask(loaded_adapter, args=(number,)))
        found: str | None = answers.pop() if len(answers) == 1 else None
        return found
