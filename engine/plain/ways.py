"""The best plan at one length: every way of every piece, in every combination."""

from __future__ import annotations

from collections.abc import Iterator

from hitproof.engine.plain.attempt import Attempt, Looked, in_order, prefill, step, sum_of, surroundings
from hitproof.engine.plain.pieces import pieces_at
from hitproof.engine.plain.repairs import Env, failing, of_self, options_of, run
from hitproof.engine.state import Resolved
from hitproof.spec.bound import BoundGroup, BoundRulebook
from hitproof.spec.condition import reads
from hitproof.spec.decision import PlanStep
from hitproof.spec.price import ticks
from hitproof.spec.rulebook import LEVELS

__all__ = ["attempt", "attempts"]

Beside = dict[str, list[Looked]]
"""What became of the pieces of the groups before, by group."""


def attempt(bound: BoundRulebook, state: Resolved, length: int) -> Attempt:
    """The best plan at a length; where none ends well, what each piece would be given by itself."""

    def place(one: Attempt) -> tuple[object, ...]:
        return in_order(bound, one.cost, length, one.level, len(one.steps), one.ids)

    pieces = _Pieces(bound, state, length)
    best = min(attempts(pieces), key=place, default=None)
    return best or _each_by_itself(pieces)


class _Pieces:
    """The pieces that a length asks, each with what may become of it beside what became of its peers."""

    def __init__(self, bound: BoundRulebook, state: Resolved, length: int) -> None:
        self.bound, self.state, self.length = bound, state, length
        self.all = [(group, *piece) for group in bound.groups for piece in pieces_at(group, state, length)]
        self._known: dict[object, list[Looked]] = {}
        self._found: dict[object, Looked] = {}

    def ways(self, place: int, beside: Beside) -> list[Looked]:
        """What ends well, the best by itself first; nothing where the piece cannot be mended."""
        group, index, segment, share = self.all[place]
        key = self._key(place, beside)
        if key not in self._known:
            around = surroundings(group, self.state, self.length, beside, share)
            self._found[key] = _as_found(group, index, segment, share, around)
            self._known[key] = _ways(self.bound, self.state, self._found[key], around)
        return self._known[key]

    def as_found(self, place: int, beside: Beside) -> Looked:
        """The piece without a repair, once its ways were asked for."""
        return self._found[self._key(place, beside)]

    def _key(self, place: int, beside: Beside) -> object:
        # What is looked at is remembered, so that each thing that may become of a peer is one object.
        return place, *(id(one) for peer in self.all[place][0].peers.values() for one in beside[peer])

    def with_one(self, place: int, beside: Beside, one: Looked) -> Beside:
        """With one piece more."""
        name = self.all[place][0].id
        return {**beside, name: [*beside.get(name, ()), one]}


def attempts(pieces: _Pieces, place: int = 0, beside: Beside | None = None) -> Iterator[Attempt]:
    """Every plan that ends well, less those in which some piece has a needless way."""
    beside = beside or {}
    if place == len(pieces.all):
        yield Attempt(pieces.length, prefill(pieces.bound, pieces.state, pieces.length), beside)
        return
    for one in pieces.ways(place, beside):
        yield from attempts(pieces, place + 1, pieces.with_one(place, beside, one))


def _each_by_itself(pieces: _Pieces) -> Attempt:
    """Each piece in the best way by itself, after its peers; what cannot be mended stays as it was found."""
    beside: Beside = {}
    for place in range(len(pieces.all)):
        ways = pieces.ways(place, beside)
        beside = pieces.with_one(place, beside, ways[0] if ways else pieces.as_found(place, beside))
    return Attempt(pieces.length, prefill(pieces.bound, pieces.state, pieces.length), beside)


def _as_found(group: BoundGroup, index: int, segment: Env, share: tuple[int, int], around: Env) -> Looked:
    env = {**around, **of_self(segment)}
    failed = failing(group, env)
    return Looked(group, index, share, segment, env, failed, segment, failed, [])


def _ways(bound: BoundRulebook, state: Resolved, found: Looked, around: Env) -> list[Looked]:
    """What may become of a piece that ends well, the best by itself first; an optional one stays as it is."""
    group, index, segment, share = found.group, found.index, found.before, found.share
    if not found.failed or not group.rules.mandatory:
        return [found]
    barred = state.barred.get((group.id, index), frozenset())
    ways = []

    def follow(after: Env, left: tuple[str, ...], steps: list[PlanStep]) -> None:
        now = {**around, **of_self(after)}
        if not left:
            ways.append(Looked(group, index, share, segment, found.env, found.failed, after, (), steps))
            return
        for price, option in options_of(group, left, now):
            then = run(group, option, now, bound.rulebook.engine_owned) if option.level not in barred else None
            fails = left if then is None else failing(group, {**around, **of_self(then)})
            if then is not None and set(fails) < set(left):
                follow(then, fails, [*steps, step(group, index, option, price)])

    follow(segment, found.failed, [])
    if len(ways) < 2:
        return ways
    shown = _shown(bound, group)
    kept = [one for one in ways if not any(_needless(bound, one, other, shown) for other in ways)]
    return sorted(kept, key=lambda one: in_order(bound, sum_of(one.steps), 0, _level(one), len(one.steps), one.ids))


def _shown(bound: BoundRulebook, group: BoundGroup) -> set[str]:
    """Facts of a group's segments that rules of other groups read."""
    shown = set()
    for reader in (one for one in bound.groups if group.id in one.peers.values()):
        nodes = [reader.needed, *(check.require for check in reader.checks)]
        for option in reader.options:
            effect = option.effect
            nodes += [option.when, option.cost]
            nodes += [*effect.sets.values(), *effect.adds.values(), *effect.resets.values(), *effect.chooses.values()]
        read = {path for node in nodes for path in reads(node)}
        for role in (role for role, peer in reader.peers.items() if peer == group.id):
            shown |= {path.removeprefix(f"{role}.") for path in read if path.startswith(f"{role}.")}
    return shown & set(group.facts)


def _needless(bound: BoundRulebook, one: Looked, other: Looked, shown: set[str]) -> bool:
    """Whether a plan with `other` in the place of `one` is better, whatever else it holds.

    It shows the same to other groups, costs no more alone and no more of each joint repair, and either costs less
    alone, or is no worse in whatever else may decide and better in something. Told only where the price comes first.
    """
    joints = {step.joint for step in (*one.steps, *other.steps)} - {None}
    less = all(_price(other, joint) <= _price(one, joint) for joint in joints)
    if bound.rulebook.choosing.order[0] != "price" or not less or _price(other) > _price(one):
        return False
    if any(other.after[fact] != one.after[fact] for fact in shown):
        return False
    if _price(other) < _price(one):
        return True
    ties = [(_level(way), len(way.steps), way.ids) for way in (other, one)]
    return all(map(lambda a, b: a <= b, *ties)) and ties[0] != ties[1]


def _price(way: Looked, joint: str | None = None) -> int:
    """Price of the steps that are part of a joint repair, the dearest of them; without a name, of all other steps."""
    prices = [ticks(step.cost_us) for step in way.steps if step.joint == joint]
    return sum(prices) if joint is None else max(prices, default=0)


def _level(way: Looked) -> int:
    return max((LEVELS.index(step.level) for step in way.steps), default=-1)
