"""`hitproof replay`: what a hash-only cache would have claimed on a trace, and what was really reusable."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer

from hitproof.cli.failure import EXIT_GOOD
from hitproof.cli.options import DEFAULT_RULEBOOK, DebugOption, Format, FormatOption

if TYPE_CHECKING:
    from hitproof.engine.trace import TraceRequest
    from hitproof.spec.bound import BoundRulebook

__all__ = ["Retention", "parse_capacity", "replay"]

MAX_BLOCKS = 2**40
Mode = Literal["full", "periodic", "zero", "until_reallocated"]
RATES = ("logical_hit_rate", "effective_reuse_rate", "recovered_rate", "recomputed_rate")


class Retention(StrEnum):
    """Where the state that belongs to a length is kept."""

    full = "full"
    periodic = "periodic"
    zero = "zero"
    until_reallocated = "until_reallocated"
    all = "all"


def replay(
    trace: Annotated[Path, typer.Argument(metavar="TRACE", help="A request trace, JSON lines.")],
    model: Annotated[str, typer.Option("--model", help="A shipped profile's name, or a file.")],
    capacity: Annotated[
        str, typer.Option("--capacity", metavar="BLOCKS|unlimited", help="Blocks that the device holds.")
    ],
    host_blocks: Annotated[
        int, typer.Option("--host-blocks", min=0, max=MAX_BLOCKS, help="Blocks that host memory holds.")
    ] = 0,
    disk_blocks: Annotated[
        int, typer.Option("--disk-blocks", min=0, max=MAX_BLOCKS, help="Blocks that the disk holds.")
    ] = 0,
    retention: Annotated[
        list[Retention] | None,
        typer.Option("--retention", help="Where windows and states are kept; repeatable. (default: full)"),
    ] = None,
    period: Annotated[
        int, typer.Option("--period", min=1, max=MAX_BLOCKS, help="Blocks between two kept, for `periodic`.")
    ] = 16,
    rulebook: Annotated[
        str, typer.Option("--rulebook", help="An embedded rulebook's name, a folder, or a rulebook.yaml.")
    ] = DEFAULT_RULEBOOK,
    inject_version_changes: Annotated[
        float,
        typer.Option("--inject-version-changes", min=0, max=1, help="Share of requests that find a new version."),
    ] = 0.0,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the injected changes.")] = 0,
    format: FormatOption = Format.text,
    debug: DebugOption = False,
) -> int:
    """Replay a trace through the decision engine; logical hits and effective reuse are kept apart."""
    from hitproof.cli.books import open_book
    from hitproof.cli.output import write_json
    from hitproof.rules.profiles import load_profile

    settings = {
        "capacity": parse_capacity(capacity),
        "host_blocks": host_blocks,
        "disk_blocks": disk_blocks,
        "period": period,
        "version_change_rate": inject_version_changes,
        "seed": seed,
    }
    bound = open_book(rulebook).bound(load_profile(model))
    modes = _modes(retention)
    reports = [_run(trace, bound, mode, settings) for mode in modes]
    if format is Format.json:
        write_json(reports[0] if len(reports) == 1 else {"reports": reports})
    else:
        _tell(reports, modes, str(trace), bound.profile.name)
    return EXIT_GOOD


def _run(trace: Path, bound: BoundRulebook, mode: Mode, settings: dict[str, Any]) -> dict[str, Any]:
    from hitproof.cli.progress import progress
    from hitproof.engine.replay import replay as replay_trace
    from hitproof.engine.trace import read_trace

    requests = read_trace(trace)
    with progress(f"replaying, retention {mode}") as tell:
        report = replay_trace(_counted(requests, tell, mode), bound, retention=mode, **settings)
    return report.as_dict()


def parse_capacity(text: str) -> int | None:
    """Blocks of the device, None where unlimited.

    Raises:
        UsageError: The text is neither.
    """
    from hitproof.spec.errors import UsageError

    if text == "unlimited":
        return None
    if text.isascii() and text.isdigit() and len(text) <= 13 and 0 < int(text) <= MAX_BLOCKS:
        return int(text)
    raise UsageError(
        "the capacity cannot be used",
        got=text,
        expected=f"a whole number from 1 to {MAX_BLOCKS}, or unlimited",
    )


def _modes(chosen: Sequence[Retention] | None) -> list[Mode]:
    if chosen and Retention.all in chosen:
        return list(get_args(Mode))
    return [mode for mode in get_args(Mode) if mode in (chosen or (Retention.full,))]


def _counted(requests: Iterator[TraceRequest], tell: Callable[[str], None], mode: str) -> Iterator[TraceRequest]:
    for count, request in enumerate(requests, start=1):
        if not count % 1_000:
            tell(f"replaying, retention {mode}: {count} requests")
        yield request


def _tell(reports: list[dict[str, Any]], modes: Sequence[str], trace: str, model: str) -> None:
    from hitproof.cli.output import show, table

    first = reports[0]
    show(f"{trace} on {model}: {first['requests']} requests, {first['block_touches']} blocks touched")
    for unit in ("blocks", "tokens"):
        rows = [
            (mode, *(_percent(report[rate][unit]) for rate in RATES))
            for mode, report in zip(modes, reports, strict=True)
        ]
        headings = ("retention", "logical hit", "effective reuse", "recovered", "recomputed")
        show(table(f"Share of all {unit} touched", headings, rows))
    if first.get("injected"):
        show(f"{first['injected']} version changes were injected; they are no part of the trace")
    for mode, report in zip(modes, reports, strict=True):
        counts = ", ".join(f"{count} {verdict}" for verdict, count in report["decisions"].items())
        costs = ", ".join(f"{level} {us / 1e6:.3f} s" for level, us in report["recovery_cost_us"].items())
        show(
            f"{mode}: {counts or 'no decisions'}",
            f"  recovery: {costs or 'none'}; replayed in {report['seconds']:.2f} s",
        )


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"
