"""The decision: lengths, checks, recovery and joint choice; the short path from a resolved state to a verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hitproof.engine.candidates import proposed_lengths, resumable_lengths
from hitproof.engine.compile import (
    CompiledGroup,
    CompiledOption,
    compile_condition,
    compile_group,
    compile_price,
)
from hitproof.engine.facts import FactTypes
from hitproof.engine.reasons import dispose, explain_failures, raise_flags
from hitproof.engine.state import FAR, Resolved, select_pieces
from hitproof.spec.bound import BoundRulebook
from hitproof.spec.condition import interval, reads
from hitproof.spec.decision import SEVERITY, Decision, PlanStep, Verdict
from hitproof.spec.rulebook import LEVELS

__all__ = ["Engine", "Outcome"]

Judged = tuple[int, Any, int, int, bool]
"""A piece after its repair: index, segment, share first, share to, ready."""


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
    steps: list[tuple[CompiledGroup, int, CompiledOption, float]]
    cost: float
    masks: list[list[int]]
    used: list[list[Judged]]
    clean: bool
    complete: bool = True


class Engine:
    """Decides requests by one bound rulebook; holds no state of its own."""

    def __init__(self, bound: BoundRulebook) -> None:
        self.bound = bound
        self.types = FactTypes(bound.rulebook)
        order = {group.id: index for index, group in enumerate(bound.groups)}
        self.groups = tuple(
            compile_group(group, index, order, bound, self.types) for index, group in enumerate(bound.groups)
        )
        self._order = _dearest_first(self.groups)
        self._maybe_negative = {
            frozenset(group.peer_index[slot] for slot in option.peer_slots)
            for group in self.groups
            for option in group.options
            if interval(option.bound.cost)[0] < 0
        }
        self._identity_reads_peers = any(
            path.partition(".")[0] in group.roles
            for group in self.groups
            for check in group.bound.checks
            if check.layer == "identity"
            for path in reads(check.require)
        )
        self._price = compile_price(bound.rulebook.prefill.cost)
        self._door = bound.rulebook.door
        self._nobody = self.types.segment()
        recompute = {None if group.recompute is None else group.recompute.when for group in bound.groups}
        self._recompute = None if None in recompute else [compile_condition(when) for when in recompute if when]

    def decide(self, state: Resolved, *, explain: bool = True) -> Decision:
        """Decide one request.

        Args:
            state: Segments, request, run time and kernels.
            explain: Also give reasons, dispositions and flags; without it only what a replay counts.
        """
        request = state.request
        if any(getattr(request, name) is None for name in self._door):
            unknown = tuple(f"door/{name}" for name in self._door if getattr(request, name) is None)
            return Decision("miss", 0, 0, failed=unknown, digest=self.bound.rulebook.digest)
        empties: list[Any] = [None] * len(self.groups)
        proposed = proposed_lengths(state)
        price, runtime = self._price, state.runtime
        best_length, best, best_total = 0, None, self.prefill(state, 0)
        logical, first = self._longest(state, empties, proposed, best_total, full=explain)
        if explain and first is None and proposed:
            first = self.outcome(state, empties, logical or proposed[0])
        for length in resumable_lengths(self.bound, state, proposed):
            if length > logical:
                continue
            rest = price(request, runtime, length)
            if length < logical and (rest > best_total or (rest == best_total and best is not None)):
                continue
            if first is not None and length == first.length:
                outcome = first
            else:
                outcome = self.outcome(state, empties, length, full=False, at_most=best_total - rest)
            total = rest + outcome.cost
            # Lengths fall, so at equal price the longer one stands already; only L = 0 must yield.
            if outcome.clean and (total < best_total or (total == best_total and best is None)):
                best_length, best, best_total = length, outcome, total
        return self._answer(state, logical, best_length, best, best_total, first, explain=explain)

    def _longest(
        self, state: Resolved, empties: list[Any], lengths: list[int], nothing: float, *, full: bool
    ) -> tuple[int, Outcome | None]:
        """The longest length at which identity holds in every group, and its outcome where that was worked out."""
        if not lengths:
            return 0, None
        top = lengths[0]
        outcome = self.outcome(state, empties, top, full=full, at_most=nothing - self.prefill(state, top))
        if outcome.complete:
            if not self._identity_fails(outcome):
                return top, outcome
            lengths = lengths[1:]
        elif self._identity_holds(state, empties, top):
            return top, outcome
        return next((length for length in lengths if self._identity_holds(state, empties, length)), 0), None

    def _identity_fails(self, outcome: Outcome) -> bool:
        return any(
            mask & group.identity_mask
            for group, masks in zip(self.groups, outcome.masks, strict=True)
            if group.mandatory
            for mask in masks
        )

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
            if result.steps and result.cost + sum(joint.values()) > limit and self._only_grows(result):
                result.clean = result.complete = False
                return result
        if result.steps:
            self._add_up(result)
        return result

    def _only_grows(self, result: Outcome) -> bool:
        """Whether no price can be negative that is still to come: what might cost less than nothing lacks a source."""
        used = result.used
        return all(
            any(used[index] and not any(piece[4] for piece in used[index]) for index in sources)
            for sources in self._maybe_negative
        )

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

    def prefill(self, state: Resolved, length: int) -> float:
        """Price of computing everything beyond `length`, in microseconds; infinite where it is unknown."""
        price: float = self._price(state.request, state.runtime, length)
        return price

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

    def _identity_holds(self, state: Resolved, empties: list[Any], length: int) -> bool:
        if self._identity_reads_peers:
            return not self._identity_fails(self.outcome(state, empties, length))
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
        piece: Any,
        mask: int,
        context: tuple[Any, ...],
        result: Outcome,
        joint: dict[str, float],
    ) -> tuple[Any, int]:
        while mask:
            chosen = group.choose(mask, piece, *context)
            if chosen is None:
                return piece, mask
            option, cost = chosen
            mended = option.apply(piece, *context)
            if mended is None:
                return piece, mask
            after = group.judge(mended, *context)
            if after & mask == mask or after & ~mask:
                return piece, mask
            piece, mask = mended, after
            result.steps.append((group, index, option, cost))
            if option.bound.joint is None:
                result.cost += cost
            else:
                joint[option.bound.joint] = max(cost, joint.get(option.bound.joint, 0.0))
        return piece, mask

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

    def _answer(
        self,
        state: Resolved,
        logical: int,
        usable: int,
        best: Outcome | None,
        total: float,
        first: Outcome | None,
        *,
        explain: bool,
    ) -> Decision:
        verdict: Verdict
        if best is not None:
            level = max((option.level for _, _, option, _ in best.steps), default=None)
            verdict = "reuse" if level is None else SEVERITY[LEVELS[level]]  # type: ignore[assignment]
        else:
            verdict = "recompute" if logical else "miss"
            if not self._can_recompute(state):
                verdict = "refuse"
        steps = () if best is None else tuple(_step(*step) for step in best.steps)
        cost = 0.0 if best is None else best.cost
        if not explain:
            return Decision(verdict, logical, usable, steps, cost, total)
        failed, reasons = explain_failures(self, state, first)
        return Decision(
            verdict,
            logical,
            usable,
            steps,
            cost,
            total,
            failed,
            reasons,
            dispose(self, state, first),
            raise_flags(self, state, best, usable),
            self.bound.rulebook.digest,
        )

    def _can_recompute(self, state: Resolved) -> bool:
        return self._recompute is not None and all(holds(state.request) for holds in self._recompute)


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


def _step(group: CompiledGroup, index: int, option: CompiledOption, cost: float) -> PlanStep:
    return PlanStep(
        group=group.bound.id,
        segment=index,
        option=option.bound.id,
        repair=option.bound.repair,
        level=option.bound.level,
        joint=option.bound.joint,
        cost_us=None if cost == float("inf") else cost,
    )
