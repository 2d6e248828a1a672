"""A key tells apart, in every tier, what an identity check tells apart; where something is unknown there is none."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitproof.engine.keys import request_key, segment_key, token_digests
from hitproof.spec.bound import BoundGroup
from hitproof.spec.condition import reads
from tests.engine.state_cases import SHIPPED, Build, bound_to, build_of

TIERS = ("device", "host", "disk")
TOKENS = token_digests(range(2000))
HELD = [(name, group.id) for name in (*SHIPPED, "pooled", "windowed") for group in bound_to(name).groups]


def build(name: str, **request: object) -> Build:
    """A state whose first picture lies at token 100."""
    made = build_of(name, 1025)
    for fact, value in {"media_from": 100, **request}.items():
        setattr(made.request, fact, value)
    return made


def asked(group: BoundGroup, tier: str, made: Build, end: int) -> str | None:
    """The key by which the request asks."""
    return request_key(group, tier, made.request, end, TOKENS)


def identity_of(group: BoundGroup) -> list[str]:
    """Request facts that the group's identity checks compare, but for where media begin."""
    paths = {path for check in group.checks if check.layer == "identity" for path in reads(check.require)}
    return sorted(path.removeprefix("request.") for path in paths if path.startswith("request."))


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize(("name", "group"), HELD)
def test_each_identity_fact_changes_the_key(name: str, group: str, tier: str) -> None:
    """Flipping any one fact that an identity check reads gives another key, of the request and of the segment."""
    bound = bound_to(name).group(group)
    made = build(name)
    segment = made.segment(group)
    key = asked(bound, tier, made, segment.end)
    assert key is not None
    assert segment_key(bound, tier, segment, TOKENS) == key
    assert identity_of(bound)
    for fact in identity_of(bound):
        flipped = 99 if fact == "media_from" else "another"
        other = build(name, **{fact: flipped})
        assert asked(bound, tier, other, segment.end) not in (key, None), fact
        written = build(name, **{fact: flipped}).segment(group, end=segment.end)
        assert segment_key(bound, tier, written, TOKENS) == asked(bound, tier, other, segment.end)


@pytest.mark.parametrize("tier", TIERS)
def test_the_tokens_the_end_and_the_group_change_the_key(tier: str) -> None:
    """Other tokens, another end or another group are another key; ranks are groups of their own."""
    made, ranks = build("two-ranks"), bound_to("two-ranks").groups
    keys = {asked(group, tier, made, end) for group in ranks for end in (64, 65)}
    keys.add(request_key(ranks[0], tier, made.request, 64, token_digests([7] * 2000)))
    assert len(keys) == 2 * len(ranks) + 1


def test_a_picture_behind_the_end_takes_no_part() -> None:
    """Up to the first picture the key holds none; from the first row of the picture on it does."""
    group = bound_to("homogeneous").group("kv")
    one, two = build("homogeneous", media="a"), build("homogeneous", media="b")
    assert asked(group, "disk", one, 100) == asked(group, "disk", two, 100)
    assert asked(group, "disk", one, 101) != asked(group, "disk", two, 101)


def test_look_ahead_reaches_into_the_key() -> None:
    """A group that looks ahead is found only where the tokens that it has seen agree too."""
    group = bound_to("homogeneous").group("kv")
    (key,) = (key for key in _looking_ahead(3).keys if key.tier == "host")
    ahead = replace(group, keys=(key,))
    made = build("homogeneous")
    changed = token_digests([*range(66), 0, *range(67, 2000)])
    assert request_key(group, "host", made.request, 64, TOKENS) == request_key(group, "host", made.request, 64, changed)
    assert request_key(ahead, "host", made.request, 64, TOKENS) != request_key(ahead, "host", made.request, 64, changed)
    assert request_key(ahead, "host", made.request, 64, token_digests(range(66))) is None


