"""`hitproof test`: runs scenarios on the engine and tells which rules they exercised."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hitproof.cli.failure import EXIT_FAILED, EXIT_GOOD
from hitproof.cli.options import (
    DEFAULT_RULEBOOK,
    DebugOption,
    RatesOption,
    ReportFileOption,
    ReportFormat,
    ReportFormatOption,
    RulebookArgument,
)

if TYPE_CHECKING:
    from hitproof.cli.books import Book
    from hitproof.cli.coverage import Coverage
    from hitproof.rules.rates import RateSheet

__all__ = ["test"]


def test(
    rulebook: RulebookArgument = DEFAULT_RULEBOOK,
    scenario: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[SCENARIO]...", help="Files or folders. (default: the rulebook's own)"),
    ] = None,
    rates: RatesOption = None,
    format: ReportFormatOption = ReportFormat.text,
    report: ReportFileOption = None,
    debug: DebugOption = False,
) -> int:
    """Run scenarios: 0 all passed, 1 one failed. Shows which checks and options were decisive."""
    from hitproof.cli.formats import played, require_formats, wishes, write_report
    from hitproof.cli.output import write_json

    files = wishes(report)
    require_formats(format, files)
    found = _run(rulebook, tuple(scenario or ()), rates)
    if format is ReportFormat.text:
        _tell(found)
    elif format is ReportFormat.json:
        write_json(found)
    write_report(played(found), format, files)
    return EXIT_FAILED if found["failed"] else EXIT_GOOD


def _run(rulebook: str, paths: tuple[Path, ...], rates: Path | None) -> dict[str, Any]:
    from hitproof.cli.books import open_book
    from hitproof.cli.coverage import Coverage
    from hitproof.cli.progress import progress
    from hitproof.rules.scenarios import scenario_files

    book = open_book(rulebook)
    sheet = book.sheet(rates)
    files = list(dict.fromkeys(scenario_files(rulebook, paths)))
    coverage = Coverage(book.rules)
    with progress("running scenarios") as tell:
        outcomes = []
        for path in files:
            tell(f"running {path.name}")
            outcomes.append(_run_one(book, path, coverage, sheet))
    return {
        "rulebook": book.rules.name,
        "digest": book.rules.digest,
        "rates": "rulebook" if sheet is None else sheet.source,
        "passed": sum(one["passed"] for one in outcomes),
        "failed": sum(not one["passed"] for one in outcomes),
        "scenarios": outcomes,
        "coverage": coverage.as_dict(),
    }


def _run_one(book: Book, path: Path, coverage: Coverage, sheet: RateSheet | None) -> dict[str, Any]:
    from hitproof.engine.scenario import run_scenario
    from hitproof.rules.scenarios import load_scenario, scenario_profile
    from hitproof.spec.errors import HitproofError, Position

    scenario = load_scenario(path)
    try:
        bound = book.bound(scenario_profile(scenario), sheet)
        result = run_scenario(bound, scenario)
    except HitproofError as error:
        if error.where == Position():
            error.where = Position(str(path))
        raise
    coverage.note(bound, scenario, result)
    decision = result.decision
    return {
        "scenario": result.scenario,
        "file": str(path),
        "title": scenario.title,
        "passed": result.passed,
        "differences": result.differences,
        "verdict": None if decision is None else decision.verdict,
        "logical": None if decision is None else decision.logical,
        "usable": None if decision is None else decision.usable,
        "failed": [] if decision is None else list(decision.failed),
        "violated": result.violated,
    }


def _tell(report: dict[str, Any]) -> None:
    from hitproof.cli.output import show, table

    for one in report["scenarios"]:
        show(f"{'passed' if one['passed'] else 'FAILED'}  {one['scenario']}: {one['title']}")
        if not one["passed"]:
            show(f"        {one['file']}", *(f"        {difference}" for difference in one["differences"]))
    rows = [
        (kind, f"{part['decisive']} of {part['total']}", ", ".join(part["never"]) or "none")
        for kind, part in report["coverage"].items()
    ]
    show(
        table("Rules that decided something", ("rules", "decisive", "never decisive"), rows),
        f"{report['passed']} passed, {report['failed']} failed",
    )
