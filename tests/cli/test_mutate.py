"""`mutate` counts what became of edits, names survivors with their place, and answers by its exit code."""

from __future__ import annotations

import pytest

from hitproof.cli.mutate import mutate_exit_code
from hitproof.spec.mutation import EditFate, Fate, MutationReport
from tests.cli.running import run


def edit(fate: Fate, detail: str = "") -> EditFate:
    """One edit that met a fate."""
    return EditFate(
        id="checks/sealed: drops",
        section="checks",
        rule="sealed",
        what="drop",
        change="drops `self.sealed`",
        place="rules.yaml:3:7",
        fate=fate,
        detail=detail,
    )


@pytest.mark.parametrize(
    ("edits", "code"),
    [
        ([edit("killed"), edit("redundant"), edit("refused"), edit("dead")], 0),
        ([edit("killed"), edit("survived")], 1),
        ([edit("survived", "the solver gave up"), edit("survived")], 1),
        ([edit("survived", "the solver gave up")], 2),
    ],
)
def test_exit_code_tells_survivors_from_what_is_undecided(edits: list[EditFate], code: int) -> None:
    """0 for none, 1 for a survivor of which all is known, 2 where everything left was given up."""
    assert code == mutate_exit_code(MutationReport(rulebook="r", digest="0" * 64, edits=edits))


def test_edits_of_one_rule_are_judged_for_one_model() -> None:
    """As JSON, each with rule, place, fate and claim."""
    done = run(
        *("mutate", "--rule", "same_salt", "--profile", "gemma-3-27b", "--jobs", "1", "--format", "json"),
    )
    assert 0 == done.code, done.err
    assert {"killed"} == {one["fate"] for one in done.data["edits"]}
    assert {"sound", "complete"} == {one["by"] for one in done.data["edits"]}
    assert all("every_object.yaml:" in one["place"] for one in done.data["edits"])


def test_the_table_counts_fates_and_lists_survivors() -> None:
    """As text, for people."""
    done = run("mutate", "--rule", "same_adapter", "--profile", "gemma-3-27b", "--jobs", "1")
    assert 0 == done.code, done.err
    assert "Survivors: 0" in done.out
    assert "killed" in done.out


def test_a_rule_that_does_not_exist_is_bad_input() -> None:
    """An empty selection is no good score."""
    done = run("mutate", "--rule", "same_sugar")
    assert 3 == done.code
    assert "same_sugar" in done.err
