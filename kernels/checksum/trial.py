"""`checksum` on rows at any place: what is measured is compared with plain loops."""

from __future__ import annotations

from functools import partial

from hitproof.kernels.jobs import Job
from hitproof.kernels.selftest.sizes import Size, random_rows, sizes
from hitproof.kernels.selftest.trial import Setup, Trial, held_rows, request_for

__all__ = ["trials"]


def trials() -> list[Trial]:
    """Every size, where kernels want rows and at odd bytes."""
    return [
        Trial("checksum", f"{size.name}{place}", size.dtype, size.geometry.layout, partial(_build, size, odd=odd))
        for size in sizes()
        for place, odd in (("", False), (", at an odd byte", True))
    ]


def _build(size: Size, *, odd: bool) -> Setup:
    geometry = size.elsewhere if odd else size.geometry
    held = held_rows(random_rows(size), geometry, size.form, first=size.geometry.rows // 3)
    return Setup(request_for("checksum", held, None), Job(held, None))
