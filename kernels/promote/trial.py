"""`promote` out of staging buffers at odd bytes."""

from __future__ import annotations

from functools import partial

import torch

from hitproof.kernels.jobs import Job
from hitproof.kernels.promote.reference import Manifest
from hitproof.kernels.selftest.sizes import Size, random_rows, sizes
from hitproof.kernels.selftest.slow import slow_fingerprint
from hitproof.kernels.selftest.trial import COPY_TAGS, Setup, Trial, empty_copy, held_rows, request_for

__all__ = ["trials"]


def trials() -> list[Trial]:
    """Every size, from an odd byte and with an odd stride."""
    return [Trial("promote", size.name, size.dtype, size.geometry.layout, partial(_build, size)) for size in sizes()]


def _build(size: Size) -> Setup:
    rows = random_rows(size)
    staging = held_rows(rows, size.elsewhere, size.form, tags={"form": "demoted", "tier": "host", "published": True})
    target = empty_copy(size.geometry, size.form, size.count, layers=size.layers)
    manifest = Manifest(size.count, torch.ones(staging.table.numel(), dtype=torch.bool))
    told = {name: COPY_TAGS[name] for name in ("form", "tier", "published", "pool_epoch")}
    job = Job(staging, target, {"demoted_prefix": manifest})
    recorded = slow_fingerprint([rows[:, layer] for layer in range(size.layers)])
    return Setup(request_for("promote", staging, target, recorded=recorded), job, told, rows)
