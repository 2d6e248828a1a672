"""What a length needs, what the axioms say is read, and attention masks written out: three readings of one geometry."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
import z3
from hypothesis import given, settings
from hypothesis import strategies as st

from hitproof.rules.bind import bind_rulebook
from hitproof.rules.profiles import load_profile, shipped_profiles
from hitproof.rules.resolve import load_rulebook
from hitproof.spec.bound import BoundGroup
from hitproof.spec.condition import interpret
from hitproof.spec.profile import Profile
from hitproof.spec.rulebook import Rulebook
from hitproof.verification.axioms.reading_sets import POSITIONAL, reads

Mask = Callable[[int, int], bool]
"""Whether the query at a position attends to the key at another one."""


def full(query: int, key: int) -> bool:
    """Causal attention; native sparse attention may select any block, so it is the same."""
    return key <= query


def sliding(window: int) -> Mask:
    """A window that includes the query."""
    return lambda query, key: query - window < key <= query


def chunked(chunk: int) -> Mask:
    """History of one's own chunk."""
    return lambda query, key: key <= query and query // chunk == key // chunk


def compressed(ratio: int) -> Mask:
    """A token that is part of an entry which is complete before the query."""
    return lambda query, key: (key // ratio + 1) * ratio <= query


def read_by_masks(mask: Mask, length: int) -> set[int]:
    """Rows before a length that some query at or after it reads; no mask here reaches further for a later query."""
    return {key for key in range(length) if mask(length, key)}


@cache
def rulebook() -> Rulebook:
    """The shipped rulebook."""
    return load_rulebook("mixed_attention")


def bound(object_name: str, constants: dict[str, int]) -> BoundGroup:
    """A group with these constants."""
    groups: list[dict[str, object]] = [
        {
            "id": "one",
            "object": object_name,
            "layers": [0],
            "constants": {"row_bytes": 512, "receptive_field": 0, "row_tokens": constants.get("ratio", 1), **constants},
        },
        {"id": "edge", "object": "window_boundary", "layers": [0], "constants": {"window": 1}},
        {"id": "rows", "object": "full_kv", "layers": [0], "constants": {"row_bytes": 512}},
    ]
    profile = Profile.model_validate({"profile": "tiny", "title": "Tiny", "layers": 1, "groups": groups})
    return bind_rulebook(rulebook(), profile).group("one")


def needed(group: BoundGroup, length: int) -> set[int]:
    """Tokens that the rules ask for at a length."""
    facts = {"length": length}
    first, to = (interpret(node, facts) for node in (group.raw_first, group.raw_to))
    assert isinstance(first, int) and isinstance(to, int)
    return set(range(first, to))


def said(group: BoundGroup, length: int) -> set[int]:
    """Tokens that the axioms say are read at a length."""
    told = (reads(group.object, group.constants, z3.IntVal(length), z3.IntVal(at)) for at in range(length + 1))
    return {at for at, one in enumerate(told) if z3.is_true(z3.simplify(one))}


@pytest.mark.parametrize("length", range(14))
@pytest.mark.parametrize(
    ("object_name", "constants", "mask"),
    [
        ("full_kv", {}, full),
        ("uncompressed_tail", {"window": 1}, sliding(1)),
        ("uncompressed_tail", {"window": 5}, sliding(5)),
        ("uncompressed_tail", {"window": 4, "chunk": 4}, chunked(4)),
        ("uncompressed_tail", {"window": 1, "chunk": 1}, chunked(1)),
        ("compressed_global", {"ratio": 4}, compressed(4)),
        ("routing_index", {"ratio": 1}, compressed(1)),
        ("routing_index", {"ratio": 3}, compressed(3)),
    ],
    ids=lambda value: str(value) if isinstance(value, str | dict) else "",
)
def test_rules_axioms_and_masks_agree(object_name: str, constants: dict[str, int], mask: Mask, length: int) -> None:
    """At every small length the same rows are needed, said to be read, and attended to."""
    group = bound(object_name, constants)
    wanted = read_by_masks(mask, length)
    assert wanted == needed(group, length)
    assert wanted == said(group, length)


@settings(max_examples=60, deadline=None)
@given(chunk=st.integers(1, 9), length=st.integers(0, 40), later=st.integers(0, 20))
def test_no_later_query_reads_an_older_row(chunk: int, length: int, later: int) -> None:
    """What the query at a length reads is all that matters: later ones read less of what is before it."""
    for mask in (full, sliding(chunk), chunked(chunk)):
        assert {key for key in range(length) if mask(length + later, key)} <= read_by_masks(mask, length)


@settings(max_examples=60, deadline=None)
@given(chunk=st.integers(1, 12), length=st.integers(0, 60))
def test_a_window_of_one_chunk_that_is_cut_is_a_chunk(chunk: int, length: int) -> None:
    """Nothing is needed at a multiple of the chunk, and never more than one chunk less its last row."""
    group = bound("uncompressed_tail", {"window": chunk, "chunk": chunk})
    rows = needed(group, length)
    assert read_by_masks(chunked(chunk), length) == rows
    assert length % chunk == len(rows)


@pytest.mark.parametrize("name", shipped_profiles())
def test_shipped_groups_need_what_is_read(name: str) -> None:
    """In every shipped model, at lengths around the ends of its windows, chunks and entries."""
    for group in bind_rulebook(rulebook(), load_profile(name)).groups:
        if group.object not in POSITIONAL:
            continue
        step = int(group.constants.get("window", group.constants.get("ratio", 7)))
        for length in (1, step - 1, step, step + 1, 2 * step, 3 * step - 1, 17_384):
            if length <= 0:
                continue
            rows = needed(group, length)
            edges = {0, 1, length - 1, length, min(rows, default=0) - 1, min(rows, default=0), max(rows, default=0) + 1}
            for at in edges:
                told = reads(group.object, group.constants, z3.IntVal(length), z3.IntVal(at))
                assert (at in rows) is z3.is_true(z3.simplify(told)), (group.id, length, at)
