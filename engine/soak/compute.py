"""Repairs that compute, as the toy model does them: out of the bytes that they read, whatever these are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hitproof.engine.soak.faulty_memory import FaultyMemory
from hitproof.engine.soak.mixing import masked
from hitproof.engine.soak.world import Rows, World
from hitproof.spec.memory import Extent
from hitproof.spec.repair import RepairJob, RepairOutcome, Source

__all__ = ["Compute"]

_COPIES = ("requantize", "window_roll", "index_remap", "relayout")
"""Repairs whose rows say what they said before."""


class _LostError(Exception):
    """Rows that a repair reads are not there, or not what was recorded of them."""


class Compute:
    """Runs the repairs of one manager.

    Args:
        world: The model.
        memory: Where the bytes are.
        measures: Whether rows that are read are measured in the same pass, and refused where they differ.
    """

    def __init__(self, world: World, memory: FaultyMemory, *, measures: bool) -> None:
        self._world, self._memory, self._measures = world, memory, measures

    def __call__(self, job: RepairJob) -> RepairOutcome:
        """Run one repair into the job's target."""
        wanted = job.request.wanted
        read: list[Extent] = []
        try:
            rows = self._rows(job, read)
        except _LostError as error:
            return RepairOutcome("source_lost", {}, str(error))
        payload = masked(rows, _text(wanted.get("encoding")), _text(wanted.get("scale_version"))).tobytes()
        self._memory.write(job.target, 0, payload)
        self._memory.made_of(read, job.target)
        meant = self._memory.digest(job.request.group, payload)
        return RepairOutcome("done", {"start": wanted["start"], "end": wanted["end"], "recorded": meant})

    def _rows(self, job: RepairJob, read: list[Extent]) -> Rows:
        request = job.request
        group, start, end = request.group, _count(request.wanted["start"]), _count(request.wanted["end"])
        if request.repair == "forward":
            return self._world.prefix(job.tokens, job.facts).rows(group, start, end)
        if request.repair in _COPIES:
            return self._own(job, read)[:, : job.target.rows]
        maker = self._world.maker(group)
        if request.repair == "tail_fill":
            old_start, old_end = _count(request.facts["start"]), _count(request.facts["end"])
            held = self._own(job, read)[:, start - old_start : old_end - old_start]
            young = maker.rows(self._inputs(job, old_end, end, read), old_end, old_end, end, job.facts)
            return np.concatenate([held, young], axis=1)
        first = max(0, start - maker.reach)
        return maker.rows(self._inputs(job, first, end, read), first, start, end, job.facts)

    def _own(self, job: RepairJob, read: list[Extent]) -> Rows:
        if job.own is None:
            raise _LostError("the segment's own rows are gone")
        return self._read(job.own, read)

    def _inputs(self, job: RepairJob, first: int, end: int, read: list[Extent]) -> NDArray[np.uint32]:
        """Kept input rows of the tokens [first, end), as words, of the one segment that has them all."""
        for source in job.held[job.peers["inputs"]]:
            start, stop = source.facts.get("start"), source.facts.get("end")
            if isinstance(start, int) and isinstance(stop, int) and start <= first and end <= stop:
                rows = self._read(source, read)[0, first - start : end - start]
                return np.ascontiguousarray(rows).view(np.uint32)
        raise _LostError(f"no inputs are held of [{first}, {end})")

    def _read(self, source: Source, read: list[Extent]) -> Rows:
        """Rows out of their number format; what is read is what was measured, in one pass."""
        extent, facts = source.extent, source.facts
        read.append(extent)
        payload = self._memory.read(extent)
        if self._measures and self._memory.digest(extent.group, payload) != facts.get("recorded"):
            self._memory.noticed(extent)
            raise _LostError(f"rows of group '{extent.group}' are not what was recorded of them")
        shape = self._memory.shape(extent.group)
        rows = np.frombuffer(payload, np.uint8).reshape(shape.layers, extent.rows, shape.row_bytes)
        return masked(rows, _text(facts.get("encoding")), _text(facts.get("scale_version")))


def _count(value: object) -> int:
    if not isinstance(value, int):
        raise _LostError(f"a span has the end {value!r}")
    return value


def _text(value: object) -> str | None:
    return None if value is None else str(value)
