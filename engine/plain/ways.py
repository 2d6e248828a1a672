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


def attempt(bound: BoundRulebook, state: Resolved, length: int) -> Attempt:
    """The best plan at a length; where none ends well, what each piece would be given by itself."""

    def place(one: Attempt) -> tuple[object, ...]:
        return in_order(bound, one.cost, length, one.level, len(one.steps), one.ids)

    best = min(attempts(bound, state, length), key=place, default=None)
    return best or _each_by_itself(bound, state, length)


def attempts(bound: BoundRulebook, state: Resolved, length: int) -> Iterator[Attempt]:
    """Every plan that ends well, less those in which some piece has a needless way."""
    pieces = [(group, *piece) for group in bound.groups for piece in pieces_at(group, state, length)]
    known: dict[object, list[Looked]] = {}

    def combined(place: int, looked: dict[str, list[Looked]]) -> Iterator[Attempt]:
        if place == len(pieces):
            yield Attempt(length, prefill(bound, state, length), looked)
            return
        group, index, segment, share = pieces[place]
        around = surroundings(group, state, length, looked, share)
        key = (place, tuple(sorted(around.items())))
        if key not in known:
            known[key] = _ways(bound, state, group, index, segment, share, around)
        for one in known[key]:
            yield from combined(place + 1, {**looked, group.id: [*looked.get(group.id, ()), one]})

    return combined(0, {})


def _each_by_itself(bound: BoundRulebook, state: Resolved, length: int) -> Attempt:
    """Each piece in the best way by itself, after its peers; what cannot be mended stays as it was found."""
    looked: dict[str, list[Looked]] = {}
    for group in bound.groups:
        looked[group.id] = []
        for index, segment, share in pieces_at(group, state, length):
            around = surroundings(group, state, length, looked, share)
            found = _ways(bound, state, group, index, segment, share, around)
            looked[group.id].append(found[0] if found else _as_found(group, index, segment, share, around))
    return Attempt(length, prefill(bound, state, length), looked)


def _as_found(group: BoundGroup, index: int, segment: Env, share: tuple[int, int], around: Env) -> Looked:
    env = {**around, **of_self(segment)}
    failed = failing(group, env)
    return Looked(group, index, share, segment, env, failed, segment, failed, [])


def _ways(
    bound: BoundRulebook,
    state: Resolved,
    group: BoundGroup,
    index: int,
    segment: Env,
    share: tuple[int, int],
    around: Env,
) -> list[Looked]:
    """What may become of a piece that ends well, the best by itself first; an optional one stays as it is."""
    found = _as_found(group, index, segment, share, around)
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
    shown = _shown(bound, group)
    kept = [one for one in ways if not any(_needless(bound, one, other, shown) for other in ways)]
    return sorted(kept, key=lambda one: in_order(bound, sum_of(one.steps), 0, _level(one), len(one.steps), one.ids))


def _shown(bound: BoundRulebook, group: BoundGroup) -> set[str]:
    """Facts of a group's segments that rules of other groups read."""
    shown = set()
    for reader in bound.groups:
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
