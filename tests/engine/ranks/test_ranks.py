"""Ranks over the rules, as threads of one process: different evictions, failing repairs, late and lost ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from hitproof.engine.offers import offers
from hitproof.engine.ranks import Joint, LocalTransport, Ranks, Room
from hitproof.spec.errors import InternalError
from tests.engine.ranks.cases import Cache, pooled, stored

Part = Callable[[Ranks[str], LocalTransport], Joint]


def ranks_of(caches: Sequence[Cache], wait_s: float = 20.0) -> list[tuple[Ranks[str], LocalTransport]]:
    """One side of a group for each cache."""
    room = Room(len(caches))
    seats = [room.seat(rank) for rank in range(len(caches))]
    return [
        (Ranks(cache.member(), seat, cache.build.engine.judge.order, wait_s, wait_s), seat)
        for cache, seat in zip(caches, seats, strict=True)
    ]


def together(caches: Sequence[Cache], *parts: Part) -> list[Joint]:
    """Each rank plays its part in a thread of its own; without parts, one turn."""
    played = parts or (lambda ranks, seat: ranks.agree("prompt", 1),) * len(caches)
    with ThreadPoolExecutor(len(caches)) as pool:
        futures = [pool.submit(part, *side) for part, side in zip(played, ranks_of(caches), strict=True)]
        return [future.result(timeout=60) for future in futures]


def lengths(cache: Cache) -> set[int]:
    """The lengths that a cache offers."""
    return set(offers(cache.build.engine, cache.build.state()))


def test_different_evictions_agree_on_one_length() -> None:
    """The longest length that all kept, though each kept longer ones that others lost; all is pinned till the end."""
    caches = [stored(32, 48, 96), stored(32, 48, 80), stored(16, 48, 80)]
    assert [{0, 32, 48, 96}, {0, 32, 48, 80}, {0, 16, 48, 80}] == [lengths(cache) for cache in caches]

    def part(ranks: Ranks[str], seat: LocalTransport) -> Joint:
        joint = ranks.agree("prompt", 1)
        assert ranks.finish(joint, used=True)
        return joint

    joints = together(caches, part, part, part)
    assert [(True, 48)] * 3 == [(joint.go, joint.length) for joint in joints]
    assert 1 == len({joint.record for joint in joints})
    assert [{1}, {1}, {1}] == [cache.pins for cache in caches]


def test_each_rank_repairs_what_it_needs() -> None:
    """One rank mends its index and publishes it, the other needs nothing; both use the same length."""
    caches = [pooled(kv_generation=7), pooled()]
    joints = together(caches)
    assert [(True, 64)] * 2 == [(joint.go, joint.length) for joint in joints]
    assert [["index_remap"], []] == [[one.repair for one in cache.runs] for cache in caches]
    index = caches[0].build.pieces["index"][0]
    assert caches[0].build.pieces["entries"][0].generation == index.kv_generation


def test_another_repair_for_the_same_length_is_that_ranks_own_business() -> None:
    """Where one repair fails and the next succeeds, the others never hear of it."""
    caches = [pooled(kv_generation=7), pooled()]
    caches[0].fails = ("index_remap",)
    joints = together(caches)
    assert [(True, 64)] * 2 == [(joint.go, joint.length) for joint in joints]
    assert ["index_remap", "index_rebuild"] == [one.repair for one in caches[0].runs]


def test_a_rank_that_cannot_prepare_aborts_all() -> None:
    """After its last repair has failed nobody publishes, nothing is pinned, and the others say who it was."""
    caches = [pooled(kv_generation=7), pooled(kv_generation=7)]
    caches[0].fails = ("index_remap", "index_rebuild")
    joints = together(caches)
    assert [(False, 0, (0,))] * 2 == [(joint.go, joint.length, joint.ranks) for joint in joints]
    assert "cannot be held" in joints[1].why
    assert [{0}, {0}] == [cache.pins for cache in caches]
    assert [7, 7] == [cache.build.pieces["index"][0].kv_generation for cache in caches]


def test_an_offer_that_no_longer_stands_is_not_prepared() -> None:
    """A segment that is evicted, or changes its epoch, between the offers and the lease aborts the turn."""
    for change in ({"epoch": 5}, {"form": "discarded"}):
        caches = [stored(32, 48), stored(32, 48)]
        ranks, other = caches[1].member(), caches[0].member()
        offered = ranks.offers("prompt", None)
        piece = caches[1].build.pieces["rec"][1]
        for fact, value in change.items():
            setattr(piece, fact, value)
        assert isinstance(ranks.prepare("prompt", 48, offered.lengths[48]), str)
        assert {0} == caches[1].pins
        assert not isinstance(other.prepare("prompt", 48, other.offers("prompt", None).lengths[48]), str)


def test_what_changes_under_the_lease_is_not_published() -> None:
    """An epoch that moves after preparing makes the commit say no; so does a cache that takes no copies."""
    moved, full = pooled(kv_generation=7), pooled(kv_generation=7)
    full.refuses = True
    for cache in (moved, full):
        member = cache.member()
        assert not isinstance(member.prepare("prompt", 64, member.offers("prompt", None).lengths[64]), str)
        if cache is moved:
            cache.build.pieces["index"][0].epoch += 1
        assert not member.commit()
        member.abort()
        assert (7, {0}) == (cache.build.pieces["index"][0].kv_generation, cache.pins)


def test_the_lease_holds_after_publication() -> None:
    """What the member itself published does not make its lease doubt, and what others change does."""
    cache = pooled(kv_generation=7)
    member = cache.member()
    assert not isinstance(member.prepare("prompt", 64, member.offers("prompt", None).lengths[64]), str)
    assert member.commit()
    held = member.recovered
    assert held is not None and held.lease is not None and held.lease.confirm()
    cache.build.pieces["index"][0].epoch += 1
    assert not held.lease.confirm()
    member.abort()
    assert {0} == cache.pins


def test_computing_everything_is_agreed_on_too() -> None:
    """With `at_most=0` on one rank, all compute; nothing is held, and the go is still asked for."""
    caches = [stored(32, 48), stored(32, 48)]
    joints = together(
        caches,
        lambda ranks, seat: ranks.agree("prompt", 1),
        lambda ranks, seat: ranks.agree("prompt", 1, at_most=0),
    )
    assert [(True, 0)] * 2 == [(joint.go, joint.length) for joint in joints]
    assert [{0}, {0}] == [cache.pins for cache in caches]


def test_a_rank_that_leaves_is_heard_at_once() -> None:
    """The others do not sit out their time when a rank's transport is closed while it prepares."""
    caches = [pooled(), pooled(kv_generation=7)]

    class Gone(BaseException):
        """The process of a rank has ended."""

    def vanish() -> None:
        raise Gone

    caches[1].meanwhile = vanish

    def part(ranks: Ranks[str], seat: LocalTransport) -> Joint:
        try:
            return ranks.agree("prompt", 1)
        except Gone:
            seat.close()
            raise

    sides = ranks_of(caches, 500.0)
    with ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(part, *side) for side in sides]
        with pytest.raises(Gone):
            futures[1].result(timeout=60)
        joint = futures[0].result(timeout=60)
    assert (False, (1,)) == (joint.go, joint.ranks)
    assert {0} == caches[0].pins


