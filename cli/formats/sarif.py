"""SARIF 2.1.0, for code scanning: one run, a rule a check, a result a finding."""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from hitproof.cli.formats.document import MAX_FINDINGS, Document, Finding, one_line

__all__ = ["sarif_log"]

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"

_LINK = re.compile(r"\[(?=[^\]]*\]\()")


def sarif_log(document: Document, version: str) -> dict[str, Any]:
    """The answer as a SARIF log.

    Args:
        document: The answer.
        version: Version of this tool.
    """
    checks = list(document.checks)
    index = {check.id: number for number, check in enumerate(checks)}
    rules = [
        {
            "id": check.id,
            "name": "".join(part.capitalize() for part in re.split(r"\W|_", check.id)),
            "shortDescription": {"text": _text(check.sentence)},
            "fullDescription": {"text": _text(check.sentence)},
            "help": {"text": _text(check.help)},
            "defaultConfiguration": {"level": "error"},
        }
        for check in checks
    ]
    found = document.findings[:MAX_FINDINGS]
    results = [
        {
            "ruleId": one.check,
            "ruleIndex": index[one.check],
            "level": one.level,
            "message": {"text": _text(one.message)},
            "locations": [_location(one)],
            "partialFingerprints": {"hitproofFinding/v1": fingerprint},
        }
        for one, fingerprint in zip(found, _fingerprints(found), strict=True)
    ]
    run = {
        "tool": {"driver": {"name": "hitproof", "version": version, "rules": rules}},
        # A later log of the same command replaces this one, and no other.
        "automationDetails": {"id": f"hitproof {document.command}/"},
        "invocations": [_invocation(document)],
        "columnKind": "unicodeCodePoints",
        "properties": {name: one_line(text) for name, text in _properties(document)},
        "results": results,
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _properties(document: Document) -> list[tuple[str, str]]:
    return [("subject", document.subject), ("outcome", document.outcome), *document.properties]


def _invocation(document: Document) -> dict[str, Any]:
    if not document.trouble:
        return {"executionSuccessful": True}
    told = {"level": "error", "message": {"text": _text(document.trouble)}}
    return {"executionSuccessful": False, "toolExecutionNotifications": [told]}


def _location(found: Finding) -> dict[str, Any]:
    inside = not os.path.isabs(found.file)
    artifact = (
        {"uri": quote(os.fsencode(found.file)), "uriBaseId": "%SRCROOT%"}
        if inside
        else {"uri": Path(found.file).as_uri()}
    )
    region = {"startLine": found.line, "startColumn": found.column}
    location: dict[str, Any] = {"physicalLocation": {"artifactLocation": artifact, "region": region}}
    if found.rule:
        location["logicalLocations"] = [{"fullyQualifiedName": found.rule, "kind": "rule"}]
    return location


def _fingerprints(findings: Sequence[Finding]) -> list[str]:
    """The same for the same finding in other runs: neither its line counts, nor the values that a message tells."""
    seen: Counter[tuple[str, str, str]] = Counter()
    made = []
    for one in findings:
        about = (one.check, one.rule, one.file)
        text = "\0".join((*about, str(seen[about])))
        made.append(hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest())
        seen[about] += 1
    return made


def _text(text: str) -> str:
    """Plain text: what looks like a link of SARIF is none."""
    return _LINK.sub(r"\\[", one_line(text))
