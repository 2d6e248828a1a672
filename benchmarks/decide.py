"""How long one decision takes, by what the cache holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.timing import sample
from hitproof.engine.decide import Engine
from hitproof.engine.replay.retention import Retention
from hitproof.engine.replay.serving import Serving
from hitproof.engine.replay.stores import Run, store_of
from hitproof.engine.state import Resolved
from hitproof.engine.tiers import DEVICE, HOST
from hitproof.rules.bind import bind_rulebook
from hitproof.rules.profiles import load_profile
from hitproof.rules.resolve import load_rulebook
from hitproof.spec.bound import BoundRulebook

__all__ = ["BLOCKS", "CALLS", "run", "situation"]

MODELS = ("deepseek-v4-flash", "gemma-3-27b", "qwen3-next-80b-a3b")
BLOCKS, UNIT, CALLS = 32, 512, 200


def run(runs: int = 5) -> None:
    """Prints one line a model and situation: 32 matching blocks of 512 tokens, and a tail to compute."""
    rulebook = load_rulebook("mixed_attention")
    situations: dict[str, tuple[Retention, Sequence[Run]]] = {
        "warm": ("full", [(0, BLOCKS, DEVICE)]),
        "half on the host": ("full", [(0, BLOCKS // 2, HOST), (BLOCKS // 2, BLOCKS, DEVICE)]),
        "no window kept": ("zero", [(0, BLOCKS, DEVICE)]),
        "nothing matches": ("full", []),
    }
    print(f"one decision, {BLOCKS} blocks of {UNIT} tokens")
    for model in MODELS:
        bound = bind_rulebook(rulebook, load_profile(model))
        engine = Engine(bound)
        for name, (retention, runs_of_tiers) in situations.items():
            state = situation(bound, engine, retention, runs_of_tiers)
            verdict = engine.decide(state, explain=False).verdict
            timed = sample(lambda engine=engine, state=state: _many(engine, state), runs)  # type: ignore[misc]
            print(f"  {model:20} {name:18} {verdict:10} {timed.each(CALLS)}")


def _many(engine: Engine, state: Resolved) -> None:
    for _ in range(CALLS):
        engine.decide(state, explain=False)


def situation(bound: BoundRulebook, engine: Engine, retention: str, runs: Sequence[Run]) -> Resolved:
    """A request of 32 blocks and a tail, of which the cache holds what these runs say."""
    serving = Serving(bound, engine.types)
    kept = Retention(bound.rulebook.policy.retention, retention)
    matched = runs[-1][1] * UNIT if runs else 0
    pieces: dict[str, list[Any]] = {
        group.id: store_of(group, serving, kept, UNIT, {}).pieces(range(BLOCKS), runs, matched)
        for group in bound.groups
    }
    serving.request.length, serving.request.granularity = BLOCKS * UNIT + 100, UNIT
    return Resolved(serving.request, serving.runtime, serving.kernels, pieces, matched)
