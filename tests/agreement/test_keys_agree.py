"""The engine's keys and the verifier's axiom of equal keys say the same of a segment and a request."""

from __future__ import annotations

from typing import Any

import z3
from hypothesis import given, settings
from hypothesis import strategies as st

from hitproof.engine.keys import request_key, segment_key
from hitproof.verification.axioms.keys import same_key
from hitproof.verification.encode import Z3Fact, encode_number
from hitproof.verification.model import World
from tests.engine.state_cases import bound_to, build_of

FIELDS = ("weights", "attention_config", "adapter", "media", "salt")
BOUND = bound_to("pooled")
VALUE = st.sampled_from([None, 1, 1, 1, 1, 2])
NUMBER = st.sampled_from([None, 0, 40, 63, 64, 65])
SIDE = st.fixed_dictionaries({**dict.fromkeys((*FIELDS, "seed"), VALUE), "media_from": NUMBER})


def engine_says(tier: str, own: dict[str, Any], asked: dict[str, Any], matched: int | None, end: int) -> bool:
    """Both have a key, and the keys are one text."""
    group, build = BOUND.group("entries"), build_of("pooled", 257)
    for fact, value in asked.items():
        setattr(build.request, "compression_seed" if fact == "seed" else fact, value)
    segment = build.segment("entries", start=0, end=end, matched=matched, **own)

    def tokens(count: int) -> str:
        return f"{count} tokens" if matched is not None and count <= matched else f"{count} others"

    key = segment_key(group, tier, segment, "{} tokens".format)
    return key is not None and key == request_key(group, tier, build.request, end, tokens)


def axiom_says(tier: str, own: dict[str, Any], asked: dict[str, Any], matched: int | None, end: int) -> bool:
    """The formula with every fact replaced by its value."""
    world = World(BOUND)
    model = world.group("entries")
    key = next(one for one in model.group.keys if one.tier == tier)
    ctx = world.ctx

    def constant(value: int | None) -> Z3Fact:
        return Z3Fact(z3.IntVal(value or 0, ctx=ctx), z3.BoolVal(value is not None, ctx=ctx))

    def request(path: str) -> Z3Fact:
        name = path.partition(".")[2]
        return constant(asked["seed" if name == "compression_seed" else name])

    def other(name: str) -> Z3Fact:
        if name not in key.fields:
            return request(f"request.{name}")
        return Z3Fact(*encode_number(key.fields[name], request, ctx=ctx))

    known = constant(matched)
    parts = same_key(
        key,
        ctx,
        z3.IntVal(end, ctx=ctx),
        lambda name: constant(own[name]),
        other,
        lambda tokens: z3.And(known.known, tokens <= known.value),
    )
    return bool(z3.is_true(z3.simplify(z3.And(parts))))


@settings(max_examples=150)
@given(
    st.sampled_from(["device", "host", "disk"]),
    SIDE,
    st.dictionaries(st.sampled_from([*FIELDS, "seed"]), VALUE, max_size=2),
    NUMBER,
    st.sampled_from([None, 0, 63, 64, 65]),
)
def test_both_call_the_same_keys_equal(
    tier: str, own: dict[str, Any], changed: dict[str, Any], begins: int | None, matched: int | None
) -> None:
    """Whatever is known of either side, and however many tokens agree."""
    asked = {**own, **changed, "media_from": begins}
    assert axiom_says(tier, own, asked, matched, 64) is engine_says(tier, own, asked, matched, 64)
