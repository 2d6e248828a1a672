"""Times of one case: kernels alone and the whole repair, plain PyTorch as it is and compiled, and a copy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median
from time import perf_counter
from typing import Any

import torch

from hitproof.kernels.bench.cases import Case
from hitproof.kernels.bench.eager import EAGER
from hitproof.kernels.configs import INTERPRET, target_of
from hitproof.kernels.launching import recorded
from hitproof.kernels.run import run_repair
from hitproof.kernels.traffic import traffic_of

__all__ = ["Timing", "copy_rate", "measured"]


@dataclass(frozen=True, slots=True)
class Timing:
    """One case; times are medians, in microseconds, and None where nothing was timed.

    Args:
        name: Of the case.
        least: Bytes of rows and weights that must move, each once.
        asked: Bytes of all loads and stores of the kernels.
        products: Operations of matrix products.
        repair: The whole repair on the backend, checks and waiting for the device included.
        kernels: The kernels' launches alone, one after the other.
        eager: Plain PyTorch.
        compiled: The same behind `torch.compile`.
        share: What a copy of the least bytes would take, as a part of the kernels' time; of the repair's without any.
    """

    name: str
    least: int
    asked: int
    products: int
    repair: float
    kernels: float | None
    eager: float
    compiled: float | None
    share: float


def measured(case: Case, backend: str, rate: float, runs: int = 10) -> Timing:
    """Time one case where its rows lie.

    Args:
        case: What to run; its copy is overwritten.
        backend: Which implementation.
        rate: Bytes a second that a copy moves there, read and written.
        runs: How often each is timed, after one run that does not count.
    """
    request, job = case.request, case.job
    place = (job.target or job.own()).layers[0].buffer.device
    on_gpu = place.type != "cpu"
    traffic = traffic_of(request, job, target_of(place) if on_gpu else INTERPRET)
    time = partial(_seconds, on_gpu=on_gpu, runs=runs)
    eager = partial(EAGER[request.repair], request, job)
    repair = time(partial(run_repair, request, job, backend))
    alone = None
    if backend != "torch":
        with recorded() as launches:
            run_repair(request, job, backend)
        alone = time(partial(_all, launches))
    return Timing(
        name=case.name,
        least=traffic.least,
        asked=traffic.read + traffic.written,
        products=traffic.products,
        repair=1e6 * repair,
        kernels=None if alone is None else 1e6 * alone,
        eager=1e6 * time(eager),
        compiled=_compiled(request.repair, eager, time) if on_gpu else None,
        share=traffic.least / rate / (repair if alone is None else alone),
    )


def copy_rate(device: torch.device, size: int, runs: int = 10) -> float:
    """Bytes a second of a plain copy, those read and those written.

    Args:
        device: Where.
        size: Bytes to copy; more than its caches hold.
        runs: How often.
    """
    source, target = (torch.zeros(size, dtype=torch.uint8, device=device) for _ in range(2))
    return 2 * size / _seconds(partial(target.copy_, source), on_gpu=device.type != "cpu", runs=runs)


def _compiled(repair: str, eager: Callable[[], None], time: Callable[[Callable[[], Any]], float]) -> float | None:
    """Microseconds of plain PyTorch behind the compiler; None where it cannot compile it."""
    try:
        return 1e6 * time(torch.compile(eager))
    except Exception:
        # What a compiler does with code that is not ours to change is no fault of the measurement.
        return None


def _all(launches: list[Callable[[], None]]) -> None:
    for one in launches:
        one()


def _seconds(work: Callable[[], Any], *, on_gpu: bool, runs: int) -> float:
    """Median of several runs; on a GPU by its own clock, from the first launch to the end of the last."""
    work()
    if not on_gpu:
        found = []
        for _ in range(runs):
            began = perf_counter()
            work()
            found.append(perf_counter() - began)
        return median(found)
    marks: list[tuple[Any, Any]] = []
    for _ in range(runs):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        marks.append((begin, end))
    torch.cuda.synchronize()
    return median([float(begin.elapsed_time(end)) / 1e3 for begin, end in marks])
