"""A whole SGLang engine on a CPU, with and without the gate, and the same faults planted in both."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("with_sglang")

ROOT = Path(__file__).parents[3]
SAME = 1e-4
"""Log-probabilities of one computation done in other pieces agree to about 1e-6."""

HARM = 0.1
"""Each fault moves them by more than this."""

FAULTS = ("reused", "moved", "torn", "relaid", "nameless")
LASTING = ("reused", "moved")
"""Faults of whose page it is: the page is neither used nor freed, so the prompt is computed anew each time."""

Story = dict[str, Any]


@pytest.fixture(scope="module")
def stories(with_sglang: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Story]:
    """What two engines told of their radix caches."""
    folder = tmp_path_factory.mktemp("radix")
    return {
        "plain": told(folder / "plain.json", "serve_story"),
        "gated": told(folder / "gated.json", "serve_story", "hitproof"),
    }


@pytest.fixture(scope="module")
def pages(with_sglang: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Story]:
    """What two engines told of their pages in files."""
    folder = tmp_path_factory.mktemp("files")
    return {way: told(folder / f"{way}.json", "serve_pages", way) for way in ("plain", "sealed")}


def told(out: Path, script: str, *arguments: str) -> Story:
    """What a script writes down, in processes of its own."""
    command = [sys.executable, "-m", f"tests.integrations.sglang.{script}", str(out), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-4000:]
    story: Story = json.loads(out.read_text())
    return story


def apart(one: Story, other: Story) -> float:
    """The largest difference of a log-probability that both name, of all tokens; endless where none is named twice."""
    found: list[float] = [
        abs(value - there[token])
        for here, there in zip(one["tops"], other["tops"], strict=True)
        for token, value in here.items()
        if token in there
    ]
    return max(found, default=float("inf"))


class TestServing:
    """`--radix-cache-backend hitproof` in a whole engine."""

    @pytest.mark.parametrize("turn", ["first", "second"])
    def test_a_gated_engine_answers_as_without_a_cache(self, turn: str, stories: dict[str, Story]) -> None:
        """A set of prompts is served twice: the same tokens and log-probabilities each time."""
        gated = stories["gated"]
        for cold, warm in zip(gated["cold"], gated[turn], strict=True):
            assert cold["tokens"] == warm["tokens"]
            assert apart(cold, warm) < SAME

    def test_the_gate_reuses_as_much_as_sglang_does(self, stories: dict[str, Story]) -> None:
        """Nothing that is in order is refused."""
        plain, gated = stories["plain"], stories["gated"]
        for turn in ("first", "second"):
            assert [one["cached"] for one in plain[turn]] == [one["cached"] for one in gated[turn]]
        assert all(one["cached"] for one in gated["second"])

    @pytest.mark.parametrize("fault", FAULTS)
    def test_a_planted_fault_changes_what_sglang_says_and_not_what_the_gated_engine_says(
        self, fault: str, stories: dict[str, Story]
    ) -> None:
        """It is refused and computed anew; where the page was the tree's own, the next request has its hit back."""
        cold = stories["plain"]["cold"][0]
        without, gated = stories["plain"]["faults"][fault], stories["gated"]["faults"][fault]
        assert without["struck"]["cached"] > 0
        assert apart(cold, without["struck"]) > HARM
        assert gated["struck"]["cached"] < without["struck"]["cached"]
        for turn in ("struck", "after"):
            assert cold["tokens"] == gated[turn]["tokens"]
            assert apart(cold, gated[turn]) < SAME
        assert (gated["after"]["cached"] == without["struck"]["cached"]) == (fault not in LASTING)

    def test_weights_that_are_replaced_while_serving_end_the_hits_of_the_old_ones(
        self, stories: dict[str, Story]
    ) -> None:
        """SGLang may be told to keep its cache over an update; then it mixes both models' rows."""
        without, gated = stories["plain"]["weights"], stories["gated"]["weights"]
        assert without["struck"]["cached"] > 0
        assert apart(without["cold"], without["struck"]) > HARM
        assert (0, without["struck"]["cached"]) == (gated["struck"]["cached"], gated["after"]["cached"])
        for turn in ("struck", "after"):
            assert apart(gated["cold"], gated[turn]) < SAME

    def test_logical_and_effective_hits_stand_in_sglangs_own_metrics(self, stories: dict[str, Story]) -> None:
        """In `/server_info` and in Prometheus alike, and they agree with what requests were told."""
        gated = stories["gated"]
        state, before = gated["state_after"], gated["state"]
        assert before["logical"] == before["effective"] == sum(one["cached"] for one in gated["second"])
        assert state["effective"] + state["recomputed"] == state["logical"] > state["effective"]
        parts = ("touched", "logical", "effective", "recomputed")
        assert {part: state[part] for part in parts} == {part: gated["metrics"][part] for part in parts}

    def test_without_the_flag_nothing_is_counted(self, stories: dict[str, Story]) -> None:
        """Being installed changes nothing."""
        assert stories["plain"]["state"] is None and stories["plain"]["metrics"] == {}


