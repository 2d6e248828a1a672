"""Serves prompts through HiCache with pages in files, damages the files, and writes down what came out.

Run `python -m tests.integrations.sglang.serve_pages OUT.json sealed|plain` beside SGLang and `plain_cpu`.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.integrations.sglang.serve_story import ON_A_CPU, flush, prompts, served
from tests.integrations.sglang.tiny_model import PAGE, VOCABULARY, make_model


def settled(folder: Path) -> None:
    """Wait until no page was written for some seconds."""
    seen: list[tuple[str, int]] = []
    quiet = 0
    while quiet < 3 or not seen:
        time.sleep(1.0)
        now = sorted((file.name, file.stat().st_mtime_ns) for file in folder.glob("*.bin"))
        quiet = quiet + 1 if now == seen else 0
        seen = now


def damage(folder: Path) -> None:
    """The last quarter of every page is shifted by some numbers."""
    for file in folder.glob("*.bin"):
        page = file.read_bytes()
        cut = len(page) - 1024
        file.write_bytes(page[:cut] + page[cut + 64 :] + page[cut : cut + 64])


def story(engine: Any, folder: Path) -> dict[str, Any]:
    """Prompts computed cold, from files, and from damaged files."""
    asked = prompts(VOCABULARY)
    told = {"cold": [served(engine, prompt) for prompt in asked]}
    settled(folder)
    flush(engine)
    told["warm"] = [served(engine, prompt) for prompt in asked]
    settled(folder)
    flush(engine)
    damage(folder)
    # Window pages are asked for once the full ones are in order, so bad ones are found one turn later.
    for turn in ("struck", "again", "after"):
        told[turn] = [served(engine, prompt) for prompt in asked]
        settled(folder)
        flush(engine)
    return told


def main(out: Path, way: str) -> None:
    """Build the model and the engine, tell the story, write it down."""
    import sglang

    os.environ["SGLANG_PLATFORM"] = "plain_cpu"
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "pages"
        engine = sglang.Engine(model_path=str(make_model(Path(scratch) / "model")), **options(folder, way))
        try:
            out.write_text(json.dumps(story(engine, folder)))
        finally:
            engine.shutdown()


def options(folder: Path, way: str) -> dict[str, Any]:
    """SGLang's options: pages in files of a folder, sealed or SGLang's own."""
    storage: dict[str, Any] = {"file_storage_path": str(folder), "prefetch_threshold": PAGE}
    if way == "sealed":
        module = "hitproof.integrations.sglang.storage"
        storage |= {"backend_name": "hitproof", "module_path": module, "class_name": "SealedFile"}
    return {
        "enable_hierarchical_cache": True,
        "hicache_ratio": 2.0,
        "hicache_io_backend": "direct",
        "hicache_mem_layout": "layer_first",
        "hicache_write_policy": "write_through",
        "hicache_storage_backend": "dynamic" if way == "sealed" else "file",
        "hicache_storage_prefetch_policy": "wait_complete",
        "hicache_storage_backend_extra_config": json.dumps(storage),
        **ON_A_CPU,
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
