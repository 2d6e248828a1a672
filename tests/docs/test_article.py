"""The page on the article names only rules, claims, files and tests that exist, and leaves no section out."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import pytest

from hitproof.rules import load_rulebook, read_source
from hitproof.rules.scenarios import scenario_files
from hitproof.spec.proof import CLAIMS
from hitproof.spec.rulefile import EveryObjectDecl, ObjectDecl, RuleFile
from tests.docs.console import ROOT
from tests.docs.pages import squeezed

PAGE = ROOT / "docs" / "article.md"
PARTS = {"3": 5, "4": 3, "5": 4, "6": 4, "7": 0}
"""The article's sections that ask for something, and how many subsections each has."""
SECTIONS = [name for one, count in PARTS.items() for name in (one, *(f"{one}.{n}" for n in range(1, count + 1)))]
WITHOUT_A_REQUIREMENT = ("4",)
LATER = ("repairs", "cache manager", "verifier")
KINDS = ("objects", "rules", "events", "invariants", "flags", "facts", "claims", "code", "tests", "scenarios")
RULEBOOK, SOURCE = load_rulebook("mixed_attention"), read_source("mixed_attention")


@dataclass(frozen=True)
class Requirement:
    """One entry of the page: its id and section, what it names, what is missing, and the step that will bring it."""

    id: str
    section: str
    named: dict[str, tuple[str, ...]]
    missing: str
    step: str


def entries() -> Iterator[Requirement]:
    """The page's requirements in order."""
    section = ""
    for part in re.split(r"^(?=#{2,3} |\*\*A)", PAGE.read_text("utf-8"), flags=re.MULTILINE)[1:]:
        if part.startswith("#"):
            section = part.split()[1]
            continue
        found = re.match(r"\*\*(A[\d.]+-\d+)\.\*\* ", part)
        assert found, part
        told = dict(item.split(": ", 1) for item in map(squeezed, re.split(r"^- ", part, flags=re.MULTILINE)[1:]))
        gap = next((name for name in told if name.startswith("not yet")), "")
        missing = told.pop(gap, "")
        step = gap.removeprefix("not yet").strip(", *")
        named = {kind: tuple(re.findall(r"`([^`]+)`", names)) for kind, names in told.items()}
        yield Requirement(found[1], section, named, missing, step)


REQUIREMENTS = list(entries())


@cache
def known(kind: str) -> set[str]:
    """Every name of a kind that the project has."""
    objects = RULEBOOK.objects.values()
    match kind:
        case "objects":
            return set(RULEBOOK.objects)
        case "rules":
            checks = {f"{one.name}/{check.id}" for one in objects for check in one.checks}
            options = {f"{one.name}/{option.id}" for one in objects for option in one.options}
            # Declared as `domain:`, and a check from binding on.
            checks |= {f"{one.name}/well_formed" for one in objects if one.domain}
            disposed = {f"{one.name}/{rule.id}" for one in objects for rule in RULEBOOK.dispositions[one.name]}
            process = RULEBOOK.recovering
            steps = {f"recovering/{step.id}" for step in process.steps} if process else set()
            everywhere = {rule for rule, _ in declared() if rule.startswith(("*/", "thresholds/", "leasing/"))}
            return everywhere | {rule for rule, _ in about_load()} | steps | checks | options | disposed
        case "events":
            return {event.id for one in objects for event in one.transitions}
        case "invariants":
            return {invariant.id for invariant in RULEBOOK.invariants}
        case "flags":
            return {flag.id for flag in RULEBOOK.flags}
        case "facts":
            around = {"request": RULEBOOK.request, "runtime": RULEBOOK.runtime, "kernel": RULEBOOK.kernel}
            outside = {f"{scope}.{name}" for scope, facts in around.items() for name in facts}
            return outside | {name for one in objects for name in one.facts}
        case "claims":
            return set(CLAIMS)
        case "scenarios":
            return {path.stem for path in scenario_files("mixed_attention")}
        case _:
            raise LookupError(kind)


