"""`replay --policy` serves the trace under policies of the rulebook, and tells them side by side."""

from __future__ import annotations

from pathlib import Path

import pytest

from hitproof.engine.replay import evaluate_policy
from hitproof.engine.trace import read_trace
from hitproof.rules import load_rulebook
from tests.cli.running import run
from tests.engine.state_cases import engine_of

POLICIES = list(load_rulebook("mixed_attention").policy.policies)
MODEL = "qwen3-next-80b-a3b"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A small synthetic trace."""
    file = tmp_path / "synthetic.jsonl"
    assert 0 == run("trace", "synth", "--out", file, "--requests", "80", "--seed", "5").code
    return file


def command(trace: Path, *more: str | Path) -> tuple[str | Path, ...]:
    """A replay of the trace on one model with two tiers."""
    return ("replay", trace, "--model", MODEL, "--capacity", "300", "--host-blocks", "500", *more)


def test_figures_are_those_of_the_evaluation(trace: Path) -> None:
    """Both policies in the rulebook's order, with the lanes and the pace that were asked for."""
    more = ("--policy", "always_load", "--policy", "state_aware", "--lanes", "2", "--pace", "3", "--format", "json")
    done = run(*command(trace, *more))
    assert 0 == done.code
    assert ["state_aware", "always_load"] == [one["settings"]["policy"] for one in done.data["policies"]]
    for one in done.data["policies"]:
        again = evaluate_policy(
            read_trace(trace),
            engine_of(MODEL).bound,
            one["settings"]["policy"],
            capacity=300,
            host_blocks=500,
            lanes=2,
            pace=3.0,
        )
        assert again.as_dict() == one


def test_all_are_told_in_a_table(trace: Path) -> None:
    """A row each; the page has them too."""
    page = trace.with_suffix(".html")
    done = run(*command(trace, "--policy", "all", "--html", page))
    assert 0 == done.code
    for name in POLICIES:
        assert name in done.out
        assert name.replace("_", " ") in page.read_text("utf-8")


def test_without_a_policy_none_is_evaluated(trace: Path) -> None:
    """The answer of one run stays the report alone."""
    assert "policies" not in run(*command(trace, "--format", "json")).data


def test_an_unknown_policy_is_bad_usage(trace: Path) -> None:
    """The rulebook's own are listed, and the nearest is offered."""
    done = run(*command(trace, "--policy", "state_awar", "--format", "json"))
    assert (3, "usage", "state_awar") == (done.code, done.error["code"], done.error["got"])
    assert ", ".join((*POLICIES, "all")) == done.error["expected"]
    assert "state_aware" in done.error["hint"]


def test_an_unlimited_device_compares_nothing(trace: Path) -> None:
    """Without a limit nothing is ever demoted, so a capacity is asked for."""
    done = run("replay", trace, "--model", MODEL, "--capacity", "unlimited", "--policy", "all", "--format", "json")
    assert (3, "unlimited") == (done.code, done.error["got"])
