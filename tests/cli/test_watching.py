"""`alerts` writes what the rules give, and `explain --ring` tells the decisions of a dump."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from hitproof.engine.observe import ObservedEngine, Redactor, Ring
from tests.cli.running import copy_book, edit, run
from tests.engine.state_cases import build_of


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """Three decisions: clean, one that fails a check, clean."""
    build = build_of("pooled", 65, 8).all()
    ring = Ring(Redactor(build.bound.rulebook), clock=lambda: 1_700_000_000.0)
    decider = ObservedEngine(build.engine, ring)
    decider.decide(build.state())
    build.pieces["entries"][0].generation = 99
    decider.decide(build.state())
    build.pieces["entries"][0].generation = build.pieces["entries"][0].written_generation
    decider.decide(build.state())
    ring.dump(tmp_path / "ring.jsonl")
    return tmp_path / "ring.jsonl"


def test_alerts_follow_the_rulebook(tmp_path: Path) -> None:
    """A limit that is changed in the rules is changed in the alert."""
    book = copy_book(tmp_path)
    edit(book, "observe.yaml", "above: 0.02", "above: 0.375")
    done = run("alerts", book)
    assert 0 == done.code
    (group,) = yaml.safe_load(done.out)["groups"]
    assert "> 0.375 and" in group["rules"][0]["expr"]
    out = tmp_path / "made.json"
    assert 0 == run("alerts", book, "--as", "grafana", "--out", out).code
    assert "vector(0.375)" in out.read_text("utf-8")
    data = run("alerts", book, "--format", "json").data
    assert (done.out.strip(), "prometheus") == (data["document"].strip(), data["as"])


def test_a_dump_is_explained(dump: Path) -> None:
    """The last decision in which something did not hold is told with its values; another one by its number."""
    done = run("explain", "--ring", dump)
    assert 0 == done.code
    assert "The last 3 of 3 decisions" in done.out
    assert "Decision 2: " in done.out
    assert "entries/generation_current (block_integrity)" in done.out
    assert "self.generation = 99" in done.out
    assert "2023-11-14T22:13:20" in done.out
    assert "Decision 3: reuse" in run("explain", "--ring", dump, "--number", "3").out
    data = run("explain", "--ring", dump, "--format", "json").data
    assert (2, [1, 2, 3]) == (data["explained"], [one["number"] for one in data["decisions"]])


def test_a_dump_cannot_steer_the_terminal(dump: Path) -> None:
    """Control characters of a forged dump are made visible."""
    lines = [json.loads(line) for line in dump.read_text("utf-8").splitlines()]
    lines[1]["reasons"][0]["because"] = "red \x1b[31m"
    lines[1]["failed"][0] = "x\x1b]0;title\x07"
    dump.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    done = run("explain", "--ring", dump)
    assert 0 == done.code
    assert "\x1b" not in done.out
    assert "\x07" not in done.out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("mixed_attention", "--ring", "DUMP"), "usage"),
        (("--ring", "DUMP", "--number", "9"), "usage"),
        (("--ring", "DUMP", "--number", "0"), "usage"),
        (("--ring", "none.jsonl"), "file"),
        (("--ring", "EMPTY"), "usage"),
        (("--ring", "BAD"), "ring"),
        (("mixed_attention", "026", "--number", "1"), "usage"),
        (("mixed_attention",), "usage"),
    ],
)
def test_what_cannot_be_explained_is_an_error(dump: Path, arguments: tuple[str, ...], code: str) -> None:
    """Exit code 3, and the class of the mistake."""
    empty, bad = dump.with_name("empty.jsonl"), dump.with_name("bad.jsonl")
    empty.write_text("\n", "utf-8")
    bad.write_text("{}\n", "utf-8")
    named = {"DUMP": dump, "EMPTY": empty, "BAD": bad}
    done = run("explain", *(named.get(one, one) for one in arguments), "--format", "json")
    assert (3, code) == (done.code, done.error["code"])