def about_load(only: RuleFile | None = None) -> Iterator[tuple[str, str]]:
    """Rules about load of one rule file, or of all, with their sources."""
    for part in [only] if only is not None else [part for _, part in SOURCE.parts()]:
        for section in ("pools", "admission", "execution", "demotion", "retention", "policies"):
            yield from ((f"{section}/{one.id}", one.source) for one in getattr(part, section))
        if part.waiting is not None:
            yield "waiting", part.waiting.source


def declared() -> Iterator[tuple[str, str]]:
    """Every rule, event and invariant of the rule files as the page names it, with its source."""
    for _, part in SOURCE.parts():
        sections: dict[str, ObjectDecl | EveryObjectDecl] = {**part.objects}
        if part.every_object is not None:
            sections["*"] = part.every_object
        for name, section in sections.items():
            yield from ((f"{name}/{check.id}", check.source) for check in section.checks)
            yield from ((f"{name}/{option.id}", option.source) for option in section.recovery)
            yield from ((f"{name}/{rule.id}", rule.source) for rule in section.disposition)
        yield from ((event.id, event.source) for event in part.transitions)
        yield from about_load(part)
        yield from ((invariant.id, invariant.source) for invariant in part.invariants)
        if part.recovering is not None:
            yield from ((f"recovering/{step.id}", step.source) for step in part.recovering.steps)
        if part.leasing is not None:
            phases = (part.leasing.take, part.leasing.confirm, part.leasing.release)
            yield from ((f"leasing/{step.id}", step.source) for steps in phases for step in steps)
        yield from ((f"thresholds/{one.id}", one.source) for one in part.thresholds)


@cache
def functions_in(file: str) -> set[str]:
    """The names of the test functions in a file, those of classes too."""
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def exists(kind: str, name: str) -> bool:
    """Whether the project has what an entry names."""
    if kind == "code":
        return (ROOT / name).is_file()
    if kind == "tests":
        file, _, function = name.partition("::")
        return (ROOT / file).is_file() and function in functions_in(file)
    return name in known(kind)


@pytest.mark.parametrize("one", REQUIREMENTS, ids=lambda one: str(one.id))
def test_what_a_requirement_names_exists(one: Requirement) -> None:
    """Each name is of its kind, in the rulebook, among the claims, on disk or in its test file."""
    assert set(one.named) <= set(KINDS)
    assert all(one.named.values())
    assert [] == [name for kind, names in one.named.items() for name in names if not exists(kind, name)]


@pytest.mark.parametrize("one", REQUIREMENTS, ids=lambda one: str(one.id))
def test_a_requirement_is_shown_or_said_to_be_missing(one: Requirement) -> None:
    """What has no gap names a test, a claim or a scenario that shows it; what names nothing says what is missing."""
    assert one.missing or {"tests", "claims", "scenarios"} & set(one.named)
    assert not one.missing or one.missing.endswith(".")


@pytest.mark.parametrize("one", [one for one in REQUIREMENTS if one.missing], ids=lambda one: str(one.id))
def test_what_is_missing_names_the_step_that_brings_it(one: Requirement) -> None:
    """A gap without a plan is told as no gap."""
    assert one.step in LATER
    assert f"*{one.step}* (" in squeezed(PAGE.read_text("utf-8"))


def test_requirements_are_numbered_by_section() -> None:
    """Every section of the article has its heading, and its requirements count from 1."""
    text = PAGE.read_text("utf-8")
    assert SECTIONS == re.findall(r"^#{2,3} ([\d.]+) ", text, re.MULTILINE)
    for section in SECTIONS:
        ids = [one.id for one in REQUIREMENTS if one.section == section]
        assert ids or section in WITHOUT_A_REQUIREMENT
        assert ids == [f"A{section}-{number}" for number in range(1, len(ids) + 1)]


def test_every_rule_stands_under_the_section_that_it_names() -> None:
    """A rule, event or invariant whose source is a section of the article is named in that section of the page."""
    told: dict[str, set[str]] = {}
    for one in REQUIREMENTS:
        told.setdefault(one.section, set()).update(name for names in one.named.values() for name in names)
    named = [(rule, section) for rule, source in declared() for section in re.findall(r"article ([\d.]+\d|\d)", source)]
    assert named
    lost = sorted({(rule, section) for rule, section in named if section in SECTIONS and rule not in told[section]})
    assert [] == lost
