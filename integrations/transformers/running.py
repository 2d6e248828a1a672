"""One forward pass of a model behind what its cache holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from hitproof.integrations.transformers.stable_topk import stable_topk

__all__ = ["run"]


def run(model: Any, tokens: Sequence[int], cache: Any) -> Any:
    """Compute tokens behind a cache, which goes on by them.

    Indexers of sparse layers choose by `Tensor.topk`, after a ReLU that makes many scores equal. As the library has it,
    which of equals is chosen depends on how many there are, and a valid cache and a cold run differ. So ties are broken
    by place here.

    Args:
        model: A causal language model.
        tokens: Token ids, at least one.
        cache: Its cache; changed.

    Returns:
        Logits [T, vocabulary].
    """
    given = torch.tensor([list(tokens)], device=model.device)
    with torch.no_grad(), stable_topk():
        return model(given, cache=cache, use_cache=True).logits[0]
