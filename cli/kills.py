"""`hitproof soak --kills N`: writers of the disk tier are killed, and what they reported is looked for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from hitproof.cli.failure import EXIT_FAILED, EXIT_GOOD
from hitproof.cli.options import Format

if TYPE_CHECKING:
    from hitproof.engine.soak.kills import Kills

__all__ = ["run_kills"]

_MOST_FAULTS = 20


def run_kills(kills: int, seed: int, format: Format) -> int:
    """Kills writers at random moments and tells what was found; answers the exit code.

    Args:
        kills: How many.
        seed: Of what is written and of the moments.
        format: Text or JSON.
    """
    from hitproof.cli.output import write_json
    from hitproof.cli.progress import progress
    from hitproof.engine.soak.kills import kill_writers

    with progress(f"{kills} kills") as tell:
        found = kill_writers(kills, seed, tell=tell)
    if format is Format.json:
        write_json(found)
    else:
        _tell(found)
    return EXIT_FAILED if found.faults else EXIT_GOOD


def _tell(found: Kills) -> None:
    from hitproof.cli.output import show, table

    inside = sum(count for call, count in found.inside.items() if call != "between")
    show(
        f"{found.kills} kills in {found.seconds:.0f} s: {inside} inside a call, "
        f"{found.before_first_receipt} before the writer's first receipt"
    )
    show(table("Kills, and the step that came next or had begun", ("in", "step", "kills"), _rows(found)))
    show(table("Reported by writers, and found at starts", ("what", "times"), found.counts.items()))
    for fault in found.faults[:_MOST_FAULTS]:
        show(f"FAULT: {fault}")
    if found.faults:
        show(f"{len(found.faults)} faults")
    else:
        show("nothing that was reported stored is lost, nothing deleted is back, nothing torn was served")


def _rows(found: Kills) -> Iterable[tuple[str, str, int]]:
    for place, count in found.at.items():
        call, _, step = place.partition(": ")
        yield call, step, count
