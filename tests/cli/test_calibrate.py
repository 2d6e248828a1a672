"""`calibrate` writes a rates file, and `replay`, `explain` and `test` count their prices by one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import hitproof.engine.calibrate
import hitproof.engine.calibrate.disk as disks
import hitproof.engine.calibrate.measure as measuring
from hitproof.engine.calibrate import Stopwatch
from hitproof.rules.rates import dump_rates, load_rates
from hitproof.rules.resolve import load_rulebook
from hitproof.rules.source import rulebook_folder
from hitproof.spec.rates import Rates
from tests.cli.running import place_of, run

BOOK = load_rulebook("mixed_attention")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small buffers, no torch, and a clock by which every run takes two seconds."""

    def stopwatch(seconds: float) -> Stopwatch:
        now = iter(range(0, 10**6, 2))
        return Stopwatch(0.0, lambda: float(next(now)))

    monkeypatch.setattr(measuring, "CHECKSUM_BYTES", 1024)
    monkeypatch.setattr(measuring, "DISK_BYTES", 4096)
    monkeypatch.setattr(measuring, "buffer_bytes", lambda cache, memory: 1024)
    monkeypatch.setattr(measuring, "find_torch", lambda: None)
    monkeypatch.setattr(disks, "IN_MEMORY", ())
    monkeypatch.setattr(hitproof.engine.calibrate, "Stopwatch", stopwatch)


