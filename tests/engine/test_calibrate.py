"""Measurements: exact figures from a clock that the test turns, and honest words about what was not measured."""

from __future__ import annotations

import mmap
import os
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hitproof.engine.calibrate.accelerator as accelerator
import hitproof.engine.calibrate.checksums as checksums
import hitproof.engine.calibrate.disk as disks
import hitproof.engine.calibrate.machine as machines
import hitproof.engine.calibrate.measure as measuring
import hitproof.engine.calibrate.prefill as prefills
from hitproof.engine.calibrate import Prefill, Stopwatch, calibrate
from hitproof.engine.calibrate.memory import LEAST_BYTES, buffer_bytes, measure_memory
from hitproof.engine.calibrate.prefill import Block, measure_prefill
from hitproof.engine.calibrate.sampling import rate_of, summary
from hitproof.rules.profiles import load_profile
from hitproof.rules.resolve import load_rulebook
from hitproof.spec.errors import HitproofError, MissingFileError, ReferenceNameError, SchemaError, UsageError
from hitproof.spec.rates import Rate

KIB = 2**10
BOOK = load_rulebook("mixed_attention")


class Clock:
    """A clock that moves only when it is told to, or by one step at each look."""

    def __init__(self, step: float = 0.0) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now

    def work(self, *seconds: float) -> Callable[[], None]:
        """Work that takes these seconds, one after the other, the last one from then on."""
        left = list(seconds)

        def once() -> None:
            self.now += left.pop(0) if len(left) > 1 else left[0]

        return once


def ticking(seconds: float = 2.0, least: int = 5) -> Stopwatch:
    """A stopwatch of which every run takes exactly `seconds`, whatever is done."""
    return Stopwatch(0.0, Clock(seconds), least)


class TestSampling:
    def test_the_warm_up_does_not_count(self) -> None:
        """The first run, which is slow, is in no figure."""
        clock = Clock()
        taken = Stopwatch(0.0, clock, least=3).time(clock.work(100.0, 1.0, 2.0, 4.0))
        assert (1.0, 2.0, 4.0) == taken

    def test_runs_go_on_until_the_time_is_up(self) -> None:
        """Ten seconds hold twenty runs of half a second, and never more than the most that is allowed."""
        clock = Clock()
        assert 20 == len(Stopwatch(10.0, clock).time(clock.work(0.5)))
        assert 7 == len(Stopwatch(10.0, clock, most=7).time(clock.work(0.5)))
        assert 5 == len(Stopwatch(10.0, clock).time(clock.work(60.0)))

    def test_what_is_done_before_a_run_is_not_timed(self) -> None:
        """Preparation moves the clock and no figure."""
        clock = Clock()
        assert (1.0,) * 5 == Stopwatch(0.0, clock).time(clock.work(1.0), before=clock.work(50.0))

    def test_a_rate_is_the_median_a_piece(self) -> None:
        """Microseconds over the amount; one run in which the machine was busy changes no median."""
        rate = rate_of((4.0, 1.0, 2.0, 3.0, 1000.0), 1_000_000, "us/bytes", "said")
        assert rate.sample is not None
        assert (3.0, 1.0, 1000.0, 5) == (rate.value, rate.sample.low, rate.sample.high, rate.sample.runs)
        assert rate.sample.spread == pytest.approx((4.0 - 2.0) / 3.0, rel=1e-5)

    @given(st.lists(st.floats(1e-9, 1e9), min_size=2, max_size=30))
    def test_every_sample_is_in_order(self, values: list[float]) -> None:
        """Whatever the runs, low, median and high rise, and the model accepts them."""
        sample = summary(tuple(values))
        assert sample.low <= sample.median <= sample.high
        assert sample.spread >= 0


