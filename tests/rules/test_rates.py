"""Rates files: written and read back, refused with their place, and put in place of what the rulebook states."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitproof.rules.bind import bind_rulebook
from hitproof.rules.profiles import load_profile
from hitproof.rules.rates import dump_rates, load_rates, rate_facts, with_rates
from hitproof.spec.errors import HitproofError, UsageError
from hitproof.spec.rates import Machine, Origin, Rate, Rates, RateSample
from hitproof.spec.rulebook import Rulebook
from hitproof.spec.yaml_fields import validate
from hitproof.spec.yaml_tree import parse_tree

GOOD = """\
rates: 1
rulebook: mixed_attention
model: gemma-3-27b
made: "2026-01-02T03:04:05+00:00"
machine:
  system: Linux
  cpu: "a processor"
  cores: 2
  python: "3.11.7"
  numpy: "2.4.6"
facts:
  prefill_us_per_token:
    value: 7.5
    unit: us/tokens
    origin: given
  disk_us_per_byte:
    value: 0.25
    unit: us/bytes
    origin: measured
    how: "a read"
    sample: {runs: 5, low: 0.125, median: 0.25, high: 0.5, spread: 0.1}
"""

figures = st.floats(min_value=0, max_value=1e12, allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20)


@st.composite
def any_rate(draw: st.DrawFn, unit: str) -> Rate:
    """A rate of any origin, with a sample where it needs one."""
    origins: tuple[Origin, ...] = get_args(Origin)
    origin = draw(st.sampled_from(origins))
    how = draw(texts)
    if origin in ("given", "stated"):
        return Rate(value=draw(figures), unit=unit, origin=origin, how=how)
    low, middle, high = sorted(draw(st.tuples(figures, figures, figures)))
    sample = RateSample(runs=draw(st.integers(1, 10**6)), low=low, median=middle, high=high, spread=draw(figures))
    return Rate(value=middle, unit=unit, origin=origin, how=how, sample=sample)


@st.composite
def any_rates(draw: st.DrawFn) -> Rates:
    """A rates file of the embedded rulebook."""
    machine = Machine(
        system=draw(texts),
        cpu=draw(texts),
        cores=draw(st.integers(1, 999)),
        memory_bytes=draw(st.none() | st.integers(1, 2**50)),
        load=draw(st.none() | figures),
        python=draw(texts),
        numpy=draw(texts),
        torch=draw(st.none() | texts),
        accelerator=draw(st.none() | texts),
    )
    facts = {"launch_us": draw(any_rate("us")), "host_us_per_byte": draw(any_rate("us/bytes"))}
    words = st.sampled_from(["null", "true", "no", "0x1", "1e3", "~", "a: b", "#"])
    return Rates(
        rates=1,
        rulebook=draw(texts | words),
        model=draw(st.none() | texts | words),
        made=draw(texts),
        machine=machine,
        facts=facts,
        figures={"crc32_us_per_byte": draw(any_rate("us/bytes"))},
    )


def written(folder: Path, text: str) -> Path:
    """A rates file with this text."""
    path = folder / "rates.yaml"
    path.write_text(text, "utf-8")
    return path


class TestReadingAndWriting:
    @given(any_rates())
    def test_what_is_written_reads_back_equal(self, rates: Rates) -> None:
        """No value, name or text changes on the way through a file."""
        assert rates == validate(Rates, parse_tree(dump_rates(rates)))

    def test_a_file_gives_the_values_of_its_facts(self, tmp_path: Path, rulebook: Rulebook) -> None:
        """The sheet knows its file and each value by the fact's name."""
        path = written(tmp_path, GOOD)
        sheet = load_rates(path, rulebook)
        assert str(path) == sheet.source
        assert {"prefill_us_per_token": 7.5, "disk_us_per_byte": 0.25} == sheet.values

    def test_units_are_compared_by_meaning(self, tmp_path: Path, rulebook: Rulebook) -> None:
        """The order of factors does not matter."""
        text = GOOD.replace("prefill_us_per_token", "layer_us_per_token").replace("us/tokens", "us/(layers*tokens)")
        assert 7.5 == load_rates(written(tmp_path, text), rulebook).values["layer_us_per_token"]

    @pytest.mark.parametrize(
        ("old", "new", "code", "place"),
        [
            ("prefill_us_per_token", "prefil_us_per_token", "reference", (12, 3)),
            ("prefill_us_per_token", "pool_epoch", "schema", (12, 3)),
            ("prefill_us_per_token", "sync_limit_us", "schema", (12, 3)),
            ("us/tokens", "us/bytes", "unit", (14, 11)),
            ("us/tokens", "tokens/us", "unit", (14, 11)),
            ("us/tokens", "us/token", "unit", (14, 11)),
            ("us/tokens", "tokens/tokens", "unit", (14, 11)),
            ("value: 7.5", "value: -7.5", "schema", (13, 12)),
            ("value: 7.5", "value: .nan", "yaml", (13, 12)),
            ("value: 7.5", "value: .inf", "yaml", (13, 12)),
            ("value: 7.5", "value: 1e999", "yaml", (13, 12)),
            ("value: 7.5", "value: nan", "schema", (13, 12)),
            ("value: 7.5", "value: true", "schema", (13, 12)),
            ("value: 7.5", 'value: "7.5"', "schema", (13, 12)),
            ("value: 7.5", "value: 1e13", "schema", (13, 12)),
            ("value: 7.5", "value: [7.5]", "schema", (13, 12)),
            ("    value: 7.5\n", "", "schema", (13, 5)),
            ("origin: given", "origin: guessed", "schema", (15, 13)),
            ("origin: given", "origin: measured", "schema", (13, 5)),
            ("origin: measured", "origin: stated", "schema", (17, 5)),
            ("value: 0.25", "value: 0.3", "schema", (17, 5)),
            ("low: 0.125", "low: 0.375", "schema", (21, 13)),
            ("runs: 5", "runs: 0", "schema", (21, 20)),
            ("runs: 5", "runs: 5, extra: 1", "schema", (21, 23)),
            ("rates: 1", "rates: 2", "schema", (1, 8)),
            ("cores: 2", "cores: 2.5", "schema", (8, 10)),
            ("rulebook: mixed_attention\n", "", "schema", (1, 1)),
            ("machine:", "machine: &a", "yaml", (5, 10)),
            ("  cores: 2", "  cores: 2\n  cores: 3", "duplicate", (9, 3)),
        ],
    )  # fmt: skip
    def test_a_hostile_file_is_refused_at_its_place(
        self, old: str, new: str, code: str, place: tuple[int, int], tmp_path: Path, rulebook: Rulebook
    ) -> None:
        """Wrong names, units, values and shapes are typed errors with file, line and column."""
        path = written(tmp_path, GOOD.replace(old, new, 1))
        with pytest.raises(HitproofError) as caught:
            load_rates(path, rulebook)
        where = caught.value.where
        assert (code, str(path), place) == (caught.value.code, where.file, (where.line, where.column))

    def test_a_large_or_deep_file_is_refused(self, tmp_path: Path, rulebook: Rulebook) -> None:
        """Size, depth and count are capped."""
        large = GOOD + "#" * 70_000
        deep = GOOD.replace("cores: 2", f"cores: {'[' * 20}{']' * 20}")
        many = GOOD.replace("cores: 2", f"cores: [{'1, ' * 5000}]")
        for text in (large, deep, many):
            with pytest.raises(HitproofError) as caught:
                load_rates(written(tmp_path, text), rulebook)
            assert "too_large" == caught.value.code

    def test_a_folder_or_nothing_is_refused(self, tmp_path: Path, rulebook: Rulebook) -> None:
        """What is no file is told as such."""
        for path in (tmp_path, tmp_path / "gone.yaml"):
            with pytest.raises(HitproofError) as caught:
                load_rates(path, rulebook)
            assert "file" == caught.value.code


