"""What one length would take: every group judged and mended, peers first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hitproof.engine.compile import CompiledGroup, CompiledOption, compile_group
from hitproof.engine.facts import FactTypes
from hitproof.engine.state import FAR, Resolved, select_pieces
from hitproof.spec.bound import BoundRulebook
from hitproof.spec.condition import reads

__all__ = ["Judge", "Outcome", "Step"]

Judged = tuple[int, Any, int, int, bool]
"""A piece after its repair: index, segment, share first, share to, ready."""

Step = tuple[CompiledGroup, int, CompiledOption, float]
"""A repair: group, piece index, option, cost in microseconds."""


@dataclass(slots=True)
class Outcome:
    """What one length would take.

    Args:
        length: The length, in tokens.
        steps: (group, piece index, option, cost) in the order of the groups.
        cost: Price of all of them, joint repairs once.
        masks: Per group and piece, the checks that failed at first.
        used: The segments after their repair, by group.
        clean: False where some mandatory group cannot be mended.
        complete: False where some groups were not looked at.
    """

    length: int
    steps: list[Step]
    cost: float
    masks: list[list[int]]
    used: list[list[Judged]]
    clean: bool
    complete: bool = True


class Judge:
    """Judges and mends all groups of a bound rulebook at one length."""

    def __init__(self, bound: BoundRulebook, types: FactTypes) -> None:
        self.bound = bound
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
        self._nobody = types.segment()

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
        at_most: float = float("inf"),
    ) -> Outcome:
        """Judge and mend every group at one length.

        Unless `full`, it stops at the first hopeless group, or where the price has surely passed `at_most`; then the
        outcome is neither complete nor clean.
        """
        result = Outcome(length, [], 0.0, [[] for _ in self.groups], [[] for _ in self.groups], True)
        joint: dict[str, float] = {}
        # A sum taken in another order may differ in its last bits.
        limit = at_most + 1e-9 * abs(at_most) + 1e-6
        for group in self._order:
            # Which checks of an optional group fail is only told, never asked by another group.
            judge = group.judge if full or group.mandatory else group.fails
            self._mend_group(state, group, judge, empties, length, result, joint)
            if full:
                continue
            if not result.clean:
                result.complete = False
                return result
            if result.steps and result.cost + sum(joint.values()) > limit:
                result.clean = result.complete = False
                return result
        if result.steps:
            self._add_up(result)
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
    ) -> list[str] | str:
        """Checks of a group that fail after one option has run on its first piece; a text where it does not apply."""
        first, to = group.span(length)
        _, piece, a, b = self._pieces(state, [None] * len(self.groups), group, length, first, to)[0]
        peers = self.peers_of(group, outcome, a, b, first, to)
        context = (state.request, state.runtime, state.kernels[group.id], length, a, b, *peers)
        mask = group.judge(piece, *context)
        if not option.mends & mask or option.needs_true & mask or not option.when(piece, *context):
            return "the option does not apply"
        if not all(context[7 + 2 * slot] for slot in option.peer_slots):
            return "a source of the option is not ready"
        mended = option.apply(piece, *context)
        if mended is None:
            return "the option would take a fact out of its domain"
        after = group.judge(mended, *context)
        return sorted(check.id for bit, check in enumerate(group.bound.checks) if after & (1 << bit))

    def peers_of(self, group: CompiledGroup, result: Outcome, a: int, b: int, first: int, to: int) -> tuple[Any, ...]:
        """Segment and readiness of each role's peer, flat; a piece without exactly one fitting peer gets none."""
        found: list[Any] = []
        for index in group.peer_index:
            peers = result.used[index]
            if len(peers) == 1:
                found += peers[0][1], peers[0][4]
                continue
            low, high = max(a, first), min(b, to)
            chosen = next((peer for peer in peers if peer[2] <= low and high <= peer[3]), None)
            found += (self._nobody, False) if chosen is None else (chosen[1], chosen[4])
        return tuple(found)

    def _add_up(self, result: Outcome) -> None:
        """Steps and their sum in the order of the groups, whatever the order of work was."""
        result.steps.sort(key=lambda step: step[0].index)
        joint: dict[str, float] = {}
        result.cost = 0.0
        for _, _, option, cost in result.steps:
            name = option.bound.joint
            if name is None:
                result.cost += cost
            else:
                joint[name] = max(cost, joint.get(name, 0.0))
        result.cost += sum(joint.values())

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
        judge: Callable[..., int],
        empties: list[Any],
        length: int,
        result: Outcome,
        joint: dict[str, float],
    ) -> None:
        first, to = group.span(length)
        facts = (state.request, state.runtime, state.kernels[group.id], length)
        masks, judged = result.masks[group.index], result.used[group.index]
        for index, piece, a, b in self._pieces(state, empties, group, length, first, to):
            context = (*facts, a, b, *(self.peers_of(group, result, a, b, first, to) if group.roles else ()))
            mask = judge(piece, *context)
            masks.append(mask)
            if mask and group.mandatory:
                piece, mask = self._mend_piece(group, index, piece, mask, context, result, joint)
                if mask:
                    result.clean = False
            judged.append((index, piece, a, b, not mask))

    def _mend_piece(
        self,
        group: CompiledGroup,
        index: int,
        held: Any,
        failed: int,
        context: tuple[Any, ...],
        result: Outcome,
        joint: dict[str, float],
    ) -> tuple[Any, int]:
        piece, mask = held, failed
        trail: list[tuple[CompiledOption, float]] = []
        while mask:
            chosen = group.choose(mask, piece, *context)
            if chosen is None:
                break
            option, cost = chosen
            mended = option.apply(piece, *context)
            if mended is None:
                break
            after = group.judge(mended, *context)
            if after & mask == mask or after & ~mask:
                break
            piece, mask = mended, after
            trail.append((option, cost))
        if len(trail) > 1 and not mask:
            piece, trail = self._without_vain_steps(group, held, failed, context, piece, trail)
        for option, cost in trail:
            result.steps.append((group, index, option, cost))
            if option.bound.joint is None:
                result.cost += cost
            else:
                joint[option.bound.joint] = max(cost, joint.get(option.bound.joint, 0.0))
        return piece, mask

    def _without_vain_steps(
        self,
        group: CompiledGroup,
        held: Any,
        failed: int,
        context: tuple[Any, ...],
        piece: Any,
        trail: list[tuple[CompiledOption, float]],
    ) -> tuple[Any, list[tuple[CompiledOption, float]]]:
        """The last step alone where it makes the bytes anew and would have done so at once: the others were in vain."""
        last = trail[-1][0]
        if last.bound.own_bytes or not last.when(held, *context):
            return piece, trail
        alone = last.apply(held, *context)
        if alone is None or group.judge(alone, *context):
            return piece, trail
        cost = last.cost(held, *context)
        price = float("inf") if cost is None else cost
        return (alone, [(last, price)]) if price <= sum(paid for _, paid in trail) else (piece, trail)


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
