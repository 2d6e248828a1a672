"""Runs declared repairs on tensors: from a request and the rows that it is about to what was measured of the copy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

from hitproof.kernels.jobs import Done, Job, RepairFault
from hitproof.kernels.registry import AUTO, implementation, require_torch
from hitproof.spec.errors import TensorError
from hitproof.spec.repair import RepairOutcome, RepairRequest

__all__ = ["KernelRunner", "run_repair"]


@dataclass(frozen=True, slots=True)
class KernelRunner:
    """Runs any repair that has a kernel: what a recovery takes as its `RunRepair`.

    Args:
        find: The rows that a request is about, and free blocks for the copy.
        backend: Which implementation runs; `auto` for that of the device on which the rows lie.
    """

    find: Callable[[RepairRequest], Job]
    backend: str = AUTO

    def __call__(self, request: RepairRequest) -> RepairOutcome:
        """Run one repair.

        Raises:
            UsageError: No kernel has the repair's name, or what the backend needs is missing.
        """
        if self.backend != AUTO:
            implementation(request.repair, self.backend)
        began = perf_counter()
        try:
            done = run_repair(request, self.find(request), self.backend)
        except RepairFault as fault:
            return RepairOutcome(fault.status, {}, str(fault), perf_counter() - began)
        except TensorError as error:
            return RepairOutcome("failed", {}, str(error), perf_counter() - began)
        return RepairOutcome("done", done.measured, "", perf_counter() - began)


def run_repair(request: RepairRequest, job: Job, backend: str = AUTO) -> Done:
    """Run one repair and tell all that it made.

    Rows on another device than the backend's are copied there and what was written is copied back.

    Args:
        request: As the engine asks.
        job: Rows and free blocks.
        backend: Which implementation runs; `auto` for that of the device on which the rows lie.

    Raises:
        RepairFault: It cannot be done.
        HitproofError: No kernel has the name, or a tensor does not fit.
    """
    require_torch()
    from hitproof.kernels.backend import backend_on
    from hitproof.kernels.devices import device_of, moved

    place = device_of(job)
    chosen = backend_on(place) if backend == AUTO else backend
    run = implementation(request.repair, chosen)
    runs_on = "cuda" if chosen == "triton" else "cpu"
    if place == runs_on:
        done: Done = run(request, job)
        return done
    there, back = moved(job, runs_on)
    try:
        done = run(request, there)
    finally:
        # What was written before a fault is the caller's to see, as it would be without the copy.
        back()
    return done