def _looking_ahead(tokens: int) -> BoundGroup:
    from hitproof.rules.bind import bind_rulebook
    from tests.engine.state_cases import small_profile

    profile = small_profile("homogeneous")
    assert profile is not None
    (group,) = profile.groups
    group = group.model_copy(update={"constants": {**group.constants, "lookahead": tokens}})
    return bind_rulebook(bound_to("homogeneous").rulebook, profile.model_copy(update={"groups": (group,)})).group("kv")


class TestNoKey:
    """Where anything is missing there is no key, so that nothing is equal to it."""

    @pytest.mark.parametrize("fact", ["weights", "attention_config", "adapter", "media", "media_from", "salt", "end"])
    def test_an_unknown_field_leaves_no_key(self, fact: str) -> None:
        """Of a segment, and of a request."""
        made, group = build("homogeneous"), bound_to("homogeneous").group("kv")
        assert segment_key(group, "host", made.segment("kv", **{fact: None}), TOKENS) is None
        if fact != "end":
            assert asked(group, "host", build("homogeneous", **{fact: None}), 200) is None

    def test_what_is_not_published_has_no_key(self) -> None:
        """Nothing leads to a segment that was cut back."""
        made, group = build("homogeneous"), bound_to("homogeneous").group("kv")
        assert segment_key(group, "device", made.segment("kv"), TOKENS) is not None
        assert segment_key(group, "device", made.segment("kv", published=False), TOKENS) is None

    def test_a_tier_without_keys_has_none(self) -> None:
        """Nothing is found nowhere."""
        made, group = build("homogeneous"), bound_to("homogeneous").group("kv")
        assert segment_key(group, "nowhere", made.segment("kv"), TOKENS) is None
        assert asked(group, "nowhere", made, 64) is None

    def test_a_prompt_that_is_shorter_than_the_key_has_none(self) -> None:
        """The key of 64 tokens is no business of a prompt of 63."""
        made, group = build("homogeneous"), bound_to("homogeneous").group("kv")
        assert request_key(group, "device", made.request, 64, token_digests(range(63))) is None


FIELDS = ("weights", "attention_config", "adapter", "media", "salt")
VALUES = st.one_of(st.text(max_size=3), st.integers(-2, 2))


@given(st.tuples(*[VALUES] * 5), st.tuples(*[VALUES] * 5), st.tuples(st.integers(0, 70), st.integers(0, 70)))
def test_equal_keys_are_equal_fields(one: tuple[Any, ...], other: tuple[Any, ...], begins: tuple[int, int]) -> None:
    """No text moves into a neighbouring field, `1` is no `"1"`, and a picture counts from its first token on."""
    group = bound_to("homogeneous").group("kv")

    def told(values: tuple[Any, ...], start: int) -> tuple[object, ...]:
        typed = [(type(value).__name__, value) for value in values]
        media = (typed[3], start) if start < 64 else None
        return *typed[:3], typed[4], media

    keys = [
        asked(group, "disk", build("homogeneous", **dict(zip(FIELDS, values, strict=True)), media_from=start), 64)
        for values, start in ((one, begins[0]), (other, begins[1]))
    ]
    assert None not in keys
    assert (keys[0] == keys[1]) == (told(one, begins[0]) == told(other, begins[1]))


@given(st.lists(st.integers(0, 2**64 - 1), max_size=20), st.integers(-2, 22))
def test_a_token_digest_is_of_the_leading_tokens(tokens: list[int], count: int) -> None:
    """Eight bytes a token, in order; no digest of more tokens than there are."""
    digest: Callable[[int], str | None] = token_digests(tokens)
    if not 0 <= count <= len(tokens):
        assert digest(count) is None
        return
    content = b"".join(token.to_bytes(8, "little") for token in tokens[:count])
    assert hashlib.blake2b(content, digest_size=32).hexdigest() == digest(count) == digest(count)


def test_the_format_of_a_key_stays() -> None:
    """A store on disk outlives a release: the same facts give the same key in each."""
    made, group = build("homogeneous"), bound_to("homogeneous").group("kv")
    assert "736bae882fd66a7fc56dcc3250ab3e214857c0b7298004a61d487191292cadcb" == asked(group, "disk", made, 64)
