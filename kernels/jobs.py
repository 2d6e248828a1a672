"""What one repair may read, what it writes, and what it has made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from hitproof.spec.errors import TensorError
from hitproof.spec.facts import Value

if TYPE_CHECKING:
    import torch

    from hitproof.kernels.blocks import Pool
    from hitproof.kernels.numbers import RowFormat

__all__ = ["Done", "Held", "Job", "RepairFault"]


@dataclass(frozen=True, slots=True)
class Held:
    """The rows of one segment of one group, as a repair finds them or is to make them.

    Args:
        layers: A pool a layer; rows and table are the same in each.
        table: int64: the segment's blocks in order.
        count: Number of rows.
        form: What a row's bytes mean.
        first: Row of the first block at which the segment begins.
        start: Token that the first row stands for.
        base: Address of the first layer's buffer as the device sees it; that of its memory where left out.
        scale: Scales that lie apart from the rows.
        tags: Facts that bytes cannot tell: the identities of layout, kernel, encoding and scales, tier, pool epoch,
            whether a look-up finds it. Of rows to be made: those that they shall have.
    """

    layers: tuple[Pool, ...]
    table: torch.Tensor
    count: int
    form: RowFormat
    first: int = 0
    start: int = 0
    base: int | None = None
    scale: torch.Tensor | None = None
    tags: Mapping[str, Value] = field(default_factory=dict)

    @property
    def address(self) -> int:
        """Address of the segment's first block, in bytes.

        Raises:
            TensorError: There is no block.
        """
        if not self.table.numel():
            raise TensorError("a segment without a block has no address", got=list(self.table.shape))
        pool = self.layers[0]
        base = pool.buffer.data_ptr() if self.base is None else self.base
        return base + int(pool.geometry.address(int(self.table[0]), 0))

    @property
    def offset(self) -> int:
        """Bytes from the first block's address to the segment's first row."""
        geometry = self.layers[0].geometry
        return int(geometry.address(0, self.first)) - geometry.offset

    def told(self, *names: str) -> dict[str, Value]:
        """Facts about where the rows lie and how they are written: by the geometry, else by the tags.

        Raises:
            RepairFault: Neither says it.
        """
        by_place: dict[str, Value] = {"offset": self.offset, "stride": self.layers[0].geometry.stride}
        known = {**self.tags, **by_place}
        missing = [name for name in names if name not in known]
        if missing:
            raise RepairFault("failed", f"nothing says which '{missing[0]}' the copy shall have")
        return {name: known[name] for name in names}


@dataclass(frozen=True, slots=True)
class Job:
    """What one repair may read, and what it writes.

    Args:
        held: The segment's own rows; None where the repair does not read them, or where they are gone.
        target: The private copy to be written; None for a repair that writes nothing.
        sources: What the other names of the declaration's `consumes` stand for: rows, records or tensors, as the
            repair's `bind.py` says. A name that is missing is a source that is gone.
        parameters: Weights and settings of the model, by name; no source, since every machine that serves the model
            has them.
    """

    held: Held | None
    target: Held | None
    sources: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def own(self) -> Held:
        """The segment's own rows.

        Raises:
            RepairFault: They are gone.
        """
        if self.held is None:
            raise RepairFault("source_lost", "the segment's own rows are gone")
        return self.held

    def copy(self) -> Held:
        """Where to write.

        Raises:
            RepairFault: Nothing was given.
        """
        if self.target is None:
            raise RepairFault("failed", "there is no block to write to")
        return self.target

    def row_by_row(self) -> tuple[Held, Held]:
        """The segment's own rows and a copy that has as many rows and layers.

        Raises:
            RepairFault: One is gone, or they differ.
        """
        held, target = self.own(), self.copy()
        for what, theirs, ours in (
            ("rows", held.count, target.count),
            ("layers", len(held.layers), len(target.layers)),
        ):
            if theirs != ours:
                raise RepairFault("failed", f"{theirs} {what} do not go into a copy of {ours}")
        return held, target

    def source(self, name: str) -> Any:
        """What a name of `consumes` stands for.

        Raises:
            RepairFault: It is gone.
        """
        if self.sources.get(name) is None:
            raise RepairFault("source_lost", f"the source '{name}' is gone")
        return self.sources[name]


@dataclass(frozen=True, slots=True)
class Done:
    """What a repair has made.

    Args:
        measured: Facts read off the new bytes and where they lie.
        assigned: Facts that hold because the bytes were written so: the copy's tags, or what was given to the repair.
    """

    measured: Mapping[str, Value]
    assigned: Mapping[str, Value] = field(default_factory=dict)


class RepairFault(Exception):
    """A repair cannot be done; an outcome and no error, since the process of recovery says what follows."""

    def __init__(self, status: Literal["failed", "source_lost", "transfer_failed"], detail: str) -> None:
        super().__init__(detail)
        self.status: Literal["failed", "source_lost", "transfer_failed"] = status
