"""Whatever happens to what is stored, in any order: every prompt is answered as by a cold run."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
pytest.importorskip("transformers", minversion="5.24")

from hitproof.integrations.transformers import PrefixCache  # noqa: E402
from hitproof.integrations.transformers.running import run  # noqa: E402
from hitproof.integrations.transformers.tiny import NAMES, random_tokens  # noqa: E402
from tests.integrations.transformers.caches import TOKENS, cache_of  # noqa: E402
from tests.integrations.transformers.live import error, made  # noqa: E402

BRANCHES = [random_tokens(200, seed)[0].tolist() for seed in (50, 51)]
VALID = dict.fromkeys(NAMES, 1e-3) | {"qwen3-next": 3e-2}
"""Of the logits' spread. Qwen3-Next's own live caches differ from a cold run by up to 6e-3 where a prompt is computed
in two passes; the mildest fault that is looked for, in any model, differs by 6e-2."""
LENGTHS = st.integers(2, 200)
PROMPTS = st.tuples(LENGTHS, st.sampled_from([None, 0, 1]), LENGTHS)
"""Leading tokens that are shared by all, which branch follows, and how many tokens of it."""
ASKED = st.tuples(st.just("ask"), PROMPTS, st.lists(LENGTHS, max_size=2))
DONE = st.tuples(
    st.sampled_from(["evict", "demote", "spill", "damage", "cut", "defragment", "housekeep"]), st.integers(0, 10**6)
)


def tokens(prompt: tuple[int, int | None, int]) -> tuple[int, ...]:
    """The tokens of a drawn prompt."""
    shared, branch, more = prompt
    return tuple(TOKENS[:shared] if branch is None else [*TOKENS[:shared], *BRANCHES[branch][:more]][:260])


@lru_cache(maxsize=64)
def cold(name: str, prompt: tuple[int, ...]) -> Any:
    """Logits of a run from the first token on."""
    tiny, state = made(name)
    return run(tiny.model, list(prompt), state.fresh())


def happens(prefix: PrefixCache, what: str, draw: int) -> None:
    """Let something happen to one of the segments, or to all of them."""
    manager = prefix.manager
    slots = [slot for group in prefix.engine.bound.groups for slot in manager.slots(group.id)]
    if what == "housekeep":
        manager.housekeep()
    elif what == "defragment":
        manager.defragment(prefix.state.groups[draw % len(prefix.state.groups)])
    elif slots:
        slot = slots[draw % len(slots)]
        if what == "damage" and slot.extent is not None and slot.extent.rows:
            payload = bytearray(prefix.memory.read(slot.extent))
            payload[draw % len(payload)] ^= 0x55
            prefix.memory.write(slot.extent, 0, payload)
        elif what == "cut" and slot.group.object in ("full_kv", "uncompressed_tail") and slot.facts.form != "demoted":
            manager.rollback(slot, slot.facts.start + draw % (slot.facts.end - slot.facts.start + 1))
        elif what == "evict":
            manager.evict(slot)
        elif what == "demote" and slot.facts.form == slot.group.home and slot.extent is not None:
            manager.demote(slot)
        elif what == "spill" and slot.facts.form == "demoted":
            manager.spill(slot)


@pytest.mark.parametrize("inputs", [False, True])
@pytest.mark.parametrize("name", NAMES)
@settings(
    max_examples=4, deadline=None, phases=[Phase.explicit, Phase.generate], suppress_health_check=[HealthCheck.too_slow]
)
@given(steps=st.lists(st.one_of(ASKED, DONE), min_size=4, max_size=14), dear=st.booleans())
def test_every_prompt_is_answered_as_by_a_cold_run(
    tmp_path_factory: pytest.TempPathFactory, name: str, inputs: bool, steps: list[Any], dear: bool
) -> None:
    """Prompts that branch anywhere, boundaries anywhere, segments evicted, demoted, cut, moved and damaged between."""
    folder = tmp_path_factory.mktemp("store")
    runtime = {"prefill_us_per_token": 4000.0 if dear else 40.0}
    prefix = cache_of(name, layer_inputs=inputs, disk=str(folder), runtime=runtime, blocks=96)
    for step in steps:
        if step[0] != "ask":
            happens(prefix, step[0], step[1])
            continue
        prompt = tokens(step[1])
        served = prefix.prefill(prompt, boundaries=step[2])
        assert error(served.logits, cold(name, prompt)[served.usable :]) < VALID[name]
        prefix.manager.check_integrity()
    prefix.close()
