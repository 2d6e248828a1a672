"""What the gate costs a request: look-ups and inserts of SGLang's own cache and of the gated one, in turns.

Run as `SGLANG_PLATFORM=plain_cpu python -m tests.integrations.sglang.overhead`. It counts processor time, so that other
work on the machine does not. Rows are short, 8 numbers a head: measuring reads every byte of a hit once.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from tests.integrations.sglang.plain_cpu.plain_cpu.memory import unpin

WAYS: dict[str, Any] = {"without": None, "never": "never", "sampled": "sampled", "use": "use"}
PAGES = (16, 256, 2048)
TURNS = 60


def main() -> None:
    """Print median and quartiles for each length of a hit."""
    unpin()
    from .small_cache import PAGE, SmallCache

    print(f"pages of {PAGE} tokens, full and window rows; microseconds of processor time: median (quartiles)")
    print("pages measured   pages of a hit   request of that hit and one new page")
    for count in PAGES:
        caches = {way: SmallCache(verify, 2 * (count + 8 * TURNS) * PAGE) for way, verify in WAYS.items()}
        prompt = tuple(range(count))
        took: dict[str, list[float]] = {way: [] for way in WAYS}
        for small in caches.values():
            small.values = False
            small.serve(prompt)
        for turn in range(TURNS):
            for way, small in caches.items():
                took[way].append(_took(partial(small.serve, (*prompt, turn))))
        for way, samples in took.items():
            low, middle, high = statistics.quantiles(samples, n=4)
            print(f"{way:14s} {count:16d}   {middle:8.0f} ({low:.0f} to {high:.0f})", flush=True)


def _took(act: Callable[[], Any]) -> float:
    began = time.process_time()
    act()
    return (time.process_time() - began) * 1e6


if __name__ == "__main__":
    main()