def test_a_late_rank_aborts_and_the_next_turn_goes_well() -> None:
    """A rank that is not in time counts as failed; when it comes, it finds the others gone, and all meet again."""
    caches = [pooled(), pooled(kv_generation=7)]
    given_up = Event()
    caches[1].meanwhile = lambda: None if given_up.wait(30) else pytest.fail("the other rank did not give up")
    room, order = Room(2), caches[0].build.engine.judge.order
    members = [cache.member() for cache in caches]

    def quick() -> tuple[Joint, Joint]:
        first = Ranks(members[0], room.seat(0), order, 0.5, 0.5).agree("prompt", 1)
        given_up.set()
        return first, Ranks(members[0], room.seat(0), order, 30.0, 30.0).agree("prompt", 2)

    def late() -> tuple[Joint, Joint]:
        ranks = Ranks(members[1], room.seat(1), order, 30.0, 30.0)
        return ranks.agree("prompt", 1), ranks.agree("prompt", 2)

    with ThreadPoolExecutor(2) as pool:
        pairs = [future.result(timeout=90) for future in [pool.submit(quick), pool.submit(late)]]
    assert [False, False] == [first.go for first, _ in pairs]
    assert (1,) == pairs[0][0].ranks
    assert [(True, 64)] * 2 == [(second.go, second.length) for _, second in pairs]


def test_turns_grow() -> None:
    """A number that was used is refused, since its late messages could be taken for new ones."""
    ((ranks, _),) = ranks_of([pooled()])
    assert ranks.agree("prompt", 4).go
    with pytest.raises(InternalError, match="does not come after"):
        ranks.agree("prompt", 4)


def test_what_a_rank_raises_reaches_its_caller_and_aborts_all() -> None:
    """A fault of one rank is that rank's to raise; the others get an answer, and nobody keeps pins."""
    caches = [pooled(), pooled(kv_generation=7)]

    def fail() -> None:
        raise MemoryError

    caches[1].meanwhile = fail
    sides = ranks_of(caches, 30.0)
    with ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(ranks.agree, "prompt", 1) for ranks, _ in sides]
        with pytest.raises(MemoryError):
            futures[1].result(timeout=60)
        joint = futures[0].result(timeout=60)
    assert (False, (1,), "this rank failed") == (joint.go, joint.ranks, joint.why)
    assert [{0}, {0}] == [cache.pins for cache in caches]
