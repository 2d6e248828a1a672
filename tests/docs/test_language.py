"""The reference of the rule language says what the rulebook has and what the checker answers."""

from __future__ import annotations

import re
from textwrap import dedent

import pytest

from hitproof.rules import read_source, resolve
from hitproof.spec.condition import Node, interpret
from hitproof.spec.errors import HitproofError
from hitproof.spec.facts import Value
from hitproof.spec.leasing import ACTIONS
from hitproof.spec.rulefile import LAYERS, LEVELS, RuleFile
from hitproof.spec.scenario import Expectation
from tests.docs.console import ROOT
from tests.docs.pages import blocks, rows

PAGE = ROOT / "docs" / "language.md"
EXCERPTS = blocks(PAGE, "yaml")
REFUSED = rows(PAGE, "expression", "code", "message")
UNKNOWN = rows(PAGE, "condition", "facts", "value")
VALUES = {"true": True, "false": False, "unknown": None}


def parsed(expression: str) -> Node:
    """An expression in the place of a check of the uncompressed tail."""
    source, _ = read_source("mixed_attention").edited(
        ("objects", "uncompressed_tail", "checks", "window_wide_enough", "require"), expression
    )
    checks = resolve(source).objects["uncompressed_tail"].checks
    return next(check.require for check in checks if check.id == "window_wide_enough")


@pytest.mark.parametrize("excerpt", EXCERPTS, ids=lambda text: text.splitlines()[1].strip()[:40])
def test_excerpts_stand_in_their_files(excerpt: str) -> None:
    """Each YAML block is a run of whole lines of the file that its first line names."""
    first, *lines = excerpt.splitlines()
    file = (ROOT / first.removeprefix("# ")).read_text("utf-8").splitlines()
    wanted = dedent("\n".join(lines)).splitlines()
    starts = range(len(file) - len(wanted) + 1)
    assert any(dedent("\n".join(file[at : at + len(wanted)])).splitlines() == wanted for at in starts)


@pytest.mark.parametrize(("expression", "code", "message"), REFUSED)
def test_refused_expressions_are_refused(expression: str, code: str, message: str) -> None:
    """The error's code and message are those of the table."""
    with pytest.raises(HitproofError) as caught:
        parsed(expression.strip("`"))
    assert (code.strip("`"), message) == (caught.value.code, caught.value.message)


@pytest.mark.parametrize(("condition", "facts", "value"), UNKNOWN)
def test_conditions_on_unknown_facts_have_the_value_told(condition: str, facts: str, value: str) -> None:
    """The plain reading of each condition gives the value of the table."""
    known: dict[str, Value] = {
        path: VALUES[text] if text in VALUES else int(text)
        for path, text in re.findall(r"`(self\.\w+)` is (-?\w+)", facts)
    }
    assert known or facts == "nothing known"
    assert interpret(parsed(condition.strip("`")), known) is VALUES[value]


def test_the_actions_of_a_lease_are_those_of_the_table() -> None:
    """Each phase has its actions on the page, in their order and no others."""
    told = [(phase.strip("`"), action.strip("`")) for phase, action, _ in rows(PAGE, "phase", "action", "what is done")]
    assert [(phase, action) for phase, actions in ACTIONS.items() for action in actions] == told


def test_every_section_and_word_is_named() -> None:
    """Sections of a rule file, layers, levels and what a scenario can expect stand on the page, each as code."""
    words = {*RuleFile.model_fields, *LAYERS, *LEVELS, *Expectation.model_fields}
    text = PAGE.read_text("utf-8")
    assert [] == sorted(word for word in words if f"`{word}`" not in text)