class TestInForce:
    def test_rates_are_what_prices_are_counted_in(self, rulebook: Rulebook) -> None:
        """Microseconds a piece, and the one fixed price; limits and backlogs are no rates."""
        assert {
            "prefill_us_per_token",
            "layer_us_per_token",
            "device_us_per_byte",
            "host_us_per_byte",
            "disk_us_per_byte",
            "launch_us",
        } <= set(rate_facts(rulebook))
        assert not {"pool_epoch", "used_blocks", "sync_limit_us", "ageing_us"} & set(rate_facts(rulebook))

    def test_the_file_stands_before_the_rulebook(self, tmp_path: Path, rulebook: Rulebook) -> None:
        """Facts of the file change in the environment, all others stay, and the rulebook itself is untouched."""
        bound = bind_rulebook(rulebook, load_profile("gemma-3-27b"))
        made = with_rates(bound, load_rates(written(tmp_path, GOOD), rulebook)).rulebook
        changed = {name for name, value in made.environment.items() if value != rulebook.environment[name]}
        assert {"runtime.prefill_us_per_token", "runtime.disk_us_per_byte"} == changed
        assert 7.5 == made.environment["runtime.prefill_us_per_token"]
        assert made.digest == rulebook.digest

    def test_rates_of_another_model_are_refused(self, tmp_path: Path, rulebook: Rulebook) -> None:
        """A prefill of one model says nothing about another one; without a model the file holds for any."""
        bound = bind_rulebook(rulebook, load_profile("qwen3-next-80b-a3b"))
        with pytest.raises(UsageError) as caught:
            with_rates(bound, load_rates(written(tmp_path, GOOD), rulebook))
        assert (3, 8) == (caught.value.where.line, caught.value.where.column)
        free = GOOD.replace("model: gemma-3-27b\n", "")
        assert with_rates(bound, load_rates(written(tmp_path, free), rulebook)) != bound
