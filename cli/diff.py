"""`hitproof diff`: what one rulebook accepts and another refuses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hitproof.cli.failure import EXIT_FAILED, EXIT_GOOD, EXIT_UNKNOWN
from hitproof.cli.options import DebugOption, ProfileOption, ReportFileOption, ReportFormat, ReportFormatOption

if TYPE_CHECKING:
    from hitproof.spec.scenario import Scenario
    from hitproof.verification.diff import DiffReport

__all__ = ["diff"]

_EXITS = {
    "equal": EXIT_GOOD,
    "stricter": EXIT_GOOD,
    "looser": EXIT_FAILED,
    "incomparable": EXIT_FAILED,
    "undecided": EXIT_UNKNOWN,
}


def diff(
    old: Annotated[str, typer.Argument(metavar="OLD", help="A rulebook: name, folder, file, or REVISION:PATH of git.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The one that is to take its place.")],
    profile: ProfileOption = None,
    timeout_ms: Annotated[
        int, typer.Option("--timeout-ms", min=1, max=86_400_000, help="Time for each question to the solver.")
    ] = 20_000,
    out: Annotated[Path | None, typer.Option("--out", help="Folder for the witnesses, as scenario files.")] = None,
    format: ReportFormatOption = ReportFormat.text,
    report: ReportFileOption = None,
    debug: DebugOption = False,
) -> int:
    """Compare two rulebooks by meaning: 0 equal or stricter, 1 looser or incomparable, 2 undecided."""
    from hitproof.cli.books import select_profiles
    from hitproof.cli.formats import require_formats, wishes, write_report
    from hitproof.cli.formats.compared import compared
    from hitproof.cli.output import write_json
    from hitproof.cli.progress import progress
    from hitproof.cli.revisions import rulebook_at
    from hitproof.cli.verify import require_solver

    files = wishes(report)
    require_formats(format, files)
    chosen = select_profiles(profile)
    with rulebook_at(old) as before, rulebook_at(new) as after:
        require_solver()
        from hitproof.engine.scenario import EngineReplayer
        from hitproof.verification.diff import compare

        with progress(f"comparing {before.rules.name} with {after.rules.name}") as tell:
            found = compare(
                before.rules, after.rules, chosen, replayer=EngineReplayer(), timeout_ms=timeout_ms, progress=tell
            )
        subject, file = after.rules.name, after.rules.where.file
    if not Path(file).exists():
        # A revision was unpacked to a folder that is gone now.
        file = new.partition(":")[2]
    if out is not None:
        _write_witnesses(found, out)
    if format is ReportFormat.text:
        _tell(found)
    elif format is ReportFormat.json:
        write_json(found.model_dump(mode="json"))
    write_report(compared(found, subject, file), format, files)
    return _EXITS[found.relation]


def _write_witnesses(report: DiffReport, folder: Path) -> None:
    from hitproof.cli.output import make_folder, write_file
    from hitproof.rules.scenarios import dump_scenario

    make_folder(folder)
    for difference in report.differences:
        for witness in difference.witnesses:
            write_file(folder / f"{difference.profiles[0]}-{witness.direction}.yaml", dump_scenario(witness.scenario))


def _tell(report: DiffReport) -> None:
    from hitproof.cli.output import show, table

    if report.differences:
        rows = [
            (one.what, one.subject, one.relation, one.sentence, _models(one.profiles, report))
            for one in report.differences
        ]
        show(table("Differences of meaning", ("what", "where", "newer is", "in words", "models"), rows))
    for one in report.differences:
        for witness in one.witnesses:
            told = "replayed by both" if witness.replayed else f"not replayed: {witness.why}"
            at = witness.scenario.expect.at
            show(f"{witness.direction.replace('_', ' ')} at length {at}, {one.profiles[0]} ({told}):")
            show(*_states(witness.scenario))
    if report.prices:
        show(f"Prices and policies differ, which accept nothing: {', '.join(report.prices)}")
    show(f"The newer rulebook is {report.relation}.")


def _models(names: list[str], report: DiffReport) -> str:
    return "all" if len(names) == len(report.profiles) else ", ".join(names)


def _states(scenario: Scenario) -> Iterator[str]:
    """The segments of a witness, a line each, with what the solver chose."""
    for segment in scenario.segments:
        facts = ", ".join(f"{name}: {value}" for name, value in segment.facts.items())
        yield f"  {segment.group}: {facts or 'healthy'}"
