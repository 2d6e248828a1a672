"""The tiered cache agrees with a slow, obvious one and reproduces the published hit rates."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitproof.engine.tiers import DEVICE, DISK, HOST, TieredLru
from hitproof.engine.trace import read_trace
from hitproof.spec.errors import InternalError, UsageError

TRACE = Path(__file__).resolve().parents[3] / "shared/data/traces/mooncake-conversation/conversation_trace.jsonl"

capacities = st.none() | st.integers(0, 6)
paths = st.lists(st.lists(st.integers(0, 20), max_size=9), max_size=30)


class PlainTiers:
    """One list of blocks, most recent first, cut at the capacities."""

    def __init__(self, *capacities: int | None) -> None:
        self.capacities = capacities
        self.recent: list[int] = []

    def tier_of(self, block: int) -> int | None:
        """Counts how many blocks were touched since, and walks down the tiers."""
        if block not in self.recent:
            return None
        newer = self.recent.index(block)
        for tier, capacity in enumerate(self.capacities):
            if capacity is None or newer < capacity:
                return tier
            newer -= capacity
        return None

    def lookup(self, hash_ids: list[int]) -> list[int]:
        """Walks the path until a block is unknown."""
        codes: list[int] = []
        for block in hash_ids:
            tier = self.tier_of(block)
            if tier is None:
                break
            codes.append(tier)
        return codes

    def admit(self, hash_ids: list[int]) -> None:
        """Moves each block to the front."""
        for block in hash_ids:
            if block in self.recent:
                self.recent.remove(block)
            self.recent.insert(0, block)


@given(capacities, capacities, capacities, paths)
def test_agrees_with_the_plain_model(
    device: int | None, host: int | None, disk: int | None, requests: list[list[int]]
) -> None:
    """Lookups, tiers and integrity match the plain model after every request."""
    clever, plain = TieredLru(device, host, disk), PlainTiers(device, host, disk)
    for hash_ids in requests:
        assert plain.lookup(hash_ids) == clever.lookup(hash_ids)
        clever.admit(hash_ids)
        plain.admit(hash_ids)
        clever.check_integrity()
        expected = [plain.tier_of(block) for block in range(21)]
        assert expected == [clever.tier_of(block) for block in range(21)]
        assert tuple(expected.count(tier) for tier in (DEVICE, HOST, DISK)) == clever.sizes()


@given(capacities, capacities, capacities, paths)
def test_hooks_tell_every_move_down(
    device: int | None, host: int | None, disk: int | None, requests: list[list[int]]
) -> None:
    """A ledger kept from the hooks alone, with touched blocks on the device, equals the cache's own tiers."""
    ledger: dict[int, int] = {}

    def demoted(block: int, source: int, target: int) -> None:
        assert ledger[block] == source < target
        ledger[block] = target

    cache = TieredLru(device, host, disk, on_demote=demoted, on_lost=ledger.pop)
    for hash_ids in requests:
        ledger.update(dict.fromkeys(hash_ids, DEVICE))
        cache.admit(hash_ids)
        assert ledger == {b: t for b in range(21) if (t := cache.tier_of(b)) is not None}


@given(capacities, capacities, capacities, paths)
def test_lookup_changes_nothing(
    device: int | None, host: int | None, disk: int | None, requests: list[list[int]]
) -> None:
    """A cache that is asked between requests ends like one that is not."""
    asked, silent = TieredLru(device, host, disk), TieredLru(device, host, disk)
    for hash_ids in requests:
        asked.lookup(list(range(21)))
        asked.admit(hash_ids)
        silent.admit(hash_ids)
    assert [silent.tier_of(b) for b in range(21)] == [asked.tier_of(b) for b in range(21)]


