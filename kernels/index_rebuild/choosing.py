"""Scores of queries and a choice of keys that never wavers, on the device."""

from __future__ import annotations

import torch

from hitproof.kernels.configs import DEFAULT, INTERPRET, CompileSpec, Config, config_for
from hitproof.kernels.launching import launch
from hitproof.spec.errors import TensorError

__all__ = ["CHOICE_CONFIGS", "SCORE_CONFIGS", "index_scores", "specs", "stable_top_k"]

SCORE_CONFIGS = {
    DEFAULT: Config({"BLOCK_Q": 16, "BLOCK_N": 64}, warps=8, stages=1),
    INTERPRET: Config({"BLOCK_Q": 16, "BLOCK_N": 256}),
}
CHOICE_CONFIGS = {DEFAULT: Config({}, warps=16), "gfx942": Config({}, warps=8), "gfx950": Config({}, warps=8)}
_LEAST = 16
_MOST = 2048
"""Keys that one choice can hold."""


def index_scores(
    queries: torch.Tensor, keys: torch.Tensor, head_weights: torch.Tensor, *, workspace: torch.Tensor | None = None
) -> torch.Tensor:
    """The twin of `selfcheck.index_scores` for keys of no more than 32 bits; returns without waiting.

    Args:
        queries, keys, head_weights: As there, without gaps.
        workspace: float32 `[..., Q, N]`, overwritten and returned; made where left out.

    Raises:
        TensorError: Shapes do not fit, or keys are float64.
    """
    from hitproof.kernels.index_rebuild.kernel import scores_kernel

    lead = queries.shape[:-3]
    fits = queries.shape[-1] == keys.shape[-1] and queries.shape[:-1] == head_weights.shape and lead == keys.shape[:-2]
    if not fits or keys.dtype == torch.float64:
        raise TensorError(
            "queries, keys and weights do not fit together",
            got=(tuple(queries.shape), tuple(keys.shape), tuple(head_weights.shape), keys.dtype),
            expected="[..., Q, H, D], [..., N, D] and [..., Q, H], of 32 bits at most",
        )
    asked, heads, size = queries.shape[-3:]
    count, batch = int(keys.shape[-2]), lead.numel()
    scores = workspace
    if scores is None:
        scores = torch.empty((*lead, asked, count), dtype=torch.float32, device=keys.device)
    tiles = config_for(SCORE_CONFIGS, keys.device).tiles
    launch(
        scores_kernel,
        (batch, -(-asked // tiles["BLOCK_Q"]), -(-count // tiles["BLOCK_N"])),
        SCORE_CONFIGS,
        *(one.to(torch.float32).contiguous() for one in (queries, keys, head_weights)),
        scores,
        asked,
        count,
        heads,
        (heads * size) ** -0.5,
        SIZE=int(size),
        WIDTH=_power(int(size)),
    )
    return scores


def stable_top_k(
    scores: torch.Tensor, count: int, visible: torch.Tensor, *, workspace: torch.Tensor | None = None
) -> torch.Tensor:
    """The twin of `selfcheck.stable_top_k` for float32 scores; returns without waiting.

    Args:
        scores, count, visible: As there, without gaps.
        workspace: int64 `[..., Q, min(K, N)]`, overwritten and returned; made where left out.

    Raises:
        TensorError: The scores are of another type, or more keys are to be chosen than the kernel can hold.
    """
    from hitproof.kernels.index_rebuild.kernel import choice_kernel

    keys = int(scores.shape[-1])
    wanted = min(count, keys)
    if scores.dtype != torch.float32 or wanted > _MOST:
        raise TensorError(
            "no scores of this kernel",
            got=f"{scores.dtype}, {wanted} to choose",
            expected=f"torch.float32, {_MOST} at most",
        )
    chosen = workspace
    if chosen is None:
        chosen = torch.empty((*scores.shape[:-1], wanted), dtype=torch.int64, device=scores.device)
    launch(
        choice_kernel,
        (scores.shape[:-1].numel() if wanted else 0,),
        CHOICE_CONFIGS,
        scores.contiguous(),
        visible.to(torch.int64).contiguous(),
        chosen,
        keys,
        wanted,
        KEPT=_power(wanted),
    )
    return chosen


def specs() -> list[CompileSpec]:
    """DeepSeek-V4's indexer: 64 heads of 128 numbers, 512 keys chosen; and DeepSeek-V3.2's, which chooses 2,048."""
    from hitproof.kernels.index_rebuild.kernel import choice_kernel, scores_kernel

    tensors = ("query", "key", "head_weight", "score")
    scored = {**dict.fromkeys(tensors, "*fp32"), "queries": "i32", "keys": "i32", "heads": "i32", "root": "fp32"}
    chosen = {"score": "*fp32", "visible": "*i64", "chosen": "*i64", "keys": "i32", "wanted": "i32"}
    sizes = {"SIZE": 128, "WIDTH": 128}
    return [
        CompileSpec(scores_kernel, "keys of 128 numbers", scored, sizes, SCORE_CONFIGS, (*tensors, "heads")),
        *(
            CompileSpec(choice_kernel, f"{kept} keys chosen", chosen, {"KEPT": kept}, CHOICE_CONFIGS, ("chosen",))
            for kept in (512, 2048)
        ),
    ]


def _power(number: int) -> int:
    """The least power of two that holds a number, and no less than a tile takes."""
    return max(_LEAST, 1 << max(0, number - 1).bit_length())
