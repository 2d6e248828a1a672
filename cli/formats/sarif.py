"""SARIF 2.1.0, for code scanning: one run, a rule a claim, a result a finding."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from hitproof.cli.formats.findings import findings
from hitproof.spec.proof import VerifyReport

__all__ = ["sarif_log"]

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif_log(report: VerifyReport, book: str, version: str) -> dict[str, Any]:
    """The report as a SARIF log.

    Args:
        report: The verifier's answer.
        book: The rulebook's own file.
        version: Version of this tool.
    """
    claims = list(dict.fromkeys(result.id for result in report.claims))
    sentences = {result.id: result.sentence for result in report.claims}
    rules = [
        {
            "id": claim,
            "name": "".join(part.capitalize() for part in claim.split("_")),
            "shortDescription": {"text": sentences[claim]},
            "defaultConfiguration": {"level": "error"},
        }
        for claim in claims
    ]
    results = [
        {
            "ruleId": found.claim,
            "ruleIndex": claims.index(found.claim),
            "level": found.level,
            "message": {"text": f"{found.message} ({', '.join(found.profiles)})"},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": quote(found.file)},
                        "region": {"startLine": found.line, "startColumn": found.column},
                    },
                    "logicalLocations": [{"fullyQualifiedName": found.rule or found.claim, "kind": "rule"}],
                }
            ],
            "partialFingerprints": {"hitproofFinding/v1": found.fingerprint},
        }
        for found in findings(report, book)
        if found.claim in claims
    ]
    driver = {"name": "hitproof", "version": version, "semanticVersion": version, "rules": rules}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "properties": {"rulebook": report.rulebook, "digest": report.digest, "verdict": report.verdict},
        "results": results,
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