def test_the_oldest_block_goes_down_tier_by_tier() -> None:
    """With one block a tier, a block is demoted, demoted again, and lost."""
    told: list[tuple[int, ...]] = []
    cache = TieredLru(1, 1, 1, on_demote=lambda *move: told.append(move), on_lost=lambda block: told.append((block,)))
    for block in (10, 11, 12, 13):
        cache.admit([block])
    assert [
        (10, DEVICE, HOST),
        (11, DEVICE, HOST),
        (10, HOST, DISK),
        (12, DEVICE, HOST),
        (11, HOST, DISK),
        (10,),
    ] == told
    assert (1, 1, 1) == cache.sizes()


def test_a_tier_of_no_capacity_is_left_out() -> None:
    """Without a host, blocks go from the device to the disk in one move."""
    told: list[tuple[int, int, int]] = []
    cache = TieredLru(1, 0, 2, on_demote=lambda *move: told.append(move))
    cache.admit([1, 2])
    assert [(1, DEVICE, DISK)] == told


def test_a_demoted_block_comes_back_to_the_device() -> None:
    """Touching a block on the disk brings it up and demotes another."""
    cache = TieredLru(1, 1, 1)
    cache.admit([1])
    cache.admit([2])
    cache.admit([3])
    assert [DISK] == cache.lookup([1])
    cache.admit([1])
    assert [DEVICE, HOST, DISK] == cache.lookup([1, 3, 2])


def test_a_hit_ends_before_the_first_unknown_block() -> None:
    """Known blocks behind an unknown one do not count."""
    cache = TieredLru(None)
    cache.admit([1, 2, 3])
    assert [DEVICE, DEVICE] == cache.lookup([1, 2, 9, 3])
    assert [] == cache.lookup([9, 1])


def test_a_request_never_demotes_its_own_blocks_while_they_fit() -> None:
    """A block on the edge of being lost is read by the request before anything is settled."""
    lost: list[int] = []
    cache = TieredLru(3, on_lost=lost.append)
    cache.admit([1, 2, 3])
    cache.admit([4, 5, 1])
    assert [2, 3] == lost


@pytest.mark.parametrize("wrong", [-1, True, 1.5, "10"])
@pytest.mark.parametrize("tier", [0, 1, 2])
def test_a_capacity_that_is_no_count_is_refused(tier: int, wrong: object) -> None:
    """Negative numbers, Booleans, fractions and text are usage errors that show the value."""
    capacities: list[object] = [1, 1, 1]
    capacities[tier] = wrong
    with pytest.raises(UsageError) as caught:
        TieredLru(*capacities)  # type: ignore[arg-type]
    assert str(wrong) == caught.value.got


@pytest.mark.parametrize(
    ("tier", "blocks", "said"),
    [(HOST, [1], "and above it"), (DEVICE, [7, 8, 9], "capacity is 2"), (HOST, [8], "has room")],
)
def test_integrity_notices_a_broken_promise(tier: int, blocks: list[int], said: str) -> None:
    """A block in two tiers, a tier too full, and a gap above a held block are internal errors."""
    cache = TieredLru(2, 2)
    cache.admit([1])
    for block in blocks:
        cache._tiers[tier][block] = None
    with pytest.raises(InternalError, match=said):
        cache.check_integrity()


def _hit_rate(requests: list[tuple[int, ...]], cache: TieredLru) -> float:
    hits = 0
    for hash_ids in requests:
        hits += len(cache.lookup(hash_ids))
        cache.admit(hash_ids)
    cache.check_integrity()
    return 100 * hits / sum(map(len, requests))


@pytest.mark.skipif(not TRACE.exists(), reason="the public conversation trace is not beside the repository")
def test_reproduces_the_published_hit_rates() -> None:
    """Logical block hits of the conversation trace fall within 0.2 points of the published figures."""
    requests = [request.hash_ids for request in read_trace(TRACE)]
    for capacity, expected in ((None, 36.6), (1_000, 4.5), (10_000, 21.1), (50_000, 35.5)):
        assert pytest.approx(expected, abs=0.2) == _hit_rate(requests, TieredLru(capacity))
    split = _hit_rate(requests, TieredLru(1_000, 9_000, 40_000))
    assert pytest.approx(35.5, abs=0.2) == split
