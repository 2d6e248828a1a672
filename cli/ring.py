"""`hitproof explain --ring`: the last decisions of a running engine, from its dump."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hitproof.cli.failure import EXIT_GOOD

if TYPE_CHECKING:
    from hitproof.engine.observe.ring_file import KeptDecision, KeptReason

__all__ = ["explain_ring"]

SHOWN = 20


def explain_ring(path: Path, number: int | None, *, as_json: bool) -> int:
    """Tell the last decisions of a dump, and explain one of them.

    Args:
        path: The dump.
        number: The decision to explain; the last one that reuses less than matched, where it is not given.
        as_json: All decisions as JSON instead.

    Raises:
        HitproofError: The dump cannot be read.
        UsageError: It has no decision, or none with this number.
    """
    from hitproof.cli.output import show, table, write_json
    from hitproof.engine.observe.ring_file import read_ring
    from hitproof.spec.errors import Position, UsageError

    kept = read_ring(path)
    if not kept:
        raise UsageError("the dump has no decision", where=Position(str(path)), expected="at least one line")
    chosen = _chosen(kept, number)
    if chosen is None:
        raise UsageError(
            "the dump has no decision of this number",
            where=Position(str(path)),
            got=number,
            expected=f"{kept[0].number} to {kept[-1].number}",
        )
    if as_json:
        write_json({"decisions": [one.model_dump() for one in kept], "explained": chosen.number})
        return EXIT_GOOD
    rows = [
        (one.number, _when(one.time), one.verdict, one.logical, one.usable, ", ".join(one.failed[:3]))
        for one in kept[-SHOWN:]
    ]
    headings = ("number", "time", "verdict", "matched", "reused", "did not hold")
    show(table(f"The last {len(rows)} of {len(kept)} decisions", headings, rows), "", *_lines(chosen))
    return EXIT_GOOD


def _chosen(kept: list[KeptDecision], number: int | None) -> KeptDecision | None:
    if number is not None:
        return next((one for one in kept if one.number == number), None)
    return next((one for one in reversed(kept) if one.failed or one.admission), kept[-1])


def _lines(one: KeptDecision) -> list[str]:
    lines = [
        f"Decision {one.number}: {one.verdict}",
        f"  {one.logical} tokens match, {one.usable} may be reused; it took {1e6 * one.seconds:.0f} us",
    ]
    if one.flags:
        lines.append(f"  flags: {', '.join(one.flags)}")
    lines += [f"  {step.group}: {step.option} by {step.repair} ({step.level})" for step in one.plan]
    lines += [f"  {group}: {what}" for group, what in one.dispositions.items()]
    for heading, reasons in (("What did not hold:", one.reasons), ("What stood against the plan:", one.admission)):
        if reasons:
            lines += [heading, *(line for reason in reasons for line in _reason(reason))]
    told = {reason.rule for reason in one.reasons}
    return lines + [f"  {rule}" for rule in one.failed if rule not in told]


def _reason(reason: KeptReason) -> list[str]:
    lines = [f"  {reason.rule} ({reason.layer}): {reason.because}", f"    {reason.conjunct}"]
    for path, value in reason.values.items():
        told = "unknown" if value is None else value if isinstance(value, str | int | float) else value.model_dump()
        lines.append(f"      {path} = {told}")
    return [*lines, f"    {reason.place}"]


def _when(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return "?"
