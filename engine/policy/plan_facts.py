"""The facts of a plan that admission rules read, worked out from an outcome."""

from __future__ import annotations

from hitproof.engine.outcome import Outcome
from hitproof.engine.state import Resolved
from hitproof.spec.facts import Value

__all__ = ["plan_facts"]

Facts = dict[str, Value]


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
    host, disk, loaded = 0, 0, 0
    known = True
    level = 0
    for group, index, option, _ in outcome.steps if outcome is not None else ():
        level = max(level, option.level + 1)
        pieces = state.pieces.get(group.id, ())
        if index < 0 or not option.bound.own_bytes:
            first, to = group.span(length)
            loaded = max(loaded, to - first)
            continue
        piece = pieces[index]
        if "address" not in option.bound.effect.chooses:
            continue
        if piece.start is not None and piece.end is not None:
            loaded = max(loaded, min(piece.end, length) - piece.start, 0)
        if piece.tier in ("host", "disk"):
            known = known and piece.bytes is not None
            size = piece.bytes or 0
            host, disk = (host + size, disk) if piece.tier == "host" else (host, disk + size)
    loaded_blocks = min(-(-loaded // unit), length // unit)
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
