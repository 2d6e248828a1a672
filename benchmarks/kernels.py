"""How many bytes a second the readable kernels move and sum on this processor, beside a checksum and a plain copy."""

from __future__ import annotations

import zlib
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from benchmarks.timing import Sample, sample

if TYPE_CHECKING:
    from hitproof.kernels.blocks import Geometry

__all__ = ["run"]

BYTES = 1 << 26


def run(runs: int = 7) -> None:
    """Prints one line a kernel and page; each moves or reads about 64 MiB on one thread."""
    if find_spec("torch") is None:
        print("kernels: torch is not installed (pip install 'hitproof[kernels]')")
        return
    import torch

    from hitproof.kernels.blocks import Geometry

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    print(f"kernels on torch {torch.__version__}, one thread, {BYTES >> 20} MiB, random tables")
    try:
        for name, geometry in (
            ("64 rows x 584 bytes", Geometry(64, 1, 584, block_bytes=37_440)),
            ("16 rows x 8 x 256 bytes", Geometry(16, 8, 256)),
            ("16 rows x 8 x 256, by head", Geometry(16, 8, 256, "head_major")),
        ):
            _page(name, geometry, runs)
    finally:
        torch.set_num_threads(threads)


def _page(name: str, geometry: Geometry, runs: int) -> None:
    import torch

    from hitproof.kernels.blocks import gather, pool_of
    from hitproof.kernels.checksum import fingerprint
    from hitproof.kernels.promote import promote

    row = geometry.heads * geometry.cell_bytes
    blocks = BYTES // (geometry.rows * row)
    count = blocks * geometry.rows
    draw = torch.Generator().manual_seed(1)
    staging, target = pool_of(geometry, blocks), pool_of(geometry, blocks)
    staging.buffer.random_(generator=draw)
    held, table = torch.randperm(blocks, generator=draw), torch.randperm(blocks, generator=draw)
    rows = gather(staging, held, count)
    flat = rows.view(-1)
    into = torch.empty_like(flat)
    raw = flat.numpy()

    def told(what: str, timed: Sample) -> None:
        low, middle, high = (
            flat.numel() / second / 1e9 for second in (timed.seconds[-1], timed.middle, timed.seconds[0])
        )
        print(f"  {name:28} {what:20} {middle:6.2f} GB/s ({low:.2f} to {high:.2f})")

    told("promote, verified", sample(lambda: promote(staging, held, target, table, count), runs))
    told("gather", sample(lambda: gather(staging, held, count), runs))
    told("checksum", sample(lambda: fingerprint(rows), runs))
    told("zlib.crc32", sample(lambda: zlib.crc32(raw), runs))
    if find_spec("xxhash") is not None:
        xxhash = import_module("xxhash")
        told("xxhash xxh3_64", sample(lambda: xxhash.xxh3_64_intdigest(raw), runs))
    told("plain copy", sample(lambda: into.copy_(flat), runs))
