"""`hitproof verify`: proves or refutes every claim about a rulebook."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hitproof.cli.failure import EXIT_FAILED, EXIT_GOOD, EXIT_INTERNAL, EXIT_UNKNOWN
from hitproof.cli.options import (
    DEFAULT_RULEBOOK,
    DebugOption,
    ProfileOption,
    ReportFileOption,
    ReportFormat,
    ReportFormatOption,
    RulebookArgument,
)
from hitproof.cli.proofs import Wanted
from hitproof.spec.errors import UsageError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hitproof.rules.source import RuleSource
    from hitproof.spec.profile import Profile
    from hitproof.spec.proof import ClaimResult, VerifyReport
    from hitproof.spec.rulebook import Rulebook
    from hitproof.verification.questions import Checking

__all__ = ["require_solver", "verify", "verify_exit_code"]

# So many profiles have a column each; more would not fit beside each other.
_COLUMNS = 3


def verify(
    rulebook: RulebookArgument = DEFAULT_RULEBOOK,
    profile: ProfileOption = None,
    claim: Annotated[
        list[str] | None, typer.Option("--claim", help="A claim's id; again for more. (default: all)")
    ] = None,
    mutants: Annotated[
        bool, typer.Option("--mutants", help="Also break the rules on purpose: each break must be refuted.")
    ] = False,
    timeout_ms: Annotated[
        int,
        typer.Option(
            "--timeout-ms", min=1, max=86_400_000, help="Time for each question to the solver, behind its effort."
        ),
    ] = 60_000,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for the counterexamples: scenarios, diagrams and traces.")
    ] = None,
    counterexamples: Annotated[
        int, typer.Option("--counterexamples", min=1, max=100, help="Most counterexamples to a claim and model.")
    ] = 1,
    cross_check: Annotated[
        bool, typer.Option("--cross-check", help="Ask cvc5 again whatever Z3 answered with no: both must agree.")
    ] = False,
    emit_smt: Annotated[
        Path | None, typer.Option("--emit-smt", help="Folder for those questions, as SMT-LIB files for any solver.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", min=1, max=256, help="Processes. (default: as many as there are cores)")
    ] = None,
    proof: Annotated[
        Path | None, typer.Option("--proof", help="File that remembers what was proved, for the next run.")
    ] = None,
    verdicts: Annotated[
        Path | None, typer.Option("--verdicts", help="Write the verdicts alone, for strict loading.")
    ] = None,
    sign: Annotated[
        Path | None, typer.Option("--sign", help="Private key (PEM, Ed25519) that signs the verdicts.")
    ] = None,
    format: ReportFormatOption = ReportFormat.text,
    report: ReportFileOption = None,
    debug: DebugOption = False,
) -> int:
    """Prove or refute every claim: 0 all proved, 1 one refuted, 2 one unknown."""
    from hitproof.cli.formats import require_formats, verified, wishes, write_report
    from hitproof.cli.output import write_json
    from hitproof.rules.source import read_source

    wanted = wishes(report)
    require_formats(format, wanted)
    if emit_smt is not None and proof is not None:
        raise UsageError("what is remembered is not asked again", got="--proof", expected="--emit-smt without --proof")
    checking = _checking(emit_smt, second=cross_check)
    files = Wanted(proof, verdicts, sign)
    source = read_source(rulebook)
    found = _run(
        source,
        profile,
        claim,
        timeout_ms,
        mutants=mutants,
        jobs=jobs,
        checking=checking,
        files=files,
        counterexamples=counterexamples,
    )
    written = {} if out is None else _write_counterexamples(found, source, out)
    if format is ReportFormat.text:
        _tell(found, written, crossed=cross_check)
    elif format is ReportFormat.json:
        write_json(found.model_dump(mode="json"))
    write_report(verified(found, next(iter(source.files))), format, wanted)
    return verify_exit_code(found)


def _checking(folder: Path | None, *, second: bool) -> Checking | None:
    """What becomes of each question beside its answer."""
    from hitproof.cli.output import make_folder

    if folder is None and not second:
        return None
    require_solver()
    from hitproof.verification.questions import Checking
    from hitproof.verification.second import Cvc5, require_cvc5

    if second:
        require_cvc5()
    if folder is not None:
        make_folder(folder)
    return Checking(Cvc5() if second else None, None if folder is None else str(folder))


def verify_exit_code(report: VerifyReport) -> int:
    """1 where a claim is refuted or a mutant survives, 2 where something stays unknown, else 0.

    4 before all of them where the engine does otherwise than a counterexample says: then either reading of the rules
    may be wrong, and no verdict of the run can be relied upon.
    """
    if any(result.verdict == "unknown" and _contradicted(result) for result in report.claims):
        return EXIT_INTERNAL
    survivors = [mutant for mutant in report.mutants if not mutant.killed]
    if report.verdict == "refuted" or any(one.result.verdict != "unknown" for one in survivors):
        return EXIT_FAILED
    return EXIT_UNKNOWN if report.verdict == "unknown" or survivors else EXIT_GOOD


def _contradicted(result: ClaimResult) -> bool:
    """All that was found against the claim is a story in which the engine does otherwise."""
    found = result.counterexample
    return found is not None and not found.replayed and bool(found.differences)


def _run(
    source: RuleSource,
    profiles: Sequence[str] | None,
    claims: Sequence[str] | None,
    timeout_ms: int,
    *,
    mutants: bool,
    jobs: int | None,
    checking: Checking | None,
    files: Wanted,
    counterexamples: int,
) -> VerifyReport:
    """What is remembered where that is all that is asked, else what is found out."""
    from hitproof.cli.books import select_profiles
    from hitproof.cli.progress import progress
    from hitproof.cli.proofs import check_wanted, earlier_proof, write_proofs, write_verdicts
    from hitproof.spec.proof import CLAIMS

    wanted = _claims(claims)
    check_wanted(files, partly=wanted is not None)
    chosen = select_profiles(profiles)
    earlier = earlier_proof(files.proof)
    crossed = checking is not None and checking.second is not None
    asks_all = not mutants and (checking is None or checking.folder is None)
    if earlier is not None and earlier.report is not None and asks_all:
        require_solver()
        from hitproof.verification.memory import same_question

        # A rulebook of this digest was read and bound when its proof was made, by this very code.
        if same_question(earlier, source.digest, chosen, wanted or CLAIMS, crossed=crossed):
            write_verdicts(files, earlier)
            return earlier.report
    rules = _bindable(source, chosen)
    require_solver()
    from hitproof.engine.scenario import EngineReplayer
    from hitproof.verification import verify as verify_rulebook
    from hitproof.verification.memory import Memory

    memory = Memory(earlier, crossed=crossed)
    with progress(f"verifying {rules.name}") as tell:
        report = verify_rulebook(
            source,
            chosen,
            claims=wanted,
            replayer=EngineReplayer(),
            timeout_ms=timeout_ms,
            mutants=mutants,
            progress=tell,
            jobs=jobs,
            checking=checking,
            memory=memory,
            counterexamples=counterexamples,
        )
    write_proofs(files, memory, report, chosen)
    return report


def _bindable(source: RuleSource, profiles: Sequence[Profile]) -> Rulebook:
    """The rulebook, which binds to all of these models.

    Raises:
        HitproofError: It cannot be read, or a model does not fit.
    """
    from hitproof.rules.bind import bind_rulebook
    from hitproof.rules.resolve import resolve

    rules = resolve(source)
    for profile in profiles:
        bind_rulebook(rules, profile)
    return rules


def _claims(names: Sequence[str] | None) -> list[str] | None:
    from hitproof.spec.proof import CLAIMS
    from hitproof.spec.yaml_fields import suggest

    for name in names or ():
        if name not in CLAIMS:
            raise UsageError("there is no such claim", got=name, expected=", ".join(CLAIMS), hint=suggest(name, CLAIMS))
    return list(dict.fromkeys(names)) if names else None


def require_solver() -> None:
    """The solver is an extra.

    Raises:
        UsageError: It is not installed.
    """
    from importlib.util import find_spec

    if find_spec("z3") is None:
        raise UsageError(
            "the verifier needs the solver Z3, which is not installed",
            expected="the package z3-solver",
            hint="pip install 'hitproof[verify]'",
        )


def _write_counterexamples(report: VerifyReport, source: RuleSource, folder: Path) -> dict[str, Path]:
    from hitproof.cli.stories import write_stories
    from hitproof.rules.resolve import resolve

    return write_stories(report, resolve(source), folder)


def _verdicts(title: str, results: list[ClaimResult]) -> RenderableType:
    """A line a claim: its verdict in each of a few profiles, else in how many it is proved, and in which it is not."""
    from hitproof.cli.output import table

    profiles = list(dict.fromkeys(result.profile for result in results))
    columns = profiles
    if len(profiles) > _COLUMNS:
        columns = ["proved"] if all(result.verdict == "proved" for result in results) else ["proved", "otherwise"]
    rows = []
    for claim in dict.fromkeys(result.id for result in results):
        mine = [result for result in results if result.id == claim]
        told = [result.verdict for result in mine] if columns is profiles else _counted(mine)[: len(columns)]
        questions, seconds = sum(result.obligations for result in mine), sum(result.seconds for result in mine)
        rows.append((claim, *told, str(questions), f"{seconds:.2f}"))
    return table(title, ("claim", *columns, "questions", "seconds"), rows)


def _counted(results: list[ClaimResult]) -> list[str]:
    others: dict[str, list[str]] = {}
    for result in results:
        if result.verdict != "proved":
            others.setdefault(result.verdict, []).append(result.profile)
    proved = len(results) - sum(map(len, others.values()))
    named = "; ".join(f"{verdict}: {', '.join(others[verdict])}" for verdict in sorted(others))
    return [f"{proved} of {len(results)}", named]


def _tell(report: VerifyReport, written: dict[str, Path], *, crossed: bool = False) -> None:
    from hitproof.cli.output import show, table

    show(_verdicts(f"{report.rulebook}, digest {report.digest[:12]}", report.claims))
    for alike in _alike(report.claims):
        names = ", ".join(result.profile for result in alike)
        show(*_details(alike[0], names, written))
    if report.mutants:
        rows = [
            (
                m.id,
                m.claim,
                m.profile,
                "refuted, as it must be" if m.killed else f"SURVIVES: {m.result.verdict}",
            )
            for m in report.mutants
        ]
        show(table("Rules broken on purpose", ("mutant", "claim", "profile", "outcome"), rows))
    if crossed:
        agreed = sum(result.agreed for result in report.claims)
        show(f"cvc5 agrees with Z3 on {agreed} questions that have no model, counted for each model")
    assumptions = sorted({name for result in report.claims for name in result.assumptions})
    show(f"Assumed: {', '.join(assumptions) or 'nothing'}", f"Verdict: {report.verdict}")


def _alike(results: list[ClaimResult]) -> list[list[ClaimResult]]:
    """Results that are not proved; those of one claim that say the same, without a counterexample, stand together."""
    found: dict[object, list[ClaimResult]] = {}
    for result in results:
        if result.verdict != "proved":
            same = (result.id, result.verdict, result.detail)
            key = same if result.counterexample is None else (result.profile, *same)
            found.setdefault(key, []).append(result)
    return list(found.values())


def _details(result: ClaimResult, profiles: str, written: dict[str, Path]) -> list[str]:
    from hitproof.cli.stories import story_lines

    lines = [f"{result.id} ({profiles}) is {result.verdict}: {result.sentence}"]
    if result.detail:
        lines.append(f"  {result.detail}")
    if result.counterexample is not None:
        for number, found in enumerate((result.counterexample, *result.more), start=1):
            path = written.get(f"{result.profile} {result.id} {number}")
            lines += story_lines(found) + ([] if path is None else [f"  scenario: {path}"])
    return lines