class TestSealedFiles:
    """HiCache with the sealed storage, named in SGLang's own configuration."""

    def test_hits_from_sealed_files_answer_as_computed_and_are_as_long_as_sglangs(
        self, pages: dict[str, Story]
    ) -> None:
        """Pages went to files, the caches above them were emptied, and the pages came back."""
        sealed = pages["sealed"]
        assert [one["cached"] for one in pages["plain"]["warm"]] == [one["cached"] for one in sealed["warm"]]
        for cold, warm in zip(sealed["cold"], sealed["warm"], strict=True):
            assert warm["cached"] > 0
            assert cold["tokens"] == warm["tokens"]
            assert apart(cold, warm) < SAME

    def test_damaged_files_change_what_sglang_says_and_not_what_it_says_with_seals(
        self, pages: dict[str, Story]
    ) -> None:
        """Refused pages are computed anew and kept, and come from files again in the end."""
        plain, sealed = pages["plain"], pages["sealed"]
        assert all(one["cached"] > 0 for one in plain["struck"])
        assert max(apart(cold, one) for cold, one in zip(plain["cold"], plain["struck"], strict=True)) > HARM
        assert [0] * len(sealed["struck"]) == [one["cached"] for one in sealed["struck"]]
        assert [one["cached"] for one in sealed["warm"]] == [one["cached"] for one in sealed["after"]]
        for turn in ("struck", "again", "after"):
            assert all(apart(cold, one) < SAME for cold, one in zip(sealed["cold"], sealed[turn], strict=True))


class TestExample:
    """The example of the adapter's folder."""

    def test_the_example_runs_and_shows_both_rates(self, tmp_path: Path) -> None:
        """With SGLang's own options, of which one turns the gate on."""
        from .tiny_model import PAGE, make_model

        options = {
            "model-path": make_model(tmp_path / "model"),
            "radix-cache-backend": "hitproof",
            "device": "cpu",
            "dtype": "float32",
            "page-size": PAGE,
            "max-total-tokens": 2048,
            "attention-backend": "triton",
            "sampling-backend": "pytorch",
            "grammar-backend": "none",
            "log-level": "error",
        }
        flags = ["--skip-tokenizer-init", "--disable-cuda-graph", "--skip-server-warmup"]
        command = [sys.executable, str(ROOT / "integrations" / "sglang" / "example.py"), *flags]
        for name, value in options.items():
            command += [f"--{name}", str(value)]
        environment = {**os.environ, "SGLANG_PLATFORM": "plain_cpu"}
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900, env=environment)
        assert done.returncode == 0, done.stderr[-4000:]
        assert "second time: 144 of 160 tokens from the cache" in done.stdout
        assert "logical 45%, effective 45%" in done.stdout
