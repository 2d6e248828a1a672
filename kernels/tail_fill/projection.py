"""Keys and values of one layer, made from its kept inputs as the layer itself makes them."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from hitproof.kernels.norms import Linear, Norm, normed, projected
from hitproof.kernels.rotary import Rotary, rotated
from hitproof.spec.errors import TensorError

__all__ = ["CachePath", "NewRows", "require_path", "rows_from_inputs"]


@dataclass(frozen=True, slots=True)
class CachePath:
    """The weights through which a layer's input becomes its cached rows.

    Args:
        input_norm: The norm before attention, over N numbers; None where the inputs were kept behind it.
        key: N -> H * D; for a latent N -> D, the latent and its rotary part in one row.
        value: N -> H * Dv; None where the row serves as both, as latents do.
        heads: H.
        key_norm, value_norm: Over a head's row, or over its leading numbers where the weight has fewer.
        rotary: None in layers without positions.
        norm_after_rotary: The key's norm follows the turning, as in Llama 4.
    """

    input_norm: Norm | None
    key: Linear
    value: Linear | None
    heads: int
    key_norm: Norm | None = None
    value_norm: Norm | None = None
    rotary: Rotary | None = None
    norm_after_rotary: bool = False


@dataclass(frozen=True, slots=True)
class NewRows:
    """Rows to be cached: key [T, H, D], and value [T, H, Dv] or None where the key's row serves as both."""

    key: torch.Tensor
    value: torch.Tensor | None


def rows_from_inputs(inputs: torch.Tensor, positions: torch.Tensor, path: CachePath) -> NewRows:
    """Norm, projection, norm of the heads, rotary: what the layer would have written at these positions.

    Each step is rounded to the inputs' type once, as in the models' own code.

    Args:
        inputs: [T, N] hidden states at the layer's door, in the type in which the model runs.
        positions: [T] int64, tokens.
        path: The layer's weights.

    Raises:
        TensorError: The weights are those of inputs of another size.
    """
    _check(inputs, positions, path)
    hidden = inputs if path.input_norm is None else normed(inputs, path.input_norm)
    key = projected(hidden, path.key).unflatten(-1, (path.heads, -1))
    if not path.norm_after_rotary:
        key = _head_norm(key, path.key_norm)
    if path.rotary is not None:
        key = rotated(key, positions, path.rotary)
    if path.norm_after_rotary:
        key = _head_norm(key, path.key_norm)
    if path.value is None:
        return NewRows(key, None)
    value = projected(hidden, path.value).unflatten(-1, (path.heads, -1))
    return NewRows(key, _head_norm(value, path.value_norm))


def _check(inputs: torch.Tensor, positions: torch.Tensor, path: CachePath) -> None:
    if inputs.dim() != 2:
        raise TensorError("the inputs are one row a token", got=list(inputs.shape), expected="[T, N]")
    require_path(inputs.shape[1], path)
    if positions.dtype != torch.int64 or positions.shape != inputs.shape[:1]:
        raise TensorError(
            "each input has a position",
            got=f"{positions.dtype} {list(positions.shape)}",
            expected=f"torch.int64 [{inputs.shape[0]}]",
        )


def require_path(size: int, path: CachePath) -> None:
    """The weights make whole heads from inputs of `size` numbers.

    Raises:
        TensorError: They do not.
    """
    if path.key.weight.shape[1] != size:
        raise TensorError("the inputs are of another size", got=size, expected=f"{path.key.weight.shape[1]}")
    for linear in (path.key, path.value):
        if linear is not None and (linear.weight.shape[1] != size or linear.weight.shape[0] % path.heads):
            raise TensorError(
                "the weights are no whole heads of this input",
                got=list(linear.weight.shape),
                expected=f"[{path.heads} * D, {size}]",
            )


def _head_norm(rows: torch.Tensor, norm: Norm | None) -> torch.Tensor:
    """The norm over the leading numbers of each head's row that its weight covers; all of them where it has none."""
    if norm is None:
        return rows
    covered = rows.shape[-1] if norm.weight is None else norm.weight.shape[0]
    return torch.cat((normed(rows[..., :covered], norm), rows[..., covered:]), dim=-1)