class TestMemory:
    def test_figures_are_exact(self) -> None:
        """A copy of n bytes in t seconds is t/2n a byte of the device, and t/n a byte from the host."""
        found = measure_memory(ticking(), 1000)
        assert 2e6 / 2000 == found["device_us_per_byte"].value
        assert 2e6 / 1000 == found["host_us_per_byte"].value
        assert 2e6 / 1000 == found["launch_us"].value
        assert {0.0} == {rate.sample.spread for rate in found.values() if rate.sample is not None}

    @given(st.none() | st.integers(1, 2**34), st.none() | st.integers(8, 2**45))
    def test_a_buffer_is_large_against_the_cache_and_small_against_memory(
        self, cache: int | None, memory: int | None
    ) -> None:
        """Four times the cache where memory allows, and never more than an eighth of it."""
        size = buffer_bytes(cache, memory)
        assert size >= 1
        assert memory is None or size <= memory // 8
        assert size >= min(max(LEAST_BYTES, 4 * (cache or 0)), size if memory is None else memory // 8)

    def test_every_checksum_at_hand_has_its_figure(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """xxhash takes part only where it is installed."""
        seen: list[int] = []
        library = SimpleNamespace(xxh3_64_intdigest=lambda data: seen.append(len(data)))
        monkeypatch.setattr(checksums, "find_spec", lambda name: None)
        assert {"blake2b_us_per_byte", "crc32_us_per_byte"} == set(checksums.measure_checksums(ticking(), 500))
        monkeypatch.setattr(checksums, "find_spec", lambda name: object())
        monkeypatch.setattr(checksums, "import_module", lambda name: library)
        found = checksums.measure_checksums(ticking(), 500)
        assert 2e6 / 500 == found["xxh3_64_us_per_byte"].value
        assert [500] * 6 == seen


class TestDisk:
    @pytest.fixture(autouse=True)
    def on_a_disk(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The folder of the tests may lie in memory; here that does not matter."""
        monkeypatch.setattr(disks, "IN_MEMORY", ())

    def test_figures_are_exact_and_nothing_is_left(self, tmp_path: Path) -> None:
        """The whole file counts, and it is removed again."""
        found = disks.measure_disk(ticking(), tmp_path, 64 * KIB)
        assert {"disk_us_per_byte", "disk_write_us_per_byte"} == set(found)
        assert {round(2e6 / (64 * KIB), 4)} == {rate.value for rate in found.values()}
        assert [] == list(tmp_path.iterdir())

    def test_whole_files_are_written_and_read(self, tmp_path: Path) -> None:
        """A size that is no multiple of the piece is written and read to its last byte."""
        path = tmp_path / "file"
        path.touch()
        disks._write(path, memoryview(b"abcd" * KIB), 10 * KIB + 7)
        assert (b"abcd" * 3 * KIB)[: 10 * KIB + 7] == path.read_bytes()
        with mmap.mmap(-1, 4 * KIB) as buffer:
            assert 10 * KIB + 7 == disks._read(path, buffer)

    @pytest.mark.parametrize(
        ("can_ask", "seen", "direct", "expected"),
        [
            (True, False, True, "dropped"),
            (True, None, True, "asked to drop"),
            (True, True, True, "bypassed"),
            (True, True, False, "kept"),
            (False, None, True, "bypassed"),
            (False, None, False, "kept"),
        ],
    )
    def test_the_page_cache_is_told_as_it_is(
        self, can_ask: bool, seen: bool | None, direct: bool, expected: str, tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:  # fmt: skip
        """Dropped only where that can be seen, else read past it, else said to be kept."""

        def read(path: Path, buffer: object, flag: int = 0) -> int:
            if flag and not direct:
                raise OSError("refused")
            return 0

        monkeypatch.setattr(disks, "drop", lambda path: can_ask)
        monkeypatch.setattr(disks, "cached", lambda path: seen)
        monkeypatch.setattr(disks, "_read", read)
        monkeypatch.setattr(os, "O_DIRECT", 16384, raising=False)
        assert expected == disks.choose_reader(tmp_path / "file", 4 * KIB).cache

    def test_a_file_just_written_is_seen_in_memory(self, tmp_path: Path) -> None:
        """The probe finds pages that are there, or says that it cannot tell; so its silence means something."""
        path = tmp_path / "file"
        path.write_bytes(b"x" * 64 * KIB)
        assert disks.cached(path) in (True, None)

    def test_a_folder_that_cannot_be_used_is_told(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """No folder, a file, or too little space are typed errors that name the folder."""
        (tmp_path / "file").touch()
        for folder in (tmp_path / "gone", tmp_path / "file"):
            with pytest.raises(MissingFileError) as caught:
                disks.measure_disk(ticking(), folder, KIB)
            assert str(folder) == caught.value.where.file
        monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=1999))
        with pytest.raises(MissingFileError, match="too little space"):
            disks.measure_disk(ticking(), tmp_path, 1000)
        assert ["file"] == [path.name for path in tmp_path.iterdir()]

    def test_a_folder_in_memory_is_no_disk(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The mount of a folder is found by its device; one in memory is refused before anything is measured."""
        device = tmp_path.stat().st_dev
        mounts = tmp_path / "mounts"
        line = f"36 35 {os.major(device)}:{os.minor(device)} / /mnt rw shared:1 - tmpfs none rw"
        mounts.write_text(f"35 1 999:999 / / rw - ext4 /dev/vda rw\nshort\n{line}\n")
        assert "tmpfs" == disks.file_system(tmp_path, mounts)
        assert disks.file_system(tmp_path, tmp_path / "gone") is None
        monkeypatch.setattr(disks, "file_system", lambda folder: "tmpfs")
        monkeypatch.setattr(disks, "IN_MEMORY", ("tmpfs",))
        with pytest.raises(UsageError, match="lies in memory"):
            calibrate(BOOK, watch=ticking(), disk=tmp_path)


class Tensor:
    """A stand-in for a tensor: every operation gives another one, and copies are counted."""

    def __init__(self, log: list[str], kind: str = "device") -> None:
        self.log, self.kind = log, kind

    def copy_(self, source: Tensor, non_blocking: bool) -> None:
        """Note from where to where."""
        self.log.append(f"{source.kind} to {self.kind}")

    def pin_memory(self) -> Tensor:
        """The same in pinned memory."""
        return Tensor(self.log, "pinned")

    def __getitem__(self, key: object) -> Tensor:
        return self


def fake_torch(log: list[str], *, cuda: bool = True) -> Any:
    """A library with as much of torch as a measurement of copies needs."""

    def make(size: int, dtype: object, device: object = None) -> Tensor:
        return Tensor(log, "device" if device is not None else "pageable")

    return SimpleNamespace(
        __version__="2.0",
        uint8="uint8",
        ones=make,
        zeros=make,
        device=lambda *name: name,
        cuda=SimpleNamespace(
            synchronize=lambda: log.append("wait"),
            is_available=lambda: cuda,
            get_device_name=lambda index: "an accelerator",
        ),
    )


class TestAccelerator:
    def test_figures_are_exact_and_every_copy_is_waited_for(self) -> None:
        """Pinned memory to the device, back, and within it, each run ended by waiting for the device."""
        log: list[str] = []
        found = accelerator.measure_accelerator(ticking(), fake_torch(log), 1000)
        assert {"device to device", "pinned to device", "device to pinned", "wait"} == set(log)
        assert ["wait"] * (len(log) // 2) == log[1::2]
        assert 2e6 / 2000 == found["device_us_per_byte"].value
        assert 2e6 / 1000 == found["host_us_per_byte"].value == found["to_host_us_per_byte"].value
        assert 2e6 / accelerator.CALLS == found["launch_us"].value


class TestPrefill:
    def test_without_torch_it_says_what_to_do(self) -> None:
        """The error names the package and the option."""
        with pytest.raises(UsageError) as caught:
            measure_prefill(ticking(), None, layers=1, active_parameters=1)
        assert "hitproof[kernels]" in str(caught.value.hint)
        assert "--prefill-us-per-token" in str(caught.value.hint)

    def test_figures_are_scaled_by_parameters(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A model of as many parameters as 30 blocks takes 30 times as long; a layer of 10 takes a tenth of that."""
        monkeypatch.setattr(prefills, "_works", lambda torch, block: (lambda: None, lambda: None))
        block = Block(hidden=128, tokens=4, dtype="float32", device="cpu")
        library, active = SimpleNamespace(inference_mode=nullcontext), 30 * block.parameters
        found = measure_prefill(ticking(), library, layers=10, active_parameters=active, block=block)
        assert 30 * 2e6 / 4 == pytest.approx(found["prefill_us_per_token"].value, rel=1e-5)
        assert 3 * 2e6 / 4 == pytest.approx(found["layer_us_per_token"].value, rel=1e-5)
        assert {"scaled"} == {rate.origin for rate in found.values()}

    def test_the_block_runs(self) -> None:
        """torch accepts the shapes; every run is made, and nothing but the clock decides the figure."""
        torch = pytest.importorskip("torch", reason="torch is not installed")
        block = Block(hidden=256, tokens=8, dtype="float32", device="cpu")
        found = measure_prefill(ticking(), torch, layers=1, active_parameters=block.parameters, block=block)
        assert 2e6 / 8 == pytest.approx(found["prefill_us_per_token"].value, rel=1e-5)

    def test_a_block_counts_its_matrices(self) -> None:
        """Four square ones of attention, and two that are four times as wide."""
        wide = 256
        shapes = [(wide, wide)] * 4 + [(4 * wide, wide), (wide, 4 * wide)]
        assert sum(rows * columns for rows, columns in shapes) == Block(wide, 1, "float32", "cpu").parameters


class TestWhole:
    @pytest.fixture(autouse=True)
    def small(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Small buffers and no torch: the clock is not real, so nothing is lost."""
        monkeypatch.setattr(measuring, "CHECKSUM_BYTES", KIB)
        monkeypatch.setattr(measuring, "DISK_BYTES", 4 * KIB)
        monkeypatch.setattr(measuring, "buffer_bytes", lambda cache, memory: KIB)
        monkeypatch.setattr(measuring, "find_torch", lambda: None)
        monkeypatch.setattr(disks, "IN_MEMORY", ())

    def test_what_is_not_measured_is_stated(self) -> None:
        """Without a disk and a prefill, these are the rulebook's examples and say so."""
        rates = calibrate(BOOK, watch=ticking())
        origins = {name: rate.origin for name, rate in rates.facts.items()}
        assert {
            "prefill_us_per_token": "stated",
            "layer_us_per_token": "stated",
            "device_us_per_byte": "measured",
            "host_us_per_byte": "measured",
            "disk_us_per_byte": "stated",
            "launch_us": "measured",
        }.items() <= origins.items()
        for name, rate in rates.facts.items():
            assert rate.origin != "stated" or rate.value == BOOK.environment[f"runtime.{name}"]
        assert None is rates.model

    def test_the_disk_and_what_is_given_take_their_place(self, tmp_path: Path) -> None:
        """A given rate is not measured, a disk is."""
        heard: list[str] = []
        rates = calibrate(BOOK, watch=ticking(), disk=tmp_path, given={"launch_us": 3}, model="m", tell=heard.append)
        assert ("given", 3.0) == (rates.facts["launch_us"].origin, rates.facts["launch_us"].value)
        assert "measured" == rates.facts["disk_us_per_byte"].origin
        assert {"disk_write_us_per_byte", "crc32_us_per_byte", "blake2b_us_per_byte"} <= set(rates.figures)
        assert "launch_us" not in rates.figures
        assert "m" == rates.model
        assert "measuring the disk" in heard

    def test_an_accelerator_is_measured_where_there_is_one(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Then the device is the accelerator, and the machine names it."""
        monkeypatch.setattr(measuring, "find_torch", lambda: fake_torch([]))
        rates = calibrate(BOOK, watch=ticking())
        assert "an accelerator" == rates.machine.accelerator
        assert "accelerator" in rates.facts["device_us_per_byte"].how
        assert "to_host_us_per_byte" in rates.figures

    @pytest.mark.parametrize(
        ("name", "value", "error"),
        [
            ("launch_us", -1.0, SchemaError),
            ("launch_us", float("nan"), SchemaError),
            ("launch_us", float("inf"), SchemaError),
            ("lunch_us", 1.0, ReferenceNameError),
            ("used_blocks", 1.0, ReferenceNameError),
        ],
    )
    def test_a_given_rate_must_fit_its_fact(self, name: str, value: float, error: type[HitproofError]) -> None:
        """Negative, endless, no number, or no rate at all is refused."""
        with pytest.raises(error):
            measuring.complete(BOOK, {}, {name: value})

    def test_another_unit_is_no_fact_of_the_rulebook(self) -> None:
        """What was measured in another unit than the fact has is told as a figure, and the fact stays stated."""
        odd = Rate(value=1.0, unit="us/tokens", origin="given")
        facts, figures = measuring.complete(BOOK, {"launch_us": odd}, {})
        assert "stated" == facts["launch_us"].origin
        assert {"launch_us": odd} == figures

    def test_a_prefill_without_torch_is_refused_before_anything_is_measured(self) -> None:
        """Nobody waits for figures that are thrown away."""
        heard: list[str] = []
        prefill = Prefill(load_profile("gemma-3-27b"), 10**9)
        with pytest.raises(UsageError):
            calibrate(BOOK, watch=ticking(), prefill=prefill, tell=heard.append)
        assert 1 == len(heard)


class TestMachine:
    def test_the_largest_cache_counts(self, tmp_path: Path) -> None:
        """Sizes are read in their units; what cannot be read is left out."""
        for index, text in enumerate(["48K\n", "32M\n", "1024K\n", "nonsense\n"]):
            (tmp_path / f"index{index}").mkdir()
            (tmp_path / f"index{index}" / "size").write_text(text)
        assert 32 * 2**20 == machines.cache_bytes(tmp_path)
        assert machines.cache_bytes(tmp_path / "gone") is None

    def test_it_describes_itself_without_torch(self) -> None:
        """Nothing is said about what is not there."""
        told = machines.describe_machine()
        assert told.cores >= 1
        assert (None, None) == (told.torch, told.accelerator)
