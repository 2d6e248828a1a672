"""What one length would take: every group judged and mended, peers first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hitproof.engine.choosing import Order
from hitproof.engine.compile import CompiledGroup, CompiledOption, compile_group
from hitproof.engine.compile_reasons import compile_flags
from hitproof.engine.facts import FactTypes
from hitproof.engine.mending import Mending
from hitproof.engine.peers import Judged, fitting, peer_places
from hitproof.engine.state import FAR, Resolved, select_pieces
from hitproof.spec.bound import BoundRulebook
from hitproof.spec.condition import reads
from hitproof.spec.price import NO_LIMIT, microseconds

__all__ = ["Judge", "Outcome", "Step"]

Step = tuple[CompiledGroup, int, CompiledOption, float]
"""A repair: group, piece index, option, cost in microseconds."""


@dataclass(slots=True)
class Outcome:
    """What one length would take.

    Args:
        length: The length, in tokens.
        steps: (group, piece index, option, cost) in the order of the groups.
        price: Price of all of them in ticks, joint repairs once.
        masks: Per group and piece, the checks that failed at first.
        used: The segments after their repair, by group.
        clean: False where some mandatory group cannot be mended.
        complete: False where some groups were not looked at.
    """

    length: int
    steps: list[Step]
    price: int
    masks: list[list[int]]
    used: list[list[Judged]]
    clean: bool
    complete: bool = True

    @property
    def cost(self) -> float:
        """The price in microseconds; infinite where it is unknown."""
        return microseconds(self.price)

    def ids(self) -> tuple[tuple[str, ...], ...]:
        """Ids of the options, piece by piece, of the pieces that all lengths have in common: those that are mended."""
        taken: dict[tuple[int, int], tuple[str, ...]] = {}
        for group, index, option, _ in self.steps:
            taken[group.index, index] = (*taken.get((group.index, index), ()), option.bound.id)
        return tuple(taken.values())


class Judge:
    """Judges and mends all groups of a bound rulebook at one length."""

    def __init__(self, bound: BoundRulebook, types: FactTypes) -> None:
        self.bound = bound
        self.order = Order(bound.rulebook.choosing.order)
        self.joints = len(bound.rulebook.joint)
        order = {group.id: index for index, group in enumerate(bound.groups)}
        self.groups = tuple(
            compile_group(group, index, order, bound, types) for index, group in enumerate(bound.groups)
        )
        self._order = _dearest_first(self.groups)
        self._identity_reads_peers = any(
            path.partition(".")[0] in group.roles
            for group in self.groups
            for check in group.bound.checks
            if check.layer == "identity"
            for path in reads(check.require)
        )
        self.nobody = types.segment()
        self.flags = compile_flags(bound)
        self.explained: dict[tuple[int, int], Any] = {}
        """What `reasons` has found out about a check, by group and bit."""

    def nothing(self) -> list[Any]:
        """Room for the empty segments of one decision, which are made where they are needed."""
        return [None] * len(self.groups)

    def outcome(
        self,
        state: Resolved,
        empties: list[Any],
        length: int,
        *,
        full: bool = True,
        at_most: int = NO_LIMIT,
    ) -> Outcome:
        """Judge every group at one length, and mend them all by the best plan that there is.

        Each piece is given its own best way first, peers before their readers. That is the plan, unless some piece
        has several ways of which none is the best whatever becomes of the others; then these are chosen together.

        Unless `full`, it stops at the first hopeless group, or where the price surely passes `at_most`, in ticks; then
        the outcome is neither complete nor clean.
        """
        result = Outcome(length, [], 0, [[] for _ in self.groups], [[] for _ in self.groups], True)
        mending: Mending | None = None
        for group in self._order:
            mending = self._mend_group(state, group, empties, length, result, mending, full=full)
            if mending is None or full:
                continue
            if not result.clean or (mending.least.price > at_most and self.order.cheapest):
                result.clean = result.complete = False
                return result
        if mending is not None:
            mending.finish(NO_LIMIT if full else at_most)
        return result

    def identity_fails(self, outcome: Outcome) -> bool:
        return any(
            mask & group.identity_mask
            for group, masks in zip(self.groups, outcome.masks, strict=True)
            if group.mandatory
            for mask in masks
        )

    def identity_holds(self, state: Resolved, empties: list[Any], length: int) -> bool:
        if self._identity_reads_peers:
            return not self.identity_fails(self.outcome(state, empties, length))
        for group in self.groups:
            if not group.mandatory:
                continue
            first, to = group.span(length)
            kernel = state.kernels[group.id]
            for _, piece, share_first, share_to in self._pieces(state, empties, group, length, first, to):
                peers = (None, False) * len(group.roles)
                if group.identity(piece, state.request, state.runtime, kernel, length, share_first, share_to, *peers):
                    return False
        return True

    def try_option(
        self, state: Resolved, group: CompiledGroup, option: CompiledOption, length: int, outcome: Outcome
    ) -> tuple[Any, list[str]] | str:
        """The first of a group's pieces on which an option may run, once it has, and checks that then fail; a text
        where it may run on none."""
        first, to = group.span(length)
        told = []
        for _, piece, a, b in self._pieces(state, [None] * len(self.groups), group, length, first, to):
            peers = self.peers_of(group, outcome, a, b, first, to)
            context = (state.request, state.runtime, state.kernels[group.id], length, a, b, *peers)
            mask = group.judge(piece, *context)
            if not option.mends & mask or option.needs_true & mask or not option.when(piece, *context):
                told.append("the option does not apply")
            elif not all(context[7 + 2 * slot] for slot in option.peer_slots):
                told.append("a source of the option is not ready")
            elif (mended := option.apply(piece, *context)) is None:
                told.append("the option would take a fact out of its domain")
            else:
                after = group.judge(mended, *context)
                return mended, sorted(check.id for bit, check in enumerate(group.bound.checks) if after & (1 << bit))
        return told[0]

    def peers_of(self, group: CompiledGroup, result: Outcome, a: int, b: int, first: int, to: int) -> tuple[Any, ...]:
        """Segment and readiness of each role's peer, flat; a piece without exactly one fitting peer gets none."""
        found: list[Any] = []
        for index in group.peer_index:
            peers = result.used[index]
            place = 0 if len(peers) == 1 else fitting(peers, max(a, first), min(b, to))
            found += (self.nobody, False) if place < 0 else (peers[place][1], peers[place][4])
        return tuple(found)

    def _pieces(
        self, state: Resolved, empties: list[Any], group: CompiledGroup, length: int, first: int, to: int
    ) -> list[tuple[int, Any, int, int]]:
        pieces = state.pieces.get(group.id)
        if pieces:
            if len(pieces) == 1:
                return [(0, pieces[0], 0, FAR)]
            chosen = select_pieces(group.bound, pieces, length, first, to)
            if chosen[0][0] >= 0:
                return chosen
        empty = empties[group.index]
        if empty is None:
            empty = empties[group.index] = group.empty(state.request, state.matched)
        return [(-1, empty, 0, FAR)]

    def _mend_group(
        self,
        state: Resolved,
        group: CompiledGroup,
        empties: list[Any],
        length: int,
        result: Outcome,
        mending: Mending | None,
        *,
        full: bool,
    ) -> Mending | None:
        """Judge a group's pieces, and give each one that fails its own best way; changes the result."""
        first, to = group.span(length)
        # Which checks of an optional group fail is only told, never asked by another group.
        judge = group.judge if full or group.mandatory else group.fails
        facts = (state.request, state.runtime, state.kernels[group.id], length)
        masks, judged = result.masks[group.index], result.used[group.index]
        for index, piece, a, b in self._pieces(state, empties, group, length, first, to):
            peers = self.peers_of(group, result, a, b, first, to) if group.roles else ()
            context = (*facts, a, b, *peers)
            mask = judge(piece, *context)
            masks.append(mask)
            if mending is not None and mending.open and self._reads_open(group, result, mending, a, b, first, to):
                piece, mask = mending.guess(group, (group.index, len(judged)), index, piece, mask, context)
            elif mask and group.mandatory:
                mending = mending or Mending(self, state, result, full=full)
                place = (group.index, len(judged))
                piece, mask = mending.settle_or_leave_open(group, place, index, piece, mask, context)
            judged.append((index, piece, a, b, not mask))
        return mending

    @staticmethod
    def _reads_open(
        group: CompiledGroup, result: Outcome, mending: Mending, a: int, b: int, first: int, to: int
    ) -> bool:
        return not mending.open.keys().isdisjoint(peer_places(group, result.used, max(a, first), min(b, to)))


def _dearest_first(groups: tuple[CompiledGroup, ...]) -> tuple[CompiledGroup, ...]:
    """Groups that a joint repair may serve before others, each after its peers: they decide soonest that a length is
    too dear.
    """
    order: dict[int, CompiledGroup] = {}

    def visit(group: CompiledGroup) -> None:
        for index in group.peer_index:
            visit(groups[index])
        order.setdefault(group.index, group)

    for group in sorted(groups, key=lambda one: not any(option.bound.joint for option in one.options)):
        visit(group)
    return tuple(order.values())
