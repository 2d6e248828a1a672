"""`replay` hands the trace and the settings on, and tells the rates of each retention mode."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from hitproof.cli.replay import parse_capacity
from hitproof.engine.trace import TraceRequest
from hitproof.spec.errors import UsageError
from tests.cli.running import run

MODES = ("full", "periodic", "zero", "until_reallocated")
PARTS = ("effective_reuse_rate", "recovered_rate", "recomputed_rate")
RATE = {"blocks": 0.5, "tokens": 0.25}


class Report:
    """A replay's report with made-up figures."""

    def __init__(self, requests: int, settings: dict[str, Any]) -> None:
        self.requests, self.settings = requests, settings

    def as_dict(self) -> dict[str, Any]:
        """The report as plain data."""
        return {
            "requests": self.requests,
            "block_touches": 3,
            "logical_hit_rate": RATE,
            "effective_reuse_rate": RATE,
            "recovered_rate": RATE,
            "recomputed_rate": RATE,
            "decisions": {"reuse": 1},
            "recovery_cost_us": {"in_place": 1.0},
            "injected": 9,
            "seconds": 0.5,
            "settings": self.settings,
        }


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts a replay in place that only counts."""

    def replay(requests: Iterable[TraceRequest], bound: Any, **settings: Any) -> Report:
        return Report(len(list(requests)), {"model": bound.profile.name, **settings})

    module = ModuleType("hitproof.engine.replay")
    module.replay = replay  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "hitproof.engine.replay", module)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A trace of two requests."""
    path = tmp_path / "trace.jsonl"
    lines = [
        {"timestamp": 0, "input_length": 1024, "output_length": 1, "hash_ids": [1, 2]},
        {"timestamp": 3000, "input_length": 600, "output_length": 1, "hash_ids": [1, 3]},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.usefixtures("stand_in")
def test_the_settings_are_handed_on(trace: Path) -> None:
    """One mode gives the report itself as JSON."""
    done = run(
        *("replay", trace, "--model", "gemma-3-27b", "--capacity", "10", "--host-blocks", "20"),
        *(
            "--disk-blocks",
            "30",
            "--retention",
            "periodic",
            "--period",
            "4",
            "--inject-version-changes",
            "0.5",
        ),
        *("--seed", "7", "--format", "json"),
    )
    assert (0, 2) == (done.code, done.data["requests"])
    assert {
        "model": "gemma-3-27b",
        "capacity": 10,
        "host_blocks": 20,
        "disk_blocks": 30,
        "retention": "periodic",
        "period": 4,
        "version_change_rate": 0.5,
        "seed": 7,
    } == done.data["settings"]


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize(
    ("chosen", "modes"),
    [
        ((), ["full"]),
        (("zero", "full"), ["full", "zero"]),
        (("all",), list(MODES)),
        (("zero", "all"), list(MODES)),
    ],
)
def test_retention_may_be_asked_for_often(chosen: tuple[str, ...], modes: list[str], trace: Path) -> None:
    """Several modes give a list of reports, each mode once and in a fixed order."""
    options = [part for mode in chosen for part in ("--retention", mode)]
    command = ("replay", str(trace), "--model", "gemma-3-27b", "--capacity", "unlimited", *options)
    done = run(*command, "--format", "json")
    reports = done.data["reports"] if len(modes) > 1 else [done.data]
    assert modes == [one["settings"]["retention"] for one in reports]
    assert {None} == {one["settings"]["capacity"] for one in reports}
    text = run(*command).out
    for part in (*modes, "50.00 %", "25.00 %", "2 requests", "1 reuse", "9 version changes were injected"):
        assert part in text


@pytest.mark.usefixtures("stand_in")
def test_models_may_be_asked_for_often(trace: Path) -> None:
    """Each model is replayed once, in the order asked for, under every retention; the text tells them apart."""
    models = ("qwen3-next-80b-a3b", "gemma-3-27b", "qwen3-next-80b-a3b")
    options = [part for model in models for part in ("--model", model)]
    command = ("replay", str(trace), *options, "--capacity", "9", "--retention", "zero", "--retention", "full")
    done = run(*command, "--format", "json")
    settings = [one["settings"] for one in done.data["reports"]]
    expected = [(model, mode) for model in models[:2] for mode in ("full", "zero")]
    assert expected == [(one["model"], one["retention"]) for one in settings]
    lines = run(*command).out.splitlines()
    for model, mode in expected:
        assert 2 == sum(line.split()[:2] == [model, mode] for line in lines)
        assert 1 == sum(line.startswith(f"{model}, {mode}: 1 reuse") for line in lines)


@pytest.mark.usefixtures("stand_in")
def test_a_broken_line_is_told_with_its_number(trace: Path) -> None:
    """The error has the line and column of the trace."""
    trace.write_text(trace.read_text() + '{"timestamp": 6000, "input_length": 512, "hash_ids": [1}\n')
    done = run("replay", trace, "--model", "gemma-3-27b", "--capacity", "10", "--format", "json")
    assert (3, "trace", str(trace), 3) == (
        done.code,
        done.error["code"],
        done.error["file"],
        done.error["line"],
    )
    assert "one JSON object a line" == done.error["expected"]
    assert done.error["got"] and done.error["column"]


def test_a_capacity_is_a_number_or_unlimited() -> None:
    """Anything else is bad usage."""
    assert (10, None) == (parse_capacity("10"), parse_capacity("unlimited"))
    for text in ("0", "-1", "1e3", "\u0663", "", "9" * 30, "Unlimited"):
        with pytest.raises(UsageError):
            parse_capacity(text)


@pytest.mark.usefixtures("stand_in")
def test_a_retention_is_a_rule_of_the_rulebook(trace: Path) -> None:
    """Another name is refused before anything is replayed, and told which ones there are."""
    done = run("replay", trace, "--model", "gemma-3-27b", "--capacity", "9", "--retention", "ful", "--format", "json")
    assert (3, "usage", "ful") == (done.code, done.error["code"], done.error["got"])
    assert ", ".join((*MODES, "all")) == done.error["expected"]
    assert "full" in done.error["hint"]


def test_a_real_replay_adds_up(tmp_path: Path) -> None:
    """On a synthetic trace, reuse, recovery and recomputation sum to the logical hits."""
    file = tmp_path / "synthetic.jsonl"
    run("trace", "synth", "--out", file, "--requests", "200", "--seed", "7")
    command = ("replay", file, "--model", "deepseek-v4-flash", "--capacity", "500", "--host-blocks", "500")
    done = run(*command, "--retention", "all", "--format", "json")
    assert 0 == done.code
    for one in done.data["reports"]:
        assert 200 == one["requests"] == sum(one["decisions"].values())
        assert 0 < one["block_touches"]
        for unit in ("blocks", "tokens"):
            parts = [one[name][unit] for name in ("effective_reuse_rate", "recovered_rate", "recomputed_rate")]
            assert one["logical_hit_rate"][unit] == pytest.approx(sum(parts))
            assert 0 < one["logical_hit_rate"][unit] <= 1
