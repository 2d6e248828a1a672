"""Rotary embedding: pairs turned as points of the plane, and the speeds at which they turn."""

from __future__ import annotations

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from hitproof.kernels.rotary import Rotary, frequencies, rotated, stretched, yarn  # noqa: E402
from hitproof.kernels.tail_fill.slow import slow_rotation  # noqa: E402

PAIRINGS = ("half", "interleaved", "interleaved_to_half")


@pytest.mark.parametrize("place", ["leading", "trailing"])
@pytest.mark.parametrize("pairing", PAIRINGS)
@pytest.mark.parametrize("still", [0, 6, 448])
def test_pairs_turn_as_points_of_the_plane(still: int, pairing: Any, place: Any) -> None:
    """Each pair is multiplied by a complex number of the position's angle, and what does not turn is untouched."""
    rotary = Rotary(frequencies(10, 500.0), 1.25, pairing, place)
    rows = torch.randn(7, 3, still + 10, dtype=torch.float64, generator=torch.Generator().manual_seed(still))
    positions = torch.tensor([0, 1, 2, 63, 4096, 100_000, 2**24 + 1])
    got = rotated(rows, positions, rotary)
    part, rest = (slice(still, None), slice(0, still)) if place == "trailing" else (slice(0, 10), slice(10, None))
    assert torch.equal(rows[..., rest], got[..., rest])
    for t, position in enumerate(positions.tolist()):
        for head in range(3):
            row = rows[t, head, part].tolist()
            expected = slow_rotation(row, position, rotary)
            # Cosines are float32.
            assert got[t, head, part].tolist() == pytest.approx(expected, abs=3e-6)


def test_turning_keeps_angles_between_positions() -> None:
    """The product of two turned rows depends on the distance of their positions alone."""
    rotary = Rotary(frequencies(16, 10_000.0))
    left, right = torch.randn(2, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    products = [
        float(
            (rotated(left[None], torch.tensor([p]), rotary) * rotated(right[None], torch.tensor([p + 5]), rotary)).sum()
        )
        for p in (0, 11, 250)
    ]
    assert products == pytest.approx([products[0]] * 3, abs=1e-4)


def test_positions_are_64_bit() -> None:
    """A position beyond 2**31 turns by its own angle and not by that of what is left in 32 bits."""
    rotary = Rotary(frequencies(2, 10_000.0) * 1e-6)
    far = 2**33
    turned = rotated(torch.tensor([[1.0, 0.0]], dtype=torch.float64), torch.tensor([far]), rotary)
    angle = far * float(rotary.frequencies[0])
    assert turned[0].tolist() == pytest.approx([math.cos(angle), math.sin(angle)], abs=1e-3)


def test_yarn_leaves_fast_pairs_and_stretches_slow_ones() -> None:
    """Pairs that turn often within the trained context keep their speed, slow ones turn `factor` times slower."""
    own = frequencies(64, 150_000.0)
    turning, scale = yarn(64, 150_000.0, factor=32.0, trained=4096)
    turns = own * 4096 / (2 * math.pi)
    # The ramp's ends are rounded outward to whole pairs, so that the limits themselves may lie inside.
    fast, slow = turns > 32 * 2, turns < 1 / 2
    assert bool(fast.any()) and bool(slow.any())
    assert torch.equal(own[fast], turning[fast])
    assert torch.allclose(stretched(own, 32.0)[slow], turning[slow], rtol=1e-6)
    assert bool(((turning <= own) & (turning >= own / 32.001)).all())
    assert scale == pytest.approx(0.1 * math.log(32) + 1)
    assert yarn(64, 150_000.0, factor=1.0, trained=4096)[1] == 1.0
    assert yarn(64, 150_000.0, factor=32.0, trained=4096, scale=0.5)[1] == 0.5


@pytest.mark.parametrize("truncate", [True, False])
def test_yarn_follows_its_formula(truncate: bool) -> None:
    """Every pair's speed is the ramp between both speeds, worked out one by one."""
    size, theta, factor, trained = 48, 10_000.0, 4.0, 2048
    turning, _ = yarn(size, theta, factor=factor, trained=trained, fast=16.0, slow=2.0, truncate=truncate)
    low, high = (size * math.log(trained / (turns * 2 * math.pi)) / (2 * math.log(theta)) for turns in (16.0, 2.0))
    if truncate:
        low, high = math.floor(low), math.ceil(high)
    for i, got in enumerate(turning.tolist()):
        ramp = min(max((i - low) / (high - low), 0.0), 1.0)
        own = theta ** (-2 * i / size)
        assert got == pytest.approx(own / factor * ramp + own * (1 - ramp), rel=1e-5)
