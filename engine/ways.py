"""All ways to mend one piece that may be part of the best plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hitproof.engine.choosing import Order
from hitproof.engine.compile import CompiledGroup, CompiledOption

__all__ = ["Way", "as_it_is", "ways_to_mend"]


@dataclass(slots=True)
class Way:
    """A sequence of repairs of one piece, and the piece after it; see `choosing.Priced` for the other parts.

    Args:
        mask: The checks that failed before the first step.
        left: The checks that fail after the last.
        shown: What rules of other groups read of the piece after it.
    """

    own: int
    joint: tuple[int, ...]
    level: int
    count: int
    ids: tuple[str, ...]
    steps: tuple[tuple[CompiledOption, int], ...]
    piece: Any
    mask: int
    left: int
    shown: Any


def as_it_is(group: CompiledGroup, piece: Any, mask: int, joints: int) -> Way:
    """No repair at all."""
    shown = None if group.shown is None else (not mask, *group.shown(piece))
    return Way(0, (0,) * joints, -1, 0, (), (), piece, mask, mask, shown)


def ways_to_mend(
    group: CompiledGroup,
    order: Order,
    piece: Any,
    mask: int,
    context: tuple[Any, ...],
    joints: int,
    barred: frozenset[str] = frozenset(),
) -> list[Way]:
    """Every way after which nothing fails, less those that another one makes needless; the best by itself first.

    A step mends something that fails, and breaks nothing that holds. All sequences of steps are followed. Of two that
    leave the same facts only the better one goes on; of two that end well and show other groups the same, only the
    better one counts.

    Args:
        mask: The checks that fail.
        context: What stands behind the segment in the arguments of generated functions.
        joints: Number of joint repairs.
        barred: Recovery levels that are not tried.
    """
    as_found = Way(0, (0,) * joints, -1, 0, (), (), piece, mask, mask, None)
    offers = group.offers(mask, piece, *context)
    if len(offers) < 2 and not barred:
        # The usual case, told sooner: what may run first is the only one, and mends all or nothing.
        if not offers:
            return []
        option, price = offers[0]
        longer = _longer(group, as_found, option, price, context)
        if longer is None or not longer.left:
            return [] if longer is None else [longer]
    ended: dict[Any, list[Way]] = {}
    reached: dict[Any, list[Way]] = {}
    layer = [as_found]
    while layer:
        following: list[tuple[Any, Way]] = []
        for way in layer:
            for option, price in group.offers(way.left, way.piece, *context):
                if option.bound.level in barred:
                    continue
                longer = _longer(group, way, option, price, context)
                if longer is None:
                    continue
                if not longer.left:
                    order.keep_best(ended.setdefault(longer.shown, []), longer)
                elif group.shown is not None or not _in_vain(order, ended, longer):
                    state = group.state(longer.piece)
                    if order.keep_best(reached.setdefault(state, []), longer):
                        following.append((state, longer))
        layer = [way for state, way in following if any(way is one for one in reached[state])]
    found = [way for ways in ended.values() for way in ways]
    return found if len(found) < 2 else sorted(found, key=order.key)


def _longer(group: CompiledGroup, way: Way, option: CompiledOption, price: int, context: tuple[Any, ...]) -> Way | None:
    """The way with one step more; None where the option is no step here."""
    mended = option.apply(way.piece, *context)
    if mended is None:
        return None
    left, failing = group.judge(mended, *context), way.left
    if left & ~failing or left == failing:
        return None
    own, joint, slot = way.own, way.joint, option.slot
    if slot < 0:
        own += price
    elif price > joint[slot]:
        joint = (*joint[:slot], price, *joint[slot + 1 :])
    return Way(
        own,
        joint,
        option.level if option.level > way.level else way.level,
        way.count + 1,
        (*way.ids, option.bound.id),
        (*way.steps, (option, price)),
        mended,
        way.mask,
        left,
        None if left or group.shown is None else (True, *group.shown(mended)),
    )


def _in_vain(order: Order, ended: dict[Any, list[Way]], way: Way) -> bool:
    """Whether a way that has ended is no worse already, so that whatever follows is of no use."""
    return any(order.no_worse(one, way) for ways in ended.values() for one in ways)
