"""What it costs to be told: the same decision unobserved, with counters, and with everything."""

from __future__ import annotations

from functools import partial

from benchmarks.decide import BLOCKS, CALLS, situation
from benchmarks.timing import sample
from hitproof.engine.decide import Engine
from hitproof.engine.observe import NOBODY, Counters, ObservedEngine, Observers, observe
from hitproof.engine.observe.observed import Decides
from hitproof.engine.state import Resolved
from hitproof.engine.tiers import DEVICE
from hitproof.rules.bind import bind_rulebook
from hitproof.rules.profiles import load_profile
from hitproof.rules.resolve import load_rulebook

__all__ = ["run"]

MODEL = "gemma-3-27b"


def run(runs: int = 5) -> None:
    """Prints one line an observer, for a warm hit, and for one that must be explained."""
    bound = bind_rulebook(load_rulebook("mixed_attention"), load_profile(MODEL))
    engine = Engine(bound)
    deciders: dict[str, Decides] = {
        "unobserved": engine,
        "told to nobody": ObservedEngine(engine, NOBODY),
        "counters": ObservedEngine(engine, Observers(Counters(bound))),
        "counters, thresholds, ring, log": ObservedEngine(engine, observe(bound).observer),
    }
    print(f"one observed decision of {MODEL}")
    for retention, explain in (("full", False), ("zero", True)):
        state = situation(bound, engine, retention, [(0, BLOCKS, DEVICE)])
        for name, decider in deciders.items():
            timed = sample(partial(_many, decider, state, explain=explain), runs)
            kind = "explained" if explain else "warm"
            print(f"  {kind:10} {name:32} {timed.each(CALLS)}")


def _many(decider: Decides, state: Resolved, *, explain: bool) -> None:
    for _ in range(CALLS):
        decider.decide(state, explain=explain)
