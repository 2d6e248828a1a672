"""Do stored index keys choose what fresh ones choose: scores, a top-k that never wavers, and their comparison.

Letters of shapes: Q queries, H index heads, D size of a key, N keys, K chosen keys; `...` shared leading dimensions.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from hitproof.kernels.index_rebuild import choosing
from hitproof.kernels.registry import pick
from hitproof.spec.errors import TensorError

__all__ = ["SelfCheck", "index_scores", "self_check", "stable_top_k"]

NONE = -1
"""Stands in a selection for a place that no key fills."""


@dataclass(frozen=True, slots=True)
class SelfCheck:
    """How stored keys compare with fresh ones.

    Args:
        score_error: Largest difference of a score, as a share of the spread of all fresh scores.
        agreement: Share of chosen keys that both choose; 1 where nothing is chosen.
    """

    score_error: float
    agreement: float


def index_scores(queries: torch.Tensor, keys: torch.Tensor, head_weights: torch.Tensor) -> torch.Tensor:
    """How much each key matters to each query: the heads' weighted sum of max(0, q . k) / sqrt(D * H), in float32.

    Args:
        queries: `[..., Q, H, D]`, turned to their positions.
        keys: `[..., N, D]`.
        head_weights: `[..., Q, H]`.

    Returns:
        `[..., Q, N]`, float32; float64 where the keys are.

    Raises:
        TensorError: Shapes do not fit.
    """
    if queries.shape[-1] != keys.shape[-1] or queries.shape[:-1] != head_weights.shape:
        raise TensorError(
            "queries, keys and weights do not fit together",
            got=(tuple(queries.shape), tuple(keys.shape), tuple(head_weights.shape)),
            expected="[..., Q, H, D], [..., N, D] and [..., Q, H]",
        )
    wide = torch.promote_types(keys.dtype, torch.float32)
    products = queries.to(wide) @ keys.to(wide).mT.unsqueeze(-3)
    heads, size = int(queries.shape[-2]), int(queries.shape[-1])
    weights = head_weights.to(wide) * (heads * size) ** -0.5
    return (products.relu() * weights.unsqueeze(-1)).sum(dim=-2)


def stable_top_k(scores: torch.Tensor, count: int, visible: torch.Tensor) -> torch.Tensor:
    """The keys of the highest scores, by falling score; of equal scores the earlier key comes first.

    Ties are common: every product that is not positive scores zero. A top-k that breaks them as it pleases lets two
    right caches give different answers.

    Args:
        scores: `[..., Q, N]`.
        count: K, the most keys that a query reads.
        visible: `[..., Q]` int64, how many of the first keys a query may read.

    Returns:
        `[..., Q, min(K, N)]` int64, -1 where fewer keys may be read.
    """
    keys = int(scores.shape[-1])
    hidden = torch.arange(keys, device=scores.device) >= visible.unsqueeze(-1)
    order = scores.masked_fill(hidden, -torch.inf).sort(dim=-1, descending=True, stable=True).indices
    chosen = order[..., : min(count, keys)]
    return chosen.masked_fill(chosen >= visible.unsqueeze(-1), NONE)


def self_check(
    fresh: torch.Tensor,
    stored: torch.Tensor,
    queries: torch.Tensor,
    head_weights: torch.Tensor,
    count: int,
    visible: torch.Tensor,
    backend: str = "torch",
) -> SelfCheck:
    """Compare what two sets of keys choose for some queries.

    Args:
        fresh, stored: `[..., N, D]`, keys as computed and as read back.
        queries, head_weights, count, visible: As in `index_scores` and `stable_top_k`.
        backend: Which implementation scores and chooses.

    Returns:
        Scores and choices compared; equal keys give an error of 0 and an agreement of 1.
    """
    score_of = pick(backend, index_scores, choosing.index_scores)
    choice_of = pick(backend, stable_top_k, choosing.stable_top_k)
    scores = [score_of(queries, keys, head_weights) for keys in (fresh, stored)]
    chosen = [choice_of(score, count, visible) for score in scores]
    spread = float(scores[0].std(correction=0)) if scores[0].numel() else 0.0
    error = float((scores[0] - scores[1]).abs().max()) if scores[0].numel() else 0.0
    both = (chosen[0].unsqueeze(-1) == chosen[1].unsqueeze(-2)).any(dim=-1) & (chosen[0] != NONE)
    wanted = int((chosen[0] != NONE).sum())
    return SelfCheck(
        score_error=0.0 if error == 0 else error / spread if spread else float("inf"),
        agreement=int(both.sum()) / wanted if wanted else 1.0,
    )
