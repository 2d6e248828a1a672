"""The generated engine and the plain reading of the same rules give the same decisions."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from hitproof.engine.candidates import proposed_lengths
from hitproof.engine.decide import Engine
from hitproof.engine.plain import plain_decide, plain_lengths
from hitproof.engine.state import Resolved
from hitproof.rules.bind import bind_rulebook
from hitproof.rules.profiles import load_profile
from hitproof.rules.resolve import resolve
from hitproof.rules.source import read_source
from hitproof.spec.decision import Decision
from tests.engine.state_cases import SHIPPED, SMALL, engine_of, random_build, small_profile

TOLD = ("verdict", "logical", "usable", "plan", "failed", "dispositions", "flags", "digest")
QUICK = ("verdict", "logical", "usable", "plan", "cost_us", "total_us")
"""What a decision without explanation tells."""

FREE = "runtime.launch_us"
VARIANTS: dict[str, list[tuple[tuple[str | int, ...], Any]]] = {
    "regular boundaries": [(("objects", "full_kv", "resumable"), {"every": "16"})],
    "one price for all": [
        *(
            (("every_object", "recovery", name, "cost"), FREE)
            for name in ("verify", "bounce", "relayout", "requantize")
        ),
        (("objects", "uncompressed_tail", "recovery", "warm_up", "cost"), FREE),
        (("objects", "uncompressed_tail", "recovery", "roll", "cost"), FREE),
        (("objects", "compressor_state", "recovery", "warm_up", "cost"), FREE),
        (("objects", "compressor_state", "recovery", "rebuild_state", "cost"), FREE),
        (("objects", "routing_index", "recovery", "remap", "cost"), FREE),
        (("objects", "routing_index", "recovery", "rebuild_keys", "cost"), FREE),
    ],
    "a set that grows": [
        (("objects", "compressor_state", "recovery", "rebuild_state", "resets"), None),
        (("objects", "compressor_state", "recovery", "rebuild_state", "adds"), {"marks": "length"}),
    ],
    "a repair that spoils what held": [(("every_object", "recovery", "bounce", "sets", "layout"), None)],
    "identity that asks a peer": [
        (
            ("objects", "routing_index", "checks", "same_index_config", "require"),
            "self.index_config == request.index_config and kv.weights == request.weights",
        )
    ],
}
"""Edits of the shipped rulebook that use what it leaves unused."""


def random_state(engine: Engine, random: Random) -> Resolved:
    """A random state; mostly all tokens match, sometimes fewer or more than were asked; seldom an old graph asks."""
    build = random_build(engine, random)
    if random.random() < 0.02:
        build.request.captured, build.request.graph_epoch = True, 0
    return build.state(random.choice([None, None, None, 0, (build.length - 1) // 2, 2**40]))


def differences(engine: Engine, state: Resolved) -> tuple[Decision, list[str]]:
    """The engine's decision, and where the plain one or the one without explanation differs from it."""
    fast, quick = engine.decide(state), engine.decide(state, explain=False)
    plain = plain_decide(engine.bound, state)
    found = [name for name in TOLD if getattr(fast, name) != getattr(plain, name)]
    found += [name for name in ("cost_us", "total_us") if getattr(fast, name) != pytest.approx(getattr(plain, name))]
    found += [f"quick {name}" for name in QUICK if getattr(fast, name) != getattr(quick, name)]
    return fast, found


@settings(max_examples=600, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(SHIPPED), st.randoms(use_true_random=False))
def test_shipped_profiles_are_decided_alike(name: str, random: Random) -> None:
    """Any healthy state with up to three faults, in pieces or checkpoints, is decided alike by both readings."""
    engine = engine_of(name)
    decision, found = differences(engine, random_state(engine, random))
    event(decision.verdict)
    assert [] == found


@pytest.mark.parametrize("name", SMALL)
def test_small_profiles_are_decided_alike(name: str) -> None:
    """The same for models of four layers, in which short prompts reach every recovery option."""
    engine = engine_of(name)
    for seed in range(150):
        _, found = differences(engine, random_state(engine, Random(f"{name} {seed}")))
        assert (seed, []) == (seed, found)


@pytest.mark.parametrize("variant", VARIANTS)
def test_other_rulebooks_are_decided_alike(variant: str) -> None:
    """So are rulebooks with regular boundaries, equal prices, growing sets, bad repairs, and identity of a peer."""
    source = read_source("mixed_attention")
    for path, value in VARIANTS[variant]:
        source, _ = source.edited(path, value)
    rulebook = resolve(source)
    for name in (*SHIPPED, "windowed", "pooled"):
        engine = Engine(bind_rulebook(rulebook, small_profile(name) or load_profile(name)))
        for seed in range(40):
            _, found = differences(engine, random_state(engine, Random(f"{name} {seed}")))
            assert (name, seed, []) == (name, seed, found)


def test_the_comparison_is_not_vacuous() -> None:
    """A fixed sample meets every verdict, clamped lengths, plans of several steps and every recovery option."""
    seen: Counter[str] = Counter()
    for seed in range(3000):
        random = Random(seed)
        name = random.choice((*SHIPPED, *SMALL))
        decision = engine_of(name).decide(random_state(engine_of(name), random))
        seen[decision.verdict] += 1
        seen["clamped"] += decision.clamped
        seen["several steps"] += len(decision.plan) > 1
        seen["quarantine"] += "quarantine" in decision.dispositions.values()
        seen["purge"] += "purge" in decision.dispositions.values()
        seen.update(decision.flags)
        seen.update({step.option for step in decision.plan})
    wanted = {"miss", "reuse", "repair", "rebuild", "recompute", "refuse", "clamped", "several steps", "purge"}
    wanted |= {"quarantine", "eager", "copy_on_write"}
    wanted |= {
        option.id
        for name in (*SHIPPED, *SMALL)
        for group in engine_of(name).judge.groups
        for option in group.bound.options
    }
    assert set() == {name for name in wanted if not seen[name]}


@pytest.mark.parametrize("name", [*SHIPPED, *SMALL])
def test_the_same_lengths_are_proposed(name: str) -> None:
    """Candidates by merging are those by trying every number."""
    engine = engine_of(name)
    for seed in range(40):
        state = random_state(engine, Random(f"{name} {seed}"))
        if state.request.length is not None and state.request.granularity is not None:
            assert plain_lengths(state) == proposed_lengths(state)
