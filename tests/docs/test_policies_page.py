"""The page on policies tells every shipped policy, and what it says of their times stands in its tables."""

from __future__ import annotations

import re

import pytest

from hitproof.rules import load_rulebook
from tests.docs.console import ROOT

PAGE = (ROOT / "docs" / "policies.md").read_text("utf-8")
POLICIES = [name.replace("_", " ") for name in load_rulebook("mixed_attention").policy.policies]
BASELINES = ("always load", "always recompute", "longest hit")
TRACES = ("Conversation trace", "Synthetic trace")


def rows(trace: str) -> dict[str, dict[str, list[float]]]:
    """Model to policy to the figures of one trace's table."""
    found: dict[str, dict[str, list[float]]] = {}
    table = PAGE.split(f"## {trace}\n", 1)[1].split("\n## ", 1)[0]
    for line in re.findall(r"^\| (.*) \|$", table, re.MULTILINE)[2:]:
        model, policy, *figures = line.split(" | ")
        found.setdefault(model, {})[policy] = [float(figure.replace(",", "")) for figure in figures]
    return found


@pytest.mark.parametrize("trace", TRACES)
def test_every_policy_stands_beside_the_others(trace: str) -> None:
    """Three models, and on each of them all policies in the rulebook's order."""
    table = rows(trace)
    assert 3 == len(table)
    assert {tuple(POLICIES)} == {tuple(policies) for policies in table.values()}


@pytest.mark.parametrize("trace", TRACES)
def test_the_state_aware_policy_is_ahead_of_the_baselines_on_the_99th_percentile(trace: str) -> None:
    """Or equal, at the precision of the table; and no policy reuses more than matched."""
    for policies in rows(trace).values():
        best = policies["state aware"][2]
        assert best <= min(policies[name][2] for name in BASELINES)
        logical = {round(sum(figures[4:7]), 1) for figures in policies.values()}
        assert all(part >= 0 for figures in policies.values() for part in figures)
        assert max(logical) - min(logical) < 1.0


def test_each_policy_is_described() -> None:
    """The table of policies has a row for each."""
    described = re.findall(r"^\| ([a-z ]+) \| [a-z].* \| [a-z].* \|$", PAGE.split("## The cost model")[0], re.MULTILINE)
    assert POLICIES == described[-len(POLICIES) :]
