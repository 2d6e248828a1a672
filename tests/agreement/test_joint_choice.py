"""The length that is reused jointly is the largest boundary of all groups, never the minimum of their largest ones."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

import pytest
import z3

from hitproof.spec.condition import reads
from hitproof.spec.facts import Fact
from hitproof.verification.encode import EnumSorts, Z3Fact, Z3Facts, encode
from tests.engine.state_cases import Build, bound_to, build_of

BOUNDARIES = (16, 32, 48, 64, 80, 96)
"""Bit b of a mask says that a group can resume at the b-th of these lengths, in tokens."""

GROUPS = ("kv", "rec", "other")
CASES = 2 ** (len(GROUPS) * len(BOUNDARIES))
LARGEST = [0, *(BOUNDARIES[mask.bit_length() - 1] for mask in range(1, 2 ** len(BOUNDARIES)))]
"""The largest boundary of each mask; 0 where it has none."""


def marks(mask: int) -> frozenset[int]:
    """The boundaries of a mask."""
    return frozenset(length for bit, length in enumerate(BOUNDARIES) if mask >> bit & 1)


def held(profile: str) -> Build:
    """A healthy prefix of 96 tokens in three groups that resume at stored boundaries only."""
    return build_of(profile, 97, 16).all()


@pytest.mark.parametrize("profile", ["stored", "stored-attention"])
def test_joint_length_is_the_largest_common_boundary(profile: str) -> None:
    """All 262,144 assignments of six boundaries to three groups: the usable length is that of the masks' intersection.

    One profile has recurrent states, whose boundaries are proposed, the other attention alone, whose rules refuse.
    """
    build = held(profile)
    one, two, three = (pieces[0] for pieces in build.pieces.values())
    state, decide = build.state(), build.engine.decide
    sets = [marks(mask) for mask in range(2 ** len(BOUNDARIES))]
    wrong = []
    cases = 0
    for a, b in product(range(len(sets)), repeat=2):
        one.marks, two.marks = sets[a], sets[b]
        for c, third in enumerate(sets):
            three.marks = third
            decision = decide(state, explain=False)
            cases += 1
            if decision.usable != LARGEST[a & b & c] or decision.logical != 96 or decision.plan:
                wrong.append((a, b, c, decision.usable))
    assert CASES == cases
    assert [] == wrong


def test_the_minimum_of_the_largest_boundaries_would_be_another_rule() -> None:
    """For more than a quarter of all pairs of masks the lesser of the largest boundaries is not shared."""
    masks = range(2 ** len(BOUNDARIES))
    pairs = [(a, b) for a, b in product(masks, repeat=2) if min(LARGEST[a], LARGEST[b]) != LARGEST[a & b]]
    assert len(pairs) > len(masks) ** 2 // 4
    build = held("stored")
    build.pieces["kv"][0].marks, build.pieces["rec"][0].marks = marks(0b001010), marks(0b000110)
    build.pieces["other"][0].marks = marks(0b111111)
    assert 32 == build.engine.decide(build.state()).usable


class Assigned:
    """Facts of one group at one length: its marks hold a boundary where the Boolean of that boundary is true."""

    def __init__(self, names: Z3Facts, bits: list[Any], length: int) -> None:
        integers = z3.IntSort(names.ctx)
        held = z3.K(integers, z3.BoolVal(False, names.ctx))
        for boundary, bit in zip(BOUNDARIES, bits, strict=True):
            held = z3.Store(held, z3.IntVal(boundary, names.ctx), bit)
        true = z3.BoolVal(True, names.ctx)
        self.own = {
            "self.marks": Z3Fact(held, true),
            "length": Z3Fact(z3.IntVal(length, names.ctx), true),
        }
        self.names, self.ctx = names, names.ctx

    def __call__(self, path: str) -> Z3Fact:
        return self.own[path] if path in self.own else self.names(path)


@cache
def accepted() -> tuple[z3.Context, list[list[Any]], list[list[Any]]]:
    """The 18 Booleans, and for each group and boundary whether its boundary check surely holds there."""
    ctx = z3.Context()
    bits = [[z3.Bool(f"{group}_{length}", ctx) for length in BOUNDARIES] for group in GROUPS]
    holds = []
    for name, row in zip(GROUPS, bits, strict=True):
        group = bound_to("stored").group(name)
        (check,) = [one for one in group.checks if reads(one.require) >= {"self.marks", "length"}]
        facts: dict[str, Fact] = {f"self.{fact}": declared for fact, declared in group.facts.items()}
        names = Z3Facts(EnumSorts(ctx), facts)
        holds.append([encode(check.require, Assigned(names, row, length)).T for length in BOUNDARIES])
    return ctx, bits, holds


def longest(ctx: z3.Context, holds: list[Any]) -> Any:
    """The largest boundary at which a condition holds, as a term; 0 where it holds nowhere."""
    result = z3.IntVal(0, ctx)
    for length, condition in zip(BOUNDARIES, holds, strict=True):
        result = z3.If(condition, z3.IntVal(length, ctx), result)
    return result


def masked(ctx: z3.Context, bits: list[list[Any]]) -> Any:
    """The largest boundary of the intersection of three bit masks, as a term."""
    one, zero = z3.BitVecVal(1, 6, ctx), z3.BitVecVal(0, 6, ctx)
    masks = [sum((z3.If(bit, one << place, zero) for place, bit in enumerate(row)), zero) for row in bits]
    common = masks[0] & masks[1] & masks[2]
    return longest(ctx, [(common >> place) & one == one for place in range(len(BOUNDARIES))])


def test_rules_and_masks_agree_as_one_query() -> None:
    """No assignment of the 18 Booleans tells the longest length that all three checks accept from that of the masks."""
    ctx, bits, holds = accepted()
    joint = longest(ctx, [z3.And(list(column)) for column in zip(*holds, strict=True)])
    solver = z3.Solver(ctx=ctx)
    solver.add(joint != masked(ctx, bits))
    assert z3.unsat == solver.check()


def test_the_minimum_instead_of_the_intersection_is_refuted() -> None:
    """The mutant that takes the least of the groups' largest boundaries differs from the masks somewhere."""
    ctx, bits, holds = accepted()
    least = longest(ctx, holds[0])
    for row in holds[1:]:
        other = longest(ctx, row)
        least = z3.If(other < least, other, least)
    solver = z3.Solver(ctx=ctx)
    solver.add(least != masked(ctx, bits))
    assert z3.sat == solver.check()
    model = solver.model()
    chosen = [
        sum(1 << place for place, bit in enumerate(row) if z3.is_true(model.eval(bit, model_completion=True)))
        for row in bits
    ]
    assert min(LARGEST[mask] for mask in chosen) != LARGEST[chosen[0] & chosen[1] & chosen[2]]
