"""What the gate costs a request on a CPU: `overhead` runs an engine for each way of measuring and prints a table.

One warm prompt is looked up and served again and again. Times are of one machine and one tiny model, whose own work a
request takes about as long as the gate's; only their differences mean anything.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

WAYS = {"without": None, "never": "never", "sampled": "sampled", "use": "use"}
LENGTHS = (512, 1984)
TURNS = 100


def measured(folder: Path) -> list[dict[str, Any]]:
    """Times of look-ups in the cache manager, and of whole requests, in microseconds."""
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    from vllm import SamplingParams
    from vllm.v1.request import Request

    from tests.integrations.vllm.serving import core_of, engine, prompt

    llm = engine(folder / "gemma3", caching=True)
    core = core_of(llm)
    one_token = SamplingParams(temperature=0, max_tokens=1, detokenize=False, ignore_eos=True)
    told = []
    for length in LENGTHS:
        tokens = prompt(21, length)

        def served(tokens: list[int] = tokens) -> None:
            llm.generate([{"prompt_token_ids": tokens}], one_token, use_tqdm=False)

        def looked_up(tokens: list[int] = tokens) -> Callable[[], None]:
            request = Request("timed", list(tokens), one_token, None, block_hasher=core.request_block_hasher)
            return lambda: core.scheduler.kv_cache_manager.get_computed_blocks(request)

        served()
        look_ups = [_took(looked_up()) for _ in range(TURNS)]
        requests = [_took(served) for _ in range(TURNS)]
        told.append({"tokens": length, "look_up": _spread(look_ups), "request": _spread(requests)})
    return told


def main() -> None:
    """Measure each way in a process of its own, and print all."""
    from tests.integrations.vllm.tiny_models import make_gemma3

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_gemma3(folder / "gemma3")
        print("blocks measured  tokens   look-up, us: median (quartiles)     request, us: median (quartiles)")
        for way, flag in WAYS.items():
            environment = {**os.environ, "HITPROOF_VLLM": flag or "0"}
            command = [sys.executable, "-m", "tests.integrations.vllm.overhead", str(folder)]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            if done.returncode:
                sys.exit(done.stderr[-4000:])
            for row in json.loads((folder / "overhead.json").read_text("utf-8")):
                print(
                    f"{way:15s} {row['tokens']:7d}   {_shown(row['look_up']):34s}  {_shown(row['request'])}", flush=True
                )


def _took(act: Callable[[], Any]) -> float:
    began = time.perf_counter()
    act()
    return (time.perf_counter() - began) * 1e6


def _spread(samples: list[float]) -> list[float]:
    low, middle, high = statistics.quantiles(samples, n=4)
    return [middle, low, high]


def _shown(spread: list[float]) -> str:
    middle, low, high = spread
    return f"{middle:8.0f} ({low:.0f} to {high:.0f})"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        (Path(sys.argv[1]) / "overhead.json").write_text(json.dumps(measured(Path(sys.argv[1]))), "utf-8")
    else:
        main()
