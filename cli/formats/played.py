"""Scenarios that were run as a document: those that failed, where they say what they expect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hitproof.cli.formats.document import Case, Check, Document, few, found_at
from hitproof.spec.yaml_tree import Mapping as YamlMapping
from hitproof.spec.yaml_tree import read_tree

__all__ = ["played"]

_CHECK = Check(
    "scenario",
    "The engine answers a scenario as the scenario expects.",
    "Method: the scenario is run on the engine with the rulebook.",
)


def played(report: Mapping[str, Any]) -> Document:
    """The document of a run.

    Args:
        report: What `hitproof test` answers as JSON.
    """
    outcomes: Sequence[Mapping[str, Any]] = report["scenarios"]
    wrong = [one for one in outcomes if not one["passed"]]
    findings = [
        found_at(
            _expectation(Path(one["file"])),
            _CHECK.id,
            f"{one['scenario']} fails: {'; '.join(one['differences'])}",
            error=True,
            rule=one["scenario"],
        )
        for one in wrong
    ]
    cases = [
        Case(
            _CHECK.id,
            one["scenario"],
            report["rulebook"],
            "passed" if one["passed"] else "failed",
            "; ".join(one["differences"]),
            found_at(one["file"], _CHECK.id, "", error=True).file,
        )
        for one in outcomes
    ]
    coverage = report["coverage"].items()
    decided = [(kind, f"{part['decisive']} of {part['total']}", few(part["never"])) for kind, part in coverage]
    return Document(
        command="test",
        subject=report["rulebook"],
        outcome=f"{report['passed']} passed, {report['failed']} failed",
        checks=[_CHECK],
        findings=findings,
        cases=cases,
        headings=("rules", "decisive", "never decisive"),
        rows=decided,
        notes=[f"Digest {report['digest'][:12]}."],
        properties=[("digest", report["digest"])],
    )


def _expectation(path: Path) -> str:
    """The place at which a scenario says what it expects."""
    tree = read_tree(path)
    where = tree.entries["expect"][0] if isinstance(tree, YamlMapping) and "expect" in tree.entries else tree.where
    return str(where)
