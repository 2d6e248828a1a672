"""A report of the verifier as a document: claims that are not proved, and mutants that survive."""

from __future__ import annotations

from collections.abc import Iterator

from hitproof.cli.formats.document import Case, Check, Document, Finding, Outcome, few, found_at
from hitproof.spec.proof import ClaimResult, ClaimVerdict, MutantResult, VerifyReport

__all__ = ["verified"]


def verified(report: VerifyReport, book: str) -> Document:
    """The document of a report.

    Args:
        report: The verifier's answer.
        book: The rulebook's own file, for findings that are about no rule in particular.
    """
    claims = {result.id: result for result in [*report.claims, *(mutant.result for mutant in report.mutants)]}
    assumed = sorted({name for result in report.claims for name in result.assumptions})
    notes = [f"Digest {report.digest[:12]}.", f"Assumed: {', '.join(assumed) or 'nothing'}."]
    if report.mutants:
        killed = sum(mutant.killed for mutant in report.mutants)
        notes.append(f"Rules broken on purpose: {killed} of {len(report.mutants)} refuted, as they must be.")
    return Document(
        command="verify",
        subject=report.rulebook,
        outcome=report.verdict,
        checks=[Check(result.id, result.sentence, _help(result)) for result in claims.values()],
        findings=list(_findings(report, book)),
        cases=list(_cases(report, list(claims))),
        headings=("claim", "proved for", "otherwise", "questions"),
        rows=[_row([result for result in report.claims if result.id == claim]) for claim in _claims(report)],
        notes=notes,
        properties=[("digest", report.digest)],
    )


def _claims(report: VerifyReport) -> list[str]:
    return list(dict.fromkeys(result.id for result in report.claims))


def _help(result: ClaimResult) -> str:
    return f"Method: {result.method}. Assumed: {', '.join(result.assumptions) or 'nothing'}."


def _findings(report: VerifyReport, book: str) -> Iterator[Finding]:
    """In the order of the claims; what several models share stands once."""
    alike: dict[tuple[str, ...], list[ClaimResult]] = {}
    for result in report.claims:
        if result.verdict != "proved":
            found = result.counterexample
            about = ("", "", "") if found is None else (found.rule, found.place, found.sentence)
            alike.setdefault((result.id, result.verdict, *about, "" if found else result.detail), []).append(result)
    for (claim, verdict, rule, place, sentence, detail), results in alike.items():
        names = few(list(dict.fromkeys(result.profile for result in results)))
        message = f"{claim} is {verdict} for {names}: {sentence or detail or results[0].sentence}{_part(results[0])}"
        yield found_at(place or book, claim, message, error=verdict == "refuted", rule=rule)
    for mutant in report.mutants:
        if not mutant.killed:
            failed = mutant.result.verdict != "unknown"
            yield found_at(mutant.place, mutant.claim, _survives(mutant), error=failed, rule=mutant.id)


def _part(result: ClaimResult) -> str:
    """The first part of a rule that does not hold, with what it read, where the engine has shown one."""
    for seen in () if result.counterexample is None else result.counterexample.seen:
        for part in seen.conjuncts:
            if part.holds is not True:
                values = ", ".join(f"{path} = {'unknown' if v is None else v}" for path, v in part.values.items())
                return f"; {part.text} does not hold" + (f" ({values})" if values else "")
    return ""


def _survives(mutant: MutantResult) -> str:
    said = "passes" if mutant.result.verdict == "proved" else "is not refuted"
    return f"a rulebook that was broken on purpose {said} for {mutant.profile}: {mutant.change}"


def _cases(report: VerifyReport, claims: list[str]) -> Iterator[Case]:
    for claim in claims:
        for result in report.claims:
            if result.id == claim:
                found = result.counterexample
                told = result.detail if found is None else f"{found.place}: {found.sentence}"
                file = "" if found is None else found_at(found.place, claim, "", error=True).file
                place = f"{report.rulebook}.{claim}"
                yield Case(claim, result.profile, place, _OF_CLAIMS[result.verdict], told, file, result.seconds)
        for mutant in report.mutants:
            if mutant.claim == claim:
                told = "" if mutant.killed else f"{mutant.place}: {_survives(mutant)}"
                place, seconds = f"{report.rulebook}.{claim}.mutants", mutant.result.seconds
                yield Case(claim, mutant.id, place, _OF_MUTANTS[mutant.result.verdict], told, "", seconds)


_OF_CLAIMS: dict[ClaimVerdict, Outcome] = {"proved": "passed", "refuted": "failed", "unknown": "unknown"}
_OF_MUTANTS: dict[ClaimVerdict, Outcome] = {"proved": "failed", "refuted": "passed", "unknown": "unknown"}


def _row(results: list[ClaimResult]) -> tuple[str, ...]:
    proved = [result for result in results if result.verdict == "proved"]
    others: dict[str, list[str]] = {}
    for result in results:
        if result.verdict != "proved":
            others.setdefault(result.verdict, []).append(result.profile)
    otherwise = "; ".join(f"{verdict} for {few(names)}" for verdict, names in others.items())
    asked = sum(result.obligations for result in results)
    return results[0].id, f"{len(proved)} of {len(results)}", otherwise, str(asked)
