"""Random states for a judge of plans: poisoned hits of any model, at rates that make now this repair dear, now that."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from hitproof.rules.profiles import shipped_profiles
from tests.engine.state_cases import SMALL, Build, engine_of, random_build

__all__ = ["MODELS", "poisoned"]

MODELS = (*shipped_profiles(), *SMALL)
_RATES = {
    "host_us_per_byte": (1, 1, 30, 1000),
    "disk_us_per_byte": (1, 1, 30, 0.1),
    "layer_us_per_token": (1, 1, 0.01, 20),
    "device_us_per_byte": (1, 1, 1000),
    "launch_us": (1, 1, 0, 50),
}
"""Factors by which a rate may differ from the stated one."""


def poisoned(first: int, count: int) -> Iterator[tuple[int, Build]]:
    """Seeded states whose door facts are known: missing, stale, torn, demoted, of other shards, in pieces, unknown."""
    for seed in range(first, first + count):
        random = Random(seed)
        build = random_build(engine_of(random.choice(MODELS)), random)
        for rate, factors in _RATES.items():
            stated = getattr(build.runtime, rate)
            if stated is not None:
                setattr(build.runtime, rate, stated * random.choice(factors))
        if all(getattr(build.request, name) is not None for name in build.bound.rulebook.door):
            yield seed, build
