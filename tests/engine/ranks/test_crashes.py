"""The turn under every crash and every loss: nobody uses what others do not, and nobody keeps what is not used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitproof.engine.ranks.messages import PHASES, Phase
from tests.engine.ranks.simulated import CALLS, SIDES, Lost, Run, ToyMember, run

LENGTHS = ({0: 9, 64: 3, 192: 1}, {0: 9, 64: 3, 128: 2}, {0: 9, 64: 2, 128: 2, 192: 2})
AGREED = 64

Death = tuple[str, int, object]
"""A call with the rank and the side of it, or an exchange with the rank and those whom its last message reaches."""


def members(count: int) -> list[ToyMember]:
    """Ranks whose caches lost different lengths."""
    return [ToyMember(dict(LENGTHS[rank])) for rank in range(count)]


def deaths(count: int) -> Iterator[Death]:
    """Every way in which one rank can end: at either side of each call, or halfway through telling the others."""
    for rank in range(count):
        yield from ((call, rank, side) for call in CALLS for side in SIDES)
        others = [other for other in range(count) if other != rank]
        reached = chain.from_iterable(combinations(others, size) for size in range(count))
        yield from ((phase, rank, some) for phase, some in product(PHASES, list(reached)))


def die(count: int, *met: Death) -> Run:
    """A turn in which these deaths happen."""
    ranks = members(count)
    exchanges: list[tuple[Phase, int]] = []
    unreached: set[tuple[str, int, int]] = set()
    for what, rank, how in met:
        if what in CALLS:
            assert isinstance(how, str)
            ranks[rank].killed = (what, how)
        else:
            assert isinstance(how, tuple)
            exchanges += [(phase, rank) for phase in PHASES if phase == what]
            unreached |= {(what, rank, other) for other in range(count) if other not in how}
    return run(ranks, lambda phase, sender, receiver: (phase, sender, receiver) in unreached, exchanges)


def broken(made: Run) -> list[str]:
    """Every promise that a turn did not keep."""
    found = []
    alive = set(range(len(made.members))) - made.dead
    records = {made.joints[rank].record for rank in made.going}
    if made.going and {AGREED} != {one.published for one in made.members}:
        found.append("somebody may launch, and not everybody has published the length")
    if len(records) > 1 or any(made.joints[rank].length != AGREED for rank in made.going):
        found.append("two ranks may launch different things")
    if any(made.finished.values()) and made.going != set(range(len(made.members))):
        found.append("results are given out that not every rank has a part in")
    if any(made.members[rank].held != AGREED for rank in made.going & alive):
        found.append("a rank may launch and holds nothing")
    if any(made.members[rank].held is not None for rank in alive - made.going):
        found.append("a rank without a go holds something")
    if any(rank not in made.joints for rank in alive - made.raised):
        found.append("a rank came to no end")
    if any(not made.joints[rank].why for rank in alive - made.going - made.raised):
        found.append("a rank does not say why")
    return found


@pytest.mark.parametrize("count", [2, 3])
def test_without_faults_all_use_one_length(count: int) -> None:
    """Ranks of different sets agree on one length, prepare, publish, go and finish, in four exchanges."""
    made = run(members(count))
    everybody = set(range(count))
    assert ([], everybody) == (broken(made), made.going)
    assert everybody == {rank for rank, well in made.finished.items() if well}
    assert [4] * count == made.exchanges


def test_a_rank_alone_takes_its_own_best() -> None:
    """One rank agrees with itself."""
    made = run(members(1))
    assert (192, {0: True}) == (made.joints[0].length, made.finished)


@pytest.mark.parametrize("count", [2, 3])
def test_one_death_anywhere_aborts_all(count: int) -> None:
    """Killed at any call or while telling anybody, a rank takes the turn with it, and the others give all back.

    Only those whom its go has reached may launch, and only those whom its last message has reached may give out what
    they computed.
    """
    published_for_nothing = 0
    for death in deaths(count):
        what, rank, how = death
        made = die(count, death)
        assert (death, [], {rank}) == (death, broken(made), made.dead)
        reached = set(how) if isinstance(how, tuple) else set()
        survivors = set(range(count)) - {rank}
        may_launch = {"go": reached, "done": survivors}.get(what, set())
        assert (death, may_launch) == (death, made.going - {rank})
        may_give_out = reached if what == "done" else set()
        assert (death, may_give_out) == (death, {one for one, well in made.finished.items() if well} - {rank})
        published_for_nothing += any(one.published for one in made.members) and not may_launch
    assert published_for_nothing


def test_two_deaths_anywhere_abort_all() -> None:
    """The same for every pair of deaths of three ranks."""
    all_deaths = list(deaths(3))
    for one, other in combinations(all_deaths, 2):
        if one[1] != other[1]:
            assert (one, other, []) == (one, other, broken(die(3, one, other)))


@pytest.mark.parametrize("refused", ["prepare", "commit", "raise offers", "raise prepare", "raise commit"])
@pytest.mark.parametrize("rank", [0, 1, 2])
def test_one_no_aborts_all(refused: str, rank: int) -> None:
    """A rank that cannot prepare or publish, or whose call raises, is heard in the exchange that the others wait in."""
    ranks = members(3)
    ranks[rank].refuses = refused
    made = run(ranks)
    assert [] == broken(made)
    assert set() == made.going
    others = [one for one in range(3) if one != rank]
    assert {(rank,)} == {made.joints[one].ranks for one in others}
    waited = {"raise offers": 1, "prepare": 2, "raise prepare": 2, "commit": 3, "raise commit": 3}[refused]
    assert {waited} == {made.exchanges[one] for one in others}


def losses(pairs: Sequence[tuple[Phase, int, int]], bits: int) -> Lost:
    """The loss of those messages whose bits are set."""
    gone = {pair for place, pair in enumerate(pairs) if bits >> place & 1}
    return lambda phase, sender, receiver: (phase, sender, receiver) in gone


def pairs_of(count: int) -> list[tuple[Phase, int, int]]:
    """Every message of a turn."""
    return [(phase, a, b) for phase in PHASES for a in range(count) for b in range(count) if a != b]


def test_every_loss_between_two_ranks_is_survived() -> None:
    """All 256 patterns: both keep every promise, and a result is given out only if no earlier message was lost."""
    outcomes: Counter[tuple[int, int]] = Counter()
    for bits in range(2**8):
        made = run(members(2), losses(pairs_of(2), bits))
        assert (bits, []) == (bits, broken(made))
        outcomes[len(made.going), sum(made.finished.values())] += 1
        assert not any(made.finished.values()) or not bits & 0b111111
    # One pattern loses nothing and lets both finish; of the two last messages alone, either may be lost.
    assert (1, 2, 1) == (outcomes[2, 2], outcomes[2, 1], outcomes[2, 0])
    assert outcomes[1, 0] > 0 and 0 == outcomes[1, 1]


@given(st.integers(0, 2**24 - 1), st.lists(st.sampled_from(list(deaths(3))), max_size=1))
def test_any_loss_between_three_ranks_is_survived(bits: int, met: list[Death]) -> None:
    """Losses of any pattern, with a death or without, break no promise."""
    ranks = members(3)
    killed: list[tuple[Phase, int]] = []
    for what, rank, how in met:
        if what in CALLS:
            ranks[rank].killed = (what, str(how))
        else:
            killed += [(phase, rank) for phase in PHASES if phase == what]
    assert [] == broken(run(ranks, losses(pairs_of(3), bits), killed))
