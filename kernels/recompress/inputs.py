"""What entries, states and index keys are made from: kept rows of a layer's inputs or of its projections."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from hitproof.kernels.jobs import Held, RepairFault
from hitproof.kernels.norms import Linear
from hitproof.kernels.recompress.pages import read_rows
from hitproof.kernels.recompress.reference import Compressor, project

__all__ = ["LayerWeights", "kept_from", "kept_rows", "require_layers", "values_and_gates"]


@dataclass(frozen=True, eq=False)
class LayerWeights:
    """What one layer's compressor is made of.

    Args:
        compressor: Pooling, norm and rotary.
        value, gate: Projections; None where values and gates themselves are kept, one after the other in a row.
    """

    compressor: Compressor
    value: Linear | None = None
    gate: Linear | None = None


def require_layers(count: int, inputs: Held, target: Held) -> None:
    """Weights, kept rows and copy are of the same layers, and each row is one vector.

    Raises:
        RepairFault: They are not; nothing has been written.
    """
    if len(inputs.layers) < count:
        raise RepairFault("source_lost", f"inputs of {len(inputs.layers)} layers are kept, and those of {count} needed")
    if len(target.layers) != count:
        raise RepairFault("failed", f"weights of {count} layers are not for a copy of {len(target.layers)}")
    if any(pool.geometry.heads != 1 for pool in (*inputs.layers, *target.layers)):
        raise RepairFault("failed", "kept rows, entries, states and index keys have one head")


def kept_rows(inputs: Held, layer: int, first: int, to: int) -> torch.Tensor:
    """Kept rows of the tokens [first, to) of one layer, float32 `[T, V]`.

    Raises:
        RepairFault: Some of them are not kept.
    """
    row = kept_from(inputs, first, to)
    return read_rows(inputs.layers[layer], inputs.table, to - first, inputs.form, row)


def kept_from(inputs: Held, first: int, to: int) -> int:
    """Row of the first kept block at which the tokens [first, to) begin.

    Raises:
        RepairFault: Some of them are not kept.
    """
    end = inputs.start + inputs.count
    if not inputs.start <= first <= to <= end:
        raise RepairFault("source_lost", f"inputs of [{first}, {to}) are needed, and [{inputs.start}, {end}) are kept")
    return inputs.first + first - inputs.start


def values_and_gates(rows: torch.Tensor, weights: LayerWeights) -> tuple[torch.Tensor, torch.Tensor]:
    """Value and gate projections `[T, C * D]` of kept rows.

    Raises:
        RepairFault: The rows are neither inputs of the projections nor projections.
    """
    if weights.value is not None and weights.gate is not None:
        return project(rows, weights.value, weights.gate)
    width = weights.compressor.width
    if int(rows.shape[-1]) != 2 * width:
        raise RepairFault("failed", f"rows of {rows.shape[-1]} numbers are not {width} values and as many gates")
    values, gates = rows.split(width, dim=-1)
    return values, gates
