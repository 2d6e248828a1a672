"""How many block touches a second a replay decides, with all rules of the model and three tiers."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path

from benchmarks.timing import sample
from hitproof.engine.replay import replay
from hitproof.engine.trace import read_trace, synthesize
from hitproof.rules.bind import bind_rulebook
from hitproof.rules.profiles import load_profile
from hitproof.rules.resolve import load_rulebook

__all__ = ["run"]

MODELS = ("deepseek-v4-flash", "gemma-3-27b", "qwen3-next-80b-a3b")
CAPACITY, HOST, DISK = 10_000, 50_000, 200_000
SYNTHETIC_REQUESTS = 12_000


def run(runs: int = 3) -> None:
    """Prints one line a model and retention; `HITPROOF_TRACE` names a trace, without it one is drawn."""
    path = os.environ.get("HITPROOF_TRACE")
    source = read_trace(Path(path)) if path else synthesize(SYNTHETIC_REQUESTS, seed=7)
    requests = list(islice(source, 100_000))
    touches = sum(len(request.hash_ids) for request in requests)
    print(f"replay of {path or 'a synthetic trace'}: {len(requests):,} requests, {touches:,} block touches")
    rulebook = load_rulebook("mixed_attention")
    for model in MODELS:
        bound = bind_rulebook(rulebook, load_profile(model))
        for mode in rulebook.policy.retention:
            timed = sample(
                lambda bound=bound, mode=mode: replay(  # type: ignore[misc]
                    requests, bound, capacity=CAPACITY, host_blocks=HOST, disk_blocks=DISK, retention=mode
                ),
                runs,
            )
            print(f"  {model:20} {mode:18} {timed.rate(touches)}")
