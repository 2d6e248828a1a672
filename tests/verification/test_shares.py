"""What proofs take for granted of pieces and their shares is so of every choice of pieces that the engine makes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import z3
from hypothesis import given, settings
from hypothesis import strategies as st

from hitproof.engine.peers import fitting
from hitproof.engine.state import select_pieces
from hitproof.rules.bind import bind_rulebook
from hitproof.rules.profiles import load_profile
from hitproof.rules.resolve import load_rulebook
from hitproof.spec.condition import interpret
from hitproof.verification.model import GroupModel, World
from hitproof.verification.z3_facts import Z3Fact

BOUND = bind_rulebook(load_rulebook("mixed_attention"), load_profile("deepseek-v4-flash"))
Chosen = list[tuple[int, Any, int, int]]


def chain(unit: int) -> st.SearchStrategy[list[Any]]:
    """Pieces in any order, nested and apart, some of which nothing is known of; all begin and end with whole rows."""
    place = st.one_of(st.none(), st.integers(0, 200 // unit).map(lambda count: count * unit))
    piece = st.builds(lambda start, end: SimpleNamespace(start=start, end=end), place, place)
    return st.lists(piece, max_size=4)


def needed(name: str, length: int) -> tuple[int, int]:
    """Tokens that a group needs at a length."""
    group = BOUND.group(name)
    first, to = (interpret(node, {"length": length}) for node in (group.raw_first, group.raw_to))
    assert isinstance(first, int) and isinstance(to, int)
    return first, to


def chosen(name: str, pieces: list[Any], length: int) -> Chosen:
    """The pieces that the engine asks, each with its share."""
    found = select_pieces(BOUND.group(name), pieces, length, *needed(name, length))
    return [(index, piece or SimpleNamespace(start=None, end=None), a, b) for index, piece, a, b in found]


def is_so(model: GroupModel, piece: Any, share: tuple[int, int]) -> list[Any]:
    """The model's segment and share are these."""
    said = [model.share_first == share[0], model.share_to == share[1]]
    for name in ("start", "end"):
        fact, value = model.own(name), getattr(piece, name)
        said += [z3.Not(fact.known)] if value is None else [fact.known, fact.value == value]
    return said


def holds(world: World, said: list[Any]) -> bool:
    """Whether the domains of a world allow that."""
    solver = z3.Solver(ctx=world.ctx)
    solver.add(*said, *world.domains())
    return bool(solver.check() == z3.sat)


@settings(max_examples=60, deadline=None)
@given(pieces=chain(1), length=st.integers(1, 200))
def test_every_piece_that_is_asked_has_a_share_that_proofs_allow(pieces: list[Any], length: int) -> None:
    """The sliding window of a model, whatever is held of it."""
    for _, piece, a, b in chosen("window", pieces, length):
        world = World(BOUND)
        assert holds(world, [world.length == length, *is_so(world.group("window"), piece, (a, b))])


@settings(max_examples=60, deadline=None)
@given(entries=chain(4), keys=chain(4), length=st.integers(1, 200))
def test_a_peer_that_answers_has_a_share_that_proofs_allow(entries: list[Any], keys: list[Any], length: int) -> None:
    """Keys of entries: where a piece of the entries answers for a piece of the keys, it covers what that one needs."""
    first, to = needed("csa_index", length)
    peers: Chosen = chosen("csa_entries", entries, length)
    for _, piece, a, b in chosen("csa_index", keys, length):
        place = fitting([(*one, True) for one in peers], max(a, first), min(b, to))
        if place >= 0:
            world = World(BOUND)
            model = world.group("csa_index")
            peer = model.peers["kv"]
            mine = [world.length == length, *is_so(model, piece, (a, b))]
            theirs = is_so(peer, peers[place][1], (peers[place][2], peers[place][3]))
            # Whether it is accepted depends on more than its span; here it is.
            model._ready["kv"] = Z3Fact(model.true, model.true)
            assert holds(world, [*mine, *theirs])


def test_the_relation_refuses_what_the_engine_never_asks() -> None:
    """A piece that lies before all that is needed is not one of several."""
    world = World(BOUND)
    outside = SimpleNamespace(start=0, end=10)
    assert not holds(world, [world.length == 200, *is_so(world.group("window"), outside, (5, 10))])
