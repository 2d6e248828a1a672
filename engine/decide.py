"""The decision: lengths, checks, recovery and joint choice; the short path from a resolved state to a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hitproof.engine.candidates import candidate_lengths
from hitproof.engine.compile import CompiledGroup, CompiledOption, compile_group
from hitproof.engine.facts import FactTypes
from hitproof.engine.reasons import dispose, explain_failures, raise_flags
from hitproof.engine.state import Resolved, select_pieces
from hitproof.spec.bound import BoundGroup, BoundRulebook
from hitproof.spec.condition import Ref, reads
from hitproof.spec.condition.pythongen import compile_python
from hitproof.spec.decision import SEVERITY, Decision, PlanStep, Verdict
from hitproof.spec.rulebook import LEVELS

__all__ = ["Engine", "Outcome"]

Judged = tuple[int, Any, int, int, bool]
"""A piece after its repair: index, segment, share first, share to, ready."""


@dataclass(slots=True)
class Outcome:
    """What one length would take.

    Args:
        steps: (group, piece index, option, cost) in the order of the groups.
        cost: Price of all of them, joint repairs once.
        masks: Per group and piece, the checks that failed at first.
        used: The segments after their repair, by group.
        clean: False where some mandatory group cannot be mended.
    """

    steps: list[tuple[CompiledGroup, int, CompiledOption, float]]
    cost: float
    masks: list[list[int]]
    used: list[list[Judged]]
    clean: bool


class Engine:
    """Decides requests by one bound rulebook; holds no state of its own."""

    def __init__(self, bound: BoundRulebook) -> None:
        self.bound = bound
        self.types = FactTypes(bound.rulebook)
        order = {group.id: index for index, group in enumerate(bound.groups)}
        self.groups = tuple(
            compile_group(group, index, order, bound, self.types) for index, group in enumerate(bound.groups)
        )
        self._own_identity = [_request_identity(group) for group in bound.groups]
        self._prefill = compile_python(bound.rulebook.prefill.cost, trusted=True)
        self._door = bound.rulebook.door
        self._prefill_reads = [
            (path, *path.split(".", 1)) for path in _reads(bound) if path.startswith(("request.", "runtime."))
        ]
        self._recompute = {
            group.id: None if group.recompute is None else compile_python(group.recompute.when, trusted=True)
            for group in bound.groups
        }

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
        lengths = candidate_lengths(self.bound, state)
        logical = next((length for length in lengths if self._identity_holds(state, empties, length)), 0)
        best_length, best, best_total = 0, None, self.prefill(state, 0)
        first: Outcome | None = None
        for length in lengths:
            if length > logical:
                continue
            rest = self.prefill(state, length)
            if first is not None and (rest > best_total or (rest == best_total and best is not None)):
                continue
            outcome = self.outcome(state, empties, length, full=explain and first is None)
            if first is None:
                first = outcome
            total = rest + outcome.cost
            # Lengths fall, so at equal price the longer one stands already; only L = 0 must yield.
            if outcome.clean and (total < best_total or (total == best_total and best is None)):
                best_length, best, best_total = length, outcome, total
        if explain and first is None and lengths:
            first = self.outcome(state, empties, lengths[0])
        return self._answer(state, logical, best_length, best, best_total, first, explain=explain)

    def outcome(self, state: Resolved, empties: list[Any], length: int, *, full: bool = True) -> Outcome:
        """Judge and mend every group at one length; stops at the first hopeless group unless `full`."""
        result = Outcome([], 0.0, [], [], True)
        joint: dict[str, float] = {}
        for group in self.groups:
            self._mend_group(state, group, empties, length, result, joint)
            if not result.clean and not full:
                return result
        result.cost += sum(joint.values())
        return result

    def try_option(
        self, state: Resolved, group: CompiledGroup, option: CompiledOption, length: int, outcome: Outcome
    ) -> list[str] | str:
        """Checks of a group that fail after one option has run on its first piece; a text where it does not apply."""
        first, to = group.span(length)
        _, piece, a, b = self._pieces(state, [None] * len(self.groups), group, length, first, to)[0]
        peers = self.peers_of(group, outcome, a, b, first, to)
        context = (state.request, state.runtime, state.kernels[group.bound.id], length, a, b, *peers)
        mask = group.judge(piece, *context)
        if not option.mends & mask or option.needs_true & mask or not option.when(piece, *context):
            return "the option does not apply"
        if not all(context[7 + 2 * slot] for slot in option.peer_slots):
            return "a source of the option is not ready"
        after = group.judge(option.apply(piece, *context), *context)
        return sorted(check.id for bit, check in enumerate(group.bound.checks) if after & (1 << bit))

    def prefill(self, state: Resolved, length: int) -> float:
        """Price of computing everything beyond `length`, in microseconds; infinite where it is unknown."""
        env = {path: getattr(getattr(state, scope), fact) for path, scope, fact in self._prefill_reads}
        env["length"] = length
        cost = self._prefill(env)
        return float("inf") if cost is None else float(cost)

    def empty(self, group: CompiledGroup, state: Resolved) -> Any:
        """The segment that stands for "nothing held": a discarded record under the request's own identity."""
        segment = self.types.segment()
        segment.group = group.bound.id
        segment.form, segment.tier, segment.bound_for = "discarded", "nowhere", "nowhere"
        segment.generation = segment.pins = segment.epoch = 0
        segment.start = segment.end = 0
        segment.marks = frozenset()
        for fact, request_fact in self._own_identity[group.index]:
            setattr(segment, fact, getattr(state.request, request_fact))
        segment.matched = state.matched
        return segment

    def _pieces(
        self, state: Resolved, empties: list[Any], group: CompiledGroup, length: int, first: int, to: int
    ) -> list[tuple[int, Any, int, int]]:
        pieces = state.pieces.get(group.bound.id, ())
        chosen = select_pieces(group.bound, pieces, length, first, to)
        if chosen[0][0] >= 0:
            return chosen
        empty = empties[group.index]
        if empty is None:
            empty = empties[group.index] = self.empty(group, state)
        return [(-1, empty, *chosen[0][2:])]

    def _identity_holds(self, state: Resolved, empties: list[Any], length: int) -> bool:
        for group in self.groups:
            if not group.bound.rules.mandatory:
                continue
            first, to = group.span(length)
            kernel = state.kernels[group.bound.id]
            for _, piece, share_first, share_to in self._pieces(state, empties, group, length, first, to):
                peers = (None, False) * len(group.roles)
                if group.identity(piece, state.request, state.runtime, kernel, length, share_first, share_to, *peers):
                    return False
        return True

    def _mend_group(
        self, state: Resolved, group: CompiledGroup, empties: list[Any], length: int, result: Outcome, joint: dict[str, float]
    ) -> None:
        first, to = group.span(length)
        kernel = state.kernels[group.bound.id]
        masks: list[int] = []
        judged: list[Judged] = []
        mandatory = group.bound.rules.mandatory
        for index, piece, a, b in self._pieces(state, empties, group, length, first, to):
            peers = self.peers_of(group, result, a, b, first, to)
            context = (state.request, state.runtime, kernel, length, a, b, *peers)
            mask = group.judge(piece, *context)
            masks.append(mask)
            if mask and mandatory:
                piece, mask = self._mend_piece(group, index, piece, mask, context, result, joint)
            judged.append((index, piece, a, b, not mask))
            if mask and mandatory:
                result.clean = False
        result.masks.append(masks)
        result.used.append(judged)

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
            option, cost = self._cheapest(group, piece, mask, context)
            if option is None:
                return piece, mask
            mended = option.apply(piece, *context)
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

    def _cheapest(
        self, group: CompiledGroup, piece: Any, mask: int, context: tuple[Any, ...]
    ) -> tuple[CompiledOption | None, float]:
        best: CompiledOption | None = None
        best_key: tuple[float, int, str] | None = None
        for option in group.options:
            if not option.mends & mask or option.needs_true & mask or not option.when(piece, *context):
                continue
            if not all(context[7 + 2 * slot] for slot in option.peer_slots):
                continue
            cost = option.cost(piece, *context)
            key = (float("inf") if cost is None else cost, option.level, option.bound.id)
            if best_key is None or key < best_key:
                best, best_key = option, key
        return best, best_key[0] if best_key is not None else 0.0

    def peers_of(
        self, group: CompiledGroup, result: Outcome, a: int, b: int, first: int, to: int
    ) -> tuple[Any, ...]:
        """Segment and readiness of each role's peer, flat; a piece without exactly one fitting peer gets none."""
        found: list[Any] = []
        for index in group.peer_index:
            peers = result.used[index]
            chosen = peers[0] if len(peers) == 1 else None
            if chosen is None:
                low, high = max(a, first), min(b, to)
                chosen = next((peer for peer in peers if peer[2] <= low and high <= peer[3]), None)
            found += (self.types.segment(), False) if chosen is None else (chosen[1], chosen[4])
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
        failed, reasons = explain_failures(self, state, first, logical)
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
        env = state.request.as_dict("request.")
        return all(when is not None and when(env) is True for when in self._recompute.values())


def _request_identity(group: BoundGroup) -> list[tuple[str, str]]:
    """Facts that identity checks read and that a healthy segment takes from the request, with the request's fact."""
    wanted = {path for check in group.checks if check.layer == "identity" for path in reads(check.require)}
    found = []
    for fact, value in group.healthy.items():
        if isinstance(value, Ref) and value.path.startswith("request.") and f"self.{fact}" in wanted:
            found.append((fact, value.path.removeprefix("request.")))
    return found


def _reads(bound: BoundRulebook) -> list[str]:
    return sorted(reads(bound.rulebook.prefill.cost))


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
