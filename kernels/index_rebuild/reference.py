"""Index keys from what their layer was given: one a token (DeepSeek-V3.2), or one an entry (DeepSeek-V4).

Letters of shapes: T tokens, E entries, D size of an index key, R its rotary part, X size of the layer's input; `...`
leading dimensions that all tensors of a call share.
Source: DeepSeek-V3.2 report, section 2.1; arXiv 2606.19348, section 2.3.1.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.nn import functional

from hitproof.kernels.norms import Linear, projected
from hitproof.kernels.recompress import Compressed, Compressor, CompressorState, recompress
from hitproof.kernels.rotary import Rotary, rotated
from hitproof.spec.errors import TensorError

__all__ = ["TokenIndexer", "compressed_keys", "hadamard", "token_keys"]


@dataclass(frozen=True, eq=False)
class TokenIndexer:
    """What makes a key of each token's layer input, as in DeepSeek-V3.2.

    Args:
        key: Projection `[D, X]`.
        norm_weight, norm_bias: `[D]`, of a layer norm: mean and variance, not only the mean square.
        norm_epsilon: Added to the variance.
        rotary: How a key is turned (leading halves in DeepSeek-V3.2, unlike its latents).
    """

    key: Linear
    norm_weight: torch.Tensor
    norm_bias: torch.Tensor
    norm_epsilon: float
    rotary: Rotary


def token_keys(inputs: torch.Tensor, indexer: TokenIndexer, first: int = 0) -> torch.Tensor:
    """One index key a token.

    Args:
        inputs: `[..., T, X]`, what the layer's attention was given for tokens `first` to `first + T`.
        first: Tokens before these.

    Returns:
        `[..., T, D]` in the type of `inputs`.

    Raises:
        TensorError: The inputs are not of the projection's size, or the position is negative.
    """
    if inputs.ndim < 2 or inputs.shape[-1] != indexer.key.weight.shape[1] or first < 0:
        raise TensorError(
            "not inputs of this indexer",
            got=(tuple(inputs.shape), first),
            expected=f"[..., T, {indexer.key.weight.shape[1]}] from a position that is not negative",
        )
    weight, bias = (x.to(inputs.dtype) for x in (indexer.norm_weight, indexer.norm_bias))
    keys = functional.layer_norm(projected(inputs, indexer.key), weight.shape, weight, bias, indexer.norm_epsilon)
    positions = torch.arange(first, first + int(inputs.shape[-2]), device=inputs.device)
    return rotated(keys.movedim(-2, 0), positions, indexer.rotary).movedim(0, -2)


def compressed_keys(
    values: torch.Tensor, gates: torch.Tensor, compressor: Compressor, state: CompressorState | None = None
) -> Compressed:
    """One index key an entry, as in DeepSeek-V4: the indexer has a compressor of its own, with its own state.

    Args:
        values, gates: `[..., T, 2 * D]`, the indexer's projections, not those of the entries.
        compressor: The indexer's.
        state: The indexer's state at the first of these tokens.
    """
    return recompress(values, gates, compressor, state)


def hadamard(keys: torch.Tensor) -> torch.Tensor:
    """Keys times the orthonormal Walsh-Hadamard matrix, in float32 or wider, rounded once.

    Deployments turn keys and queries alike before they store keys in eight bits, so that no number sticks out; scores
    stay the same, since the matrix is orthogonal. A turned key and a plain one must never meet.

    Args:
        keys: `[..., D]`, D a power of two.

    Raises:
        TensorError: D is no power of two.
    """
    size = int(keys.shape[-1])
    if size < 1 or size & (size - 1):
        raise TensorError("only keys of a power of two can be turned", got=size, expected="a power of two")
    turned = keys.to(torch.promote_types(keys.dtype, torch.float32))
    step = 1
    while step < size:
        pairs = turned.unflatten(-1, (size // (2 * step), 2, step))
        left, right = pairs[..., 0, :], pairs[..., 1, :]
        turned = torch.stack([left + right, left - right], dim=-2).flatten(-3)
        step *= 2
    return (turned * size**-0.5).to(keys.dtype)
