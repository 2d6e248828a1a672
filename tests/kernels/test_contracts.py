"""Every repair keeps its declaration on every size, and no entry of a declaration can go unnoticed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import hitproof.kernels.promote.reference as promoting  # noqa: E402
import hitproof.kernels.relayout.bind as relaying  # noqa: E402
import hitproof.kernels.relayout.reference as relayout  # noqa: E402
import hitproof.kernels.requantize.reference as requantizing  # noqa: E402
from hitproof.cli.kernel_deletions import Deletion, deletions  # noqa: E402
from hitproof.kernels.blocks import scatter  # noqa: E402
from hitproof.kernels.checksum import partial  # noqa: E402
from hitproof.kernels.jobs import Done, Held  # noqa: E402
from hitproof.kernels.registry import KERNELS  # noqa: E402
from hitproof.kernels.requantize import requantize  # noqa: E402
from hitproof.kernels.selftest import Trial, check_sources, check_trial, trials_of  # noqa: E402
from hitproof.rules import load_rulebook  # noqa: E402

REPAIRS = load_rulebook("mixed_attention").repairs
TRIALS = [trial for repair in KERNELS for trial in trials_of(repair)]
DELETIONS = [deletion for repair in KERNELS for deletion in deletions(REPAIRS[repair])]


@pytest.mark.parametrize("trial", TRIALS, ids=lambda trial: f"{trial.repair}: {trial.name}")
def test_a_repair_keeps_its_declaration(trial: Trial) -> None:
    """Facts are those declared and true of the bytes, rows are right, and no byte besides has changed."""
    assert [] == check_trial(trial, REPAIRS[trial.repair])


@pytest.mark.parametrize("repair", KERNELS)
def test_a_repair_runs_from_what_it_consumes(repair: str) -> None:
    """What is declared suffices, and without any one of it the source is lost and nothing is written."""
    assert [] == check_sources(trials_of(repair)[0], REPAIRS[repair])


@pytest.mark.parametrize("repair", KERNELS)
def test_every_declared_format_and_layout_is_tried(repair: str) -> None:
    """The trials write each number format and each layout that the declaration names."""
    trials, declared = trials_of(repair), REPAIRS[repair]
    assert set(declared.dtypes) == {trial.dtype for trial in trials}
    assert set(declared.layouts) == {trial.layout for trial in trials}


@pytest.mark.parametrize("deletion", DELETIONS, ids=lambda one: f"{one.repair}: {one.part}: {one.entry}")
def test_a_deleted_entry_is_noticed(deletion: Deletion) -> None:
    """A trial fails, and names the entry, where a source or a fact is missing from the declaration."""
    trial = trials_of(deletion.repair)[0]
    if deletion.part == "consumes":
        found = {one.about for one in check_sources(trial, deletion.declared)}
        assert "consumes" in found
    else:
        assert [deletion.entry] == [one.about for one in check_trial(trial, deletion.declared)]


@pytest.mark.parametrize("repair", KERNELS)
def test_an_invented_entry_is_noticed(repair: str) -> None:
    """A source that nobody reads and a fact that nobody makes are noticed too."""
    trial, declared = trials_of(repair)[0], REPAIRS[repair]
    more = replace(declared, consumes=tuple((*names, "tokens") for names in declared.consumes))
    assert check_sources(trial, more)
    fact = replace(declared, establishes={**declared.establishes, "seed": "measured"})
    assert ["seed"] == [one.about for one in check_trial(trial, fact)]


def first_of(repair: str) -> Callable[[], list[str]]:
    """What the checks say of the first trial."""
    return lambda: [one.text for one in check_trial(trials_of(repair)[0], REPAIRS[repair])]


class TestBrokenKernels:
    """A kernel that is broken in one place fails its trial, so that a trial which passes says something."""

    def test_a_byte_beyond_the_rows(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """One byte in front of a block of the copy is none of the repair's business."""

        def greedy(pool: Any, table: Any, rows: Any, first: int = 0) -> None:
            scatter(pool, table, rows, first)
            pool.buffer[pool.geometry.offset - 1] ^= 1

        monkeypatch.setattr(relayout, "scatter", greedy)
        assert any("none of its business" in text for text in first_of("relayout")())

    def test_rows_one_late(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Rows in the wrong order are seen."""
        monkeypatch.setattr(relayout, "scatter", lambda pool, table, rows: scatter(pool, table, rows.roll(1, 0)))
        assert any("rows are wrong" in text for text in first_of("relayout")())

    def test_a_tail_that_is_left(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A block whose rest still holds what was there is seen."""
        monkeypatch.setattr(relayout, "clear", lambda pool, blocks: None)
        assert any("is not zero" in text for text in first_of("relayout")())

    def test_a_fingerprint_that_was_expected(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A fact that was taken from the request in the place of the bytes is seen."""
        monkeypatch.setattr(relaying, "finish", lambda total, size: "what was promised")
        assert any(text.startswith("measured is") for text in first_of("relayout")())

    def test_a_sum_that_passes_a_block_by(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A share of the fingerprint that is left out is seen."""
        whole = partial
        monkeypatch.setattr(
            promoting, "partial", lambda rows, first, *heads: whole(rows, first, *heads) if first else 0
        )
        assert any("was recorded" in text for text in first_of("promote")())

    def test_values_that_are_cut(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Rounding towards zero is beyond the tolerance of rounding to nearest."""
        right = requantize

        def cut(source: Any, held: Any, target: Any, *rest: Any, **more: Any) -> None:
            right(source, held, target, *rest, **more)
            cells = target.cells
            cells[:] = torch.where(cells > 0, cells - 1, cells)

        monkeypatch.setattr(requantizing, "requantize", cut)
        assert any("values are off" in text for text in first_of("requantize")())

    def test_a_source_that_is_changed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The rows that were found stay as they were found."""
        from hitproof.kernels.checksum import bind

        right = bind.run

        def spoiling(request: Any, job: Any) -> Done:
            done = right(request, job)
            held: Held = job.own()
            held.layers[0].buffer[0] ^= 1
            return done

        monkeypatch.setattr(bind, "run", spoiling)
        assert any("none of its business" in text for text in first_of("checksum")())
