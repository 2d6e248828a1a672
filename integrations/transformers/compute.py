"""Repairs that compute, as a transformers model can run them; each fails with a reason where it cannot."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hitproof.engine import Engine
from hitproof.integrations.transformers.inputs import Provenance
from hitproof.integrations.transformers.kernel_repairs import KernelRepairs
from hitproof.integrations.transformers.rows import Part, assembled
from hitproof.integrations.transformers.state import StateMap
from hitproof.integrations.transformers.warming import HISTORY, reach, warmed
from hitproof.kernels.jobs import RepairFault
from hitproof.kernels.memory import TorchMemory
from hitproof.spec.errors import InternalError, TensorError
from hitproof.spec.repair import RepairJob, RepairOutcome, Source

__all__ = ["ModelCompute"]

_NEVER = {
    "relayout": "rows of a live cache have one layout, that of the library's version",
    "requantize": "rows of a live cache have one number format, that of the model",
}
"""Repairs that no model runs here, and why."""


@dataclass(frozen=True, slots=True)
class _Pass:
    """One pass over the last tokens of a prefix, which several groups of a plan share.

    Args:
        of: What it was made of: tokens, and the history that it read.
        start: Where it began.
        cache: The live cache behind it.
    """

    of: object
    start: int
    cache: Any


class ModelCompute:
    """Runs the repairs of one cache.

    Args:
        model: The model.
        engine: The rulebook, bound to it.
        state: Which tensors are which group's rows.
        memory: The bytes.

    Attributes:
        ran: Behind what inputs ran that were kept; whoever keeps inputs notes it there.
    """

    def __init__(self, model: Any, engine: Engine, state: StateMap, memory: TorchMemory) -> None:
        self.ran = Provenance()
        self._model, self._state, self._memory = model, state, memory
        self._groups = {group.id: group for group in engine.judge.groups}
        self._last: _Pass | None = None
        kernels = KernelRepairs(model, engine.judge.groups, memory, self.ran)
        self._runs: Mapping[str, Callable[[RepairJob], bytes]] = {
            "forward": self._forward,
            "index_rebuild": kernels.index_rebuild,
            "index_remap": self._copied,
            "recompress": kernels.recompress,
            "tail_fill": kernels.tail_fill,
            "window_roll": self._copied,
        }

    def __call__(self, job: RepairJob) -> RepairOutcome:
        """Run one repair into the job's target."""
        request = job.request
        run = self._runs.get(request.repair)
        if run is None:
            why = _NEVER.get(request.repair, f"nothing here runs '{request.repair}'")
            return RepairOutcome("failed", {}, why)
        try:
            payload = run(job)
        except RepairFault as fault:
            return RepairOutcome(fault.status, {}, str(fault))
        except TensorError as error:
            return RepairOutcome("failed", {}, str(error))
        self._memory.write(job.target, 0, payload)
        wanted = request.wanted
        meant = self._memory.digest(request.group, payload)
        return RepairOutcome("done", {"start": wanted["start"], "end": wanted["end"], "recorded": meant})

    def _copied(self, job: RepairJob) -> bytes:
        """Rows that say what they said before: their place in the window, or the entries that they lead to, is told by
        the facts alone.
        """
        if job.own is None:
            raise RepairFault("source_lost", "the segment's own rows are gone")
        group = self._groups[job.request.group].bound
        start, end = _span(job.request.wanted)
        return _read(self._memory, group, [_part(job.own)], start, end)

    def _forward(self, job: RepairJob) -> bytes:
        """Rows of a window or a compressor state, from a pass of the model over the last tokens."""
        group, length = self._groups[job.request.group], job.request.length
        cache = self._passed(job, max(0, length - self._reach(job)), length)
        return self._state.rows(cache, group.id, *_span(job.request.wanted))

    def _reach(self, job: RepairJob) -> int:
        """How far before the length the pass begins: far enough for every state that will be asked of it too."""
        length, exact = job.request.length, job.request.wanted.get("exactness") != "approximate"
        asked = {job.request.group}
        for group in self._groups.values():
            idle = group.idle is not None and group.idle(length)
            held = any(source.facts.get("end") == length for source in job.held[group.id])
            if group.bound.object == "compressor_state" and not idle and not held:
                asked.add(group.id)
        return max(reach(self._groups[group].bound.constants, length, exact=exact) for group in asked)

    def _passed(self, job: RepairJob, first: int, length: int) -> Any:
        """A live cache behind such a pass; the last one serves again where it began early enough."""
        history = {
            group: tuple(source for source in sources if source.extent.blocks)
            for group, sources in job.held.items()
            if self._groups[group].bound.object in HISTORY
        }
        of = (
            tuple(job.tokens[:length]),
            tuple(
                (group, source.extent, source.facts.get("recorded")) for group in history for source in history[group]
            ),
        )
        last = self._last
        if last is not None and last.of == of and last.start <= first:
            return last.cache
        parts = {group: [_part(source) for source in sources] for group, sources in history.items()}
        try:
            cache = warmed(
                self._model, self._state, self._memory, self._groups.values(), parts, job.tokens, (first, length)
            )
        except InternalError as error:
            raise RepairFault("source_lost", str(error)) from error
        self._last = _Pass(of, first, cache)
        return cache


def _read(memory: TorchMemory, group: Any, parts: list[Part], start: int, end: int) -> bytes:
    try:
        return assembled(memory, group, parts, start, end)
    except InternalError as error:
        raise RepairFault("source_lost", str(error)) from error


def _part(source: Source) -> Part:
    start, end = _span(source.facts)
    return start, end, source.extent


def _span(facts: Mapping[str, Any]) -> tuple[int, int]:
    start, end = facts.get("start"), facts.get("end")
    if not isinstance(start, int) or not isinstance(end, int):
        raise RepairFault("failed", f"a span of [{start}, {end}) is none")
    return start, end