@pytest.fixture
def rates_file(tmp_path: Path) -> Callable[..., Path]:
    """Writes a rates file whose facts are given by hand."""

    def write(model: str | None = None, **facts: float) -> Path:
        rates = measuring.calibrate(BOOK, watch=hitproof.engine.calibrate.Stopwatch(1.0), given=facts, model=model)
        given = {name: rate for name, rate in rates.facts.items() if name in facts}
        path = tmp_path / "rates.yaml"
        path.write_text(dump_rates(rates.model_copy(update={"facts": given})), "utf-8")
        return path

    return write


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A trace of two requests, the second of which repeats a block."""
    path = tmp_path / "trace.jsonl"
    lines = [
        {"timestamp": 0, "input_length": 1024, "output_length": 1, "hash_ids": [1, 2]},
        {"timestamp": 3000, "input_length": 600, "output_length": 1, "hash_ids": [1, 3]},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


class TestCalibrate:
    def test_a_file_that_cannot_be_written_is_told_before_the_measuring(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Nothing is measured for a folder that does not exist."""
        monkeypatch.setattr(hitproof.engine.calibrate, "calibrate", lambda *_, **__: pytest.fail("it measured"))
        done = run("calibrate", "--out", tmp_path / "none" / "rates.yaml")
        assert (3, "") == (done.code, done.out)

    def test_the_file_is_what_the_loader_takes(self, tmp_path: Path) -> None:
        """Text and JSON tell of the same file, which fits the rulebook."""
        out, disk = tmp_path / "rates.yaml", tmp_path / "disk"
        disk.mkdir()
        done = run("calibrate", "--out", out, "--disk", disk, "--model", "gemma-3-27b", "--prefill-us-per-token", "5")
        assert (0, "") == (done.code, done.err)
        sheet = load_rates(out, BOOK)
        assert "gemma-3-27b" == sheet.rates.model
        assert 5.0 == sheet.values["prefill_us_per_token"]
        assert 2e6 / 2048 == pytest.approx(sheet.values["device_us_per_byte"], rel=1e-5)
        assert 2e6 / 4096 == pytest.approx(sheet.values["disk_us_per_byte"], rel=1e-5)
        for name, rate in {**sheet.rates.facts, **sheet.rates.figures}.items():
            assert name in done.out
            assert rate.sample is None or rate.how in done.out
        assert "as mixed_attention states it: layer_us_per_token" in done.out
        assert f"written: {out}" in done.out
        assert "Unsteady" not in done.out

    def test_json_holds_the_whole_file(self, tmp_path: Path) -> None:
        """What JSON says is what was written."""
        out = tmp_path / "rates.yaml"
        data = run("calibrate", "--out", out, "--format", "json").data
        assert str(out) == data["file"]
        assert load_rates(out, BOOK).rates == Rates.model_validate(data["rates"])

    def test_without_a_file_the_text_is_the_file(self, tmp_path: Path) -> None:
        """Redirecting it gives a file that the loader takes."""
        done = run("calibrate", "--layer-us-per-token", "0.5")
        path = tmp_path / "redirected.yaml"
        path.write_text(done.out, "utf-8")
        assert 0.5 == load_rates(path, BOOK).values["layer_us_per_token"]

    def test_an_unsteady_figure_is_told(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Where the runs differ much, the answer says that the machine may be busy."""

        def stopwatch(seconds: float) -> Stopwatch:
            looks = iter(range(10**6))
            return Stopwatch(0.0, lambda: float(next(looks) ** 2))

        monkeypatch.setattr(hitproof.engine.calibrate, "Stopwatch", stopwatch)
        done = run("calibrate", "--out", tmp_path / "rates.yaml")
        assert "Unsteady" in done.out
        assert "may be busy" in done.out

    @pytest.mark.parametrize(
        "arguments",
        [
            ("--measure-prefill",),
            ("--measure-prefill", "--model", "gemma-3-27b"),
            ("--measure-prefill", "--active-parameters", "10"),
            ("--measure-prefill", "--model", "gemma-3-27b", "--active-parameters", "10"),
            ("--measure-prefill", "--model", "gemma-3-27b", "--active-parameters", "0"),
            ("--measure-prefill", "--prefill-us-per-token", "1"),
            ("--active-parameters", "10"),
            ("--prefill-us-per-token", "-1"),
            ("--prefill-us-per-token", "nan"),
            ("--prefill-us-per-token", "inf"),
            ("--layer-us-per-token", "-1"),
            ("--seconds", "0"),
            ("--disk", "no/such/folder"),
            ("--model", "no-such-profile"),
            ("--rulebook", "no-such-rulebook"),
            ("--out", "no/such/folder/rates.yaml"),
        ],
        ids=" ".join,
    )
    def test_bad_usage_writes_nothing(
        self, arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What cannot be measured, or contradicts itself, is exit code 3."""
        monkeypatch.chdir(tmp_path)
        given = arguments if "--out" in arguments else ("--out", "rates.yaml", *arguments)
        done = run("calibrate", *given)
        assert (3, "") == (done.code, done.out)
        assert "Traceback" not in done.err
        assert [] == list(tmp_path.iterdir())


class TestRates:
    def test_a_replay_counts_by_the_file(self, rates_file: Callable[..., Path], trace: Path) -> None:
        """Prices follow the rates in proportion, and the report says where they come from."""
        command = ("replay", trace, "--model", "gemma-3-27b", "--capacity", "10", "--format", "json")
        usual = run(*command).data
        stated = usual["settings"]["rates"]
        assert "rulebook" == stated["source"]
        assert BOOK.environment["runtime.launch_us"] == stated["facts"]["launch_us"]
        path = rates_file(prefill_us_per_token=4 * stated["facts"]["prefill_us_per_token"])
        told = run(*command, "--rates", path).data
        assert 4 * usual["prefill_us"] == pytest.approx(told["prefill_us"])
        assert {
            "source": str(path),
            "facts": {**stated["facts"], "prefill_us_per_token": 160.0},
        } == told["settings"]["rates"]
        assert f"rates of {path}" in run(*command[:-2], "--rates", path).out

    def test_another_model_is_refused(self, rates_file: Callable[..., Path], trace: Path) -> None:
        """Rates of one model price no other, in any command; the place is that of the model's name."""
        path = rates_file("qwen3-next-80b-a3b", prefill_us_per_token=1.0)
        line, column = place_of(path, '"qwen3-next-80b-a3b"')
        for command in (
            ("replay", trace, "--model", "gemma-3-27b", "--capacity", "10"),
            ("explain", "mixed_attention", "cheaper-to-compute-than-to-fetch"),
            ("test", "mixed_attention"),
        ):
            done = run(*command, "--rates", path, "--format", "json")
            assert (3, "usage") == (done.code, done.error["code"])
            assert (str(path), line) == (done.error["file"], done.error["line"])
            assert done.error["column"] in (column, column + 1)

    def test_a_wrong_file_is_refused_by_every_command(self, rates_file: Callable[..., Path], trace: Path) -> None:
        """The error has the place in the rates file."""
        path = rates_file(launch_us=1.0)
        path.write_text(path.read_text("utf-8").replace("unit: us\n", "unit: tokens\n"), "utf-8")
        line, column = place_of(path, "tokens")
        for command in (
            ("replay", trace, "--model", "gemma-3-27b", "--capacity", "10"),
            ("explain", "mixed_attention", "cheaper-to-compute-than-to-fetch"),
            ("test", "mixed_attention"),
        ):
            error = run(*command, "--rates", path, "--format", "json").error
            assert ("unit", str(path), line, column) == (
                error["code"], error["file"], error["line"], error["column"],
            )  # fmt: skip

    def test_explain_prices_by_the_file_and_the_scenario_has_the_last_word(
        self, rates_file: Callable[..., Path]
    ) -> None:
        """A rate that the scenario states stays, any other is the file's."""
        path = rates_file(disk_us_per_byte=1.0, launch_us=77.0)
        command = ("explain", "mixed_attention", "cheaper-to-compute-than-to-fetch")
        told = run(*command, "--rates", path, "--format", "json").data
        assert str(path) == told["rates"]["source"]
        assert (0.02, 77.0) == (told["rates"]["facts"]["disk_us_per_byte"], told["rates"]["facts"]["launch_us"])
        assert str(path) in run(*command, "--rates", path).out
        assert "rulebook" == run(*command, "--format", "json").data["rates"]["source"]

    def test_a_plan_may_change_with_the_rates(self, rates_file: Callable[..., Path]) -> None:
        """On a machine that computes a token in no time, a scenario that expects a fetch fails."""
        scenario = rulebook_folder("mixed_attention") / "scenarios" / "prefix-back-from-host.yaml"
        command = ("test", "mixed_attention", scenario, "--format", "json")
        path = rates_file(prefill_us_per_token=0.0)
        usual, told = run(*command), run(*command, "--rates", path)
        assert ("rulebook", str(path)) == (usual.data["rates"], told.data["rates"])
        assert (0, 1) == (usual.code, told.code)
