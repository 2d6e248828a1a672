"""`hitproof check`: is a rulebook well formed, and does it fit the models."""

from __future__ import annotations

from typing import Any

from hitproof.cli.failure import EXIT_GOOD
from hitproof.cli.options import (
    DEFAULT_RULEBOOK,
    DebugOption,
    Format,
    FormatOption,
    ProfileOption,
    RulebookArgument,
)

__all__ = ["check"]


def check(
    rulebook: RulebookArgument = DEFAULT_RULEBOOK,
    profile: ProfileOption = None,
    format: FormatOption = Format.text,
    debug: DebugOption = False,
) -> int:
    """Read a rulebook, type every expression, and bind it to the profiles; proves nothing."""
    from hitproof.cli.output import write_json

    report = _report(rulebook, profile)
    if format is Format.json:
        write_json(report)
    else:
        _tell(report)
    return EXIT_GOOD


def _report(rulebook: str, names: list[str] | None) -> dict[str, Any]:
    from hitproof.cli.books import open_book, select_profiles
    from hitproof.engine.decide import Engine
    from hitproof.rules.unused import unused_names
    from hitproof.spec.proof import CLAIMS

    book = open_book(rulebook)
    fitted = []
    for profile in select_profiles(names):
        bound = book.bound(profile)
        # Compiling finds what binding cannot: a promise that no value keeps.
        Engine(bound)
        fitted.append(
            {
                "profile": profile.name,
                "groups": len(bound.groups),
                "checks": sum(len(group.checks) for group in bound.groups),
                "options": sum(len(group.options) for group in bound.groups),
            }
        )
    rules = book.rules
    objects = rules.objects.values()
    return {
        "rulebook": rules.name,
        "title": rules.title,
        "digest": rules.digest,
        "files": list(book.source.files),
        "objects": list(rules.objects),
        "counts": {
            "objects": len(rules.objects),
            "checks": len({one.where for rule in objects for one in rule.checks}),
            "options": len({one.where for rule in objects for one in rule.options}),
            "transitions": len({one.where for rule in objects for one in rule.transitions}),
            "invariants": len(rules.invariants),
            "repairs": len(rules.repairs),
        },
        "profiles": fitted,
        "assumptions": [{"id": one.id, "because": one.because} for one in rules.assumptions.values()],
        "claims": list(CLAIMS),
        "warnings": [
            {
                "message": f"the {one.kind} `{one.name}` is never used",
                "file": one.where.file,
                "line": one.where.line,
                "column": one.where.column,
            }
            for one in unused_names(book.source)
        ],
    }


def _tell(report: dict[str, Any]) -> None:
    from hitproof.cli.output import show, table

    for one in report["warnings"]:
        show(f"{one['file']}:{one['line']}:{one['column']}: warning: {one['message']}")
    counts = ", ".join(f"{count} {name}" for name, count in report["counts"].items())
    show(
        f"{report['rulebook']}: {report['title']}",
        f"  well formed: {counts}, in {len(report['files'])} files",
        f"  digest {report['digest']}",
        table(
            "It fits these models:",
            ("profile", "groups", "checks", "options"),
            [tuple(one.values()) for one in report["profiles"]],
        ),
        "It assumes, and says so with every verdict:",
        *(f"  {one['id']}: {one['because']}" for one in report["assumptions"]),
        f"Not proved here: `hitproof verify` decides {', '.join(report['claims'])}.",
    )
