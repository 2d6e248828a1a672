"""A summary in Markdown, for the page of a pipeline's run."""

from __future__ import annotations

from hitproof.cli.formats.findings import findings
from hitproof.spec.proof import VerifyReport

__all__ = ["markdown_summary"]


def markdown_summary(report: VerifyReport, book: str) -> str:
    """The verdict, a row a claim, and each finding with its place."""
    lines = [
        f"## hitproof: {_cell(report.rulebook)} is {report.verdict}",
        "",
        f"Digest `{report.digest[:12]}`.",
        "",
        "| claim | proved for | otherwise | questions |",
        "| --- | ---: | --- | ---: |",
    ]
    for claim in dict.fromkeys(result.id for result in report.claims):
        mine = [result for result in report.claims if result.id == claim]
        proved = [result for result in mine if result.verdict == "proved"]
        others = [f"{result.verdict} for {result.profile}" for result in mine if result.verdict != "proved"]
        asked = sum(result.obligations for result in mine)
        lines.append(f"| `{claim}` | {len(proved)} of {len(mine)} | {_cell('; '.join(others))} | {asked} |")
    if report.mutants:
        killed = sum(mutant.killed for mutant in report.mutants)
        lines += ["", f"Rules broken on purpose: {killed} of {len(report.mutants)} refuted, as they must be."]
    told = [
        f"- **{found.level}** `{_code(found.file)}:{found.line}:{found.column}` {_cell(found.message)}"
        for found in findings(report, book)
    ]
    if told:
        lines += ["", *told]
    assumed = sorted({name for result in report.claims for name in result.assumptions})
    return "\n".join([*lines, "", f"Assumed: {_cell(', '.join(assumed) or 'nothing')}.", ""])


def _cell(text: str) -> str:
    """Text that steers neither a table nor the page around it."""
    escaped = text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("`", "\\`")
    return " ".join(escaped.split())


def _code(text: str) -> str:
    return text.replace("`", "'")
