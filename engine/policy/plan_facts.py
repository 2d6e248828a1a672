"""The facts of a plan that admission rules read, worked out from an outcome."""

from __future__ import annotations

from collections.abc import Iterable

from hitproof.engine.outcome import Outcome, Step
from hitproof.engine.peers import Judged
from hitproof.engine.state import Resolved
from hitproof.spec.bound import BoundOption
from hitproof.spec.facts import Value

__all__ = ["brings_back", "plan_facts"]

Facts = dict[str, Value]
Span = tuple[int, int]


def plan_facts(state: Resolved, length: int, outcome: Outcome | None, prefill_us: float, recompute_us: float) -> Facts:
    """The facts by path, `plan.length` and so on; what depends on an unknown fact is unknown.

    Args:
        state: What the decision reads.
        length: Tokens that are reused.
        outcome: Repairs at that length, or None for a plan without any.
        prefill_us: Price of what is not reused, in microseconds; infinite where unknown.
        recompute_us: Price of the whole prompt.
    """
    unit = state.request.granularity or 1
    blocks = -(-state.request.length // unit)
    host, disk = 0, 0
    known = True
    level = 0
    spans: list[Span] = []
    placed: set[tuple[int, int]] = set()
    for step in outcome.steps if outcome is not None else ():
        group, index, option, _ = step
        level = max(level, option.level + 1)
        anew = index < 0 or not option.bound.own_bytes
        # What one repair has put in its place lies on the device for those that follow.
        if (group.index, index) in placed or not (anew or brings_back(option.bound)):
            continue
        placed.add((group.index, index))
        spans.append(_span(step, outcome.used[group.index], length, anew=anew))  # type: ignore[union-attr]
        piece = None if anew else state.pieces[group.id][index]
        if piece is not None and piece.tier in ("host", "disk"):
            known = known and piece.bytes is not None
            size = piece.bytes or 0
            host, disk = (host + size, disk) if piece.tier == "host" else (host, disk + size)
    loaded_blocks = _blocks(spans, unit, length // unit)
    return {
        "plan.length": length,
        "plan.recovery_us": _known(0.0 if outcome is None else outcome.cost),
        "plan.prefill_us": _known(prefill_us),
        "plan.recompute_us": _known(recompute_us),
        "plan.wait_us": _wait(state, host=host, disk=disk),
        "plan.host_bytes": host if known else None,
        "plan.disk_bytes": disk if known else None,
        "plan.blocks": blocks,
        "plan.held_blocks": length // unit - loaded_blocks,
        "plan.loaded_blocks": loaded_blocks,
        "plan.level": level if length else 3,
    }


def brings_back(option: BoundOption) -> bool:
    """Whether an option copies the bytes of the segment to another place; of a demoted one, back to the device."""
    return option.own_bytes and "address" in option.effect.chooses


def _span(step: Step, used: Iterable[Judged], length: int, *, anew: bool) -> Span:
    """Tokens whose rows a step makes or copies; a state of one length counts as the last token's."""
    group, index = step[0], step[1]
    if group.bound.rules.pieces == "point":
        return length - 1, length
    segment, share_first, share_to = next((one, a, b) for place, one, a, b, _ in used if place == index)
    if anew:
        first, to = group.span(length)
        return max(first, share_first), min(to, share_to)
    return segment.start or 0, length if segment.end is None else min(segment.end, length)


def _blocks(spans: Iterable[Span], unit: int, whole: int) -> int:
    """How many of the first `whole` blocks some span touches."""
    count = reached = 0
    for first, to in sorted(spans):
        start, end = max(first // unit, reached), min(-(-to // unit), whole)
        if first < to and start < end:
            count += end - start
            reached = end
    return count


def _known(price: float) -> float | None:
    return None if price == float("inf") else price


def _wait(state: Resolved, *, host: int, disk: int) -> float | None:
    """Time until the paths in use are free; unknown where a backlog that matters is."""
    longest = 0.0
    for size, fact in ((host, "host_backlog_us"), (disk, "disk_backlog_us")):
        wait = getattr(state.runtime, fact, None) if size else 0.0
        if wait is None:
            return None
        longest = max(longest, wait)
    return longest
