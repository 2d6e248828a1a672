"""`hitproof mutate`: which edits of a rulebook the claims notice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, get_args

import typer

from hitproof.cli.failure import EXIT_FAILED, EXIT_GOOD, EXIT_UNKNOWN
from hitproof.cli.options import (
    DEFAULT_RULEBOOK,
    DebugOption,
    ProfileOption,
    ReportFileOption,
    ReportFormat,
    ReportFormatOption,
    RulebookArgument,
)

if TYPE_CHECKING:
    from hitproof.spec.mutation import MutationReport

__all__ = ["mutate", "mutate_exit_code"]


def mutate(
    rulebook: RulebookArgument = DEFAULT_RULEBOOK,
    profile: ProfileOption = None,
    object: Annotated[
        list[str] | None, typer.Option("--object", help="Only rules of this object; again for more. (default: all)")
    ] = None,
    rule: Annotated[
        list[str] | None, typer.Option("--rule", help="Only rules of this id; again for more. (default: all)")
    ] = None,
    timeout_ms: Annotated[
        int, typer.Option("--timeout-ms", min=1, max=86_400_000, help="Time for each question to the solver.")
    ] = 20_000,
    jobs: Annotated[
        int | None, typer.Option("--jobs", min=1, max=256, help="Processes. (default: as many as there are cores)")
    ] = None,
    format: ReportFormatOption = ReportFormat.text,
    report: ReportFileOption = None,
    debug: DebugOption = False,
) -> int:
    """Drop or turn every guard, term and effect: 0 each is noticed or redundant, 1 one survives, 2 only undecided."""
    from hitproof.cli.books import open_book, select_profiles
    from hitproof.cli.formats import mutated, require_formats, wishes, write_report
    from hitproof.cli.output import write_json
    from hitproof.cli.progress import progress
    from hitproof.cli.verify import require_solver

    files = wishes(report)
    require_formats(format, files)
    book = open_book(rulebook)
    chosen = select_profiles(profile)
    for one in chosen:
        book.bound(one)
    require_solver()
    from hitproof.engine.scenario import EngineReplayer
    from hitproof.verification.mutation.mutate import choose_edits
    from hitproof.verification.mutation.mutate import mutate as judge_all

    edits = choose_edits(book.source, objects=object, rules=rule)
    with progress(f"{len(edits)} edits of {book.rules.name}") as tell:
        found = judge_all(
            book.source,
            chosen,
            edits=edits,
            replayer=EngineReplayer(),
            timeout_ms=timeout_ms,
            jobs=jobs,
            progress=lambda fate: tell(f"{fate.fate}: {fate.id}"),
        )
    if format is ReportFormat.text:
        _tell(found)
    elif format is ReportFormat.json:
        write_json(found.model_dump(mode="json"))
    write_report(mutated(found), format, files)
    return mutate_exit_code(found)


def mutate_exit_code(report: MutationReport) -> int:
    """1 where an edit survives though every question was answered, 2 where all that survive are undecided, else 0."""
    if not report.survivors:
        return EXIT_GOOD
    return EXIT_UNKNOWN if all(one.detail for one in report.survivors) else EXIT_FAILED


def _tell(report: MutationReport) -> None:
    from hitproof.cli.output import show, table
    from hitproof.spec.mutation import Fate

    fates = get_args(Fate)
    rows = []
    for section in dict.fromkeys(edit.section for edit in report.edits):
        mine = [edit.fate for edit in report.edits if edit.section == section]
        rows.append((section, str(len(mine)), *(str(mine.count(fate)) for fate in fates)))
    rows.append(("all", str(len(report.edits)), *(str(report.count(fate)) for fate in fates)))
    show(table(f"{report.rulebook}, digest {report.digest[:12]}", ("edits of", "all", *fates), rows))
    for edit in report.survivors:
        show(f"{edit.place}: {edit.rule} {edit.change}: survives{f' ({edit.detail})' if edit.detail else ''}")
    show(f"Survivors: {len(report.survivors)}")
