"""Edits of a rulebook as a document: those that nothing noticed, where they were made."""

from __future__ import annotations

from typing import get_args

from hitproof.cli.formats.document import Case, Check, Document, found_at
from hitproof.spec.mutation import EditFate, Fate, MutationReport

__all__ = ["mutated"]

_CHECK = Check(
    "mutation",
    "Whatever is dropped from a rulebook or turned into its opposite is noticed, or means the same.",
    "Method: each edit is proved to mean the same, or a claim is refuted and the engine replays the counterexample.",
)


def mutated(report: MutationReport) -> Document:
    """The document of a report."""
    fates = get_args(Fate)
    findings = [
        found_at(edit.place, _CHECK.id, f"{edit.rule}: {_survives(edit)}", error=not edit.detail, rule=edit.rule)
        for edit in report.survivors
    ]
    sections = dict.fromkeys(edit.section for edit in report.edits)
    rows = [
        (section, *(str(sum(one.section == section and one.fate == fate for one in report.edits)) for fate in fates))
        for section in sections
    ]
    return Document(
        command="mutate",
        subject=report.rulebook,
        outcome=f"{len(report.edits)} edits, {len(report.survivors)} survivors",
        checks=[_CHECK],
        findings=findings,
        cases=[_case(edit, report.rulebook) for edit in report.edits],
        headings=("edits of", *fates),
        rows=rows,
        notes=[f"Digest {report.digest[:12]}."],
        properties=[("digest", report.digest)],
    )


def _survives(edit: EditFate) -> str:
    undecided = f" (undecided: {edit.detail})" if edit.detail else ""
    return f"{edit.change}: nothing notices it{undecided}"


def _case(edit: EditFate, rulebook: str) -> Case:
    name, place = f"{edit.id}: {edit.change}", f"{rulebook}.{edit.section}"
    file = found_at(edit.place, _CHECK.id, "", error=True).file
    if edit.fate != "survived":
        return Case(edit.section, name, place, "passed", file=file)
    told = f"{edit.place}: {_survives(edit)}"
    return Case(edit.section, name, place, "unknown" if edit.detail else "failed", told, file)
