"""Bytes and operations of kernels: the formulas beside them equal what the interpreter counts."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from hitproof.kernels.counting import counted  # noqa: E402
from hitproof.kernels.registry import INTERPRETER_SWITCH, KERNELS, interpreting  # noqa: E402
from hitproof.kernels.run import run_repair  # noqa: E402
from hitproof.kernels.selftest import trials_of  # noqa: E402
from hitproof.kernels.traffic import traffic_of  # noqa: E402
from hitproof.spec.errors import UsageError  # noqa: E402
from tests.kernels.tiny_kernels import some_lanes_kernel  # noqa: E402

SAMPLE = {
    "checksum": (0, 5, 8, 23),
    "index_rebuild": (0, 1, 2, 5),
    "index_remap": (0, 1, 2, 3),
    "promote": (0, 2, 8, 11, 14),
    "recompress": (3, 4, 5, 7, 9),
    "relayout": (1, 2, 3, 5, 11),
    "requantize": (0, 5, 12, 16, 22, 40, 41),
    "tail_fill": (0, 1, 4, 6),
    "window_roll": (0, 2, 3, 8, 11),
}
"""Trials by number: sizes and formats that differ, and that the interpreter is done with in about a second."""


def test_lanes_that_are_masked_are_not_counted() -> None:
    """By hand: two programs that each read 5 + 1 numbers of 4 bytes, write 3 of 8 and 1 of 4, and multiply once."""
    source, target = torch.zeros(8, dtype=torch.int32), torch.zeros(8, dtype=torch.int64)
    with counted() as counts:
        some_lanes_kernel[(2,)](source, target, torch.zeros(8, dtype=torch.int32), N=32)
    assert 2 * (5 * 4 + 4) == counts.read
    assert 2 * (3 * 8 + 4) == counts.written
    assert 2 * 2 == counts.atomics
    assert 2 * 2 * 16 * 16 * 32 == counts.products
    assert 5 * 4 + 3 * 8 + 4 == counts.touched
    with counted() as again:
        pass
    assert 0 == again.read and 2 * (5 * 4 + 4) == counts.read


def test_nothing_is_counted_where_kernels_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the interpreter can be looked at; elsewhere that is said."""
    assert interpreting()
    monkeypatch.setattr("hitproof.kernels.registry.interpreting", lambda: False)
    with pytest.raises(UsageError, match=INTERPRETER_SWITCH), counted():
        pass


def test_every_kernel_has_a_formula() -> None:
    """The sample below is of all repairs that a kernel runs."""
    assert list(KERNELS) == sorted(SAMPLE)


@pytest.mark.parametrize(("repair", "number"), [(name, number) for name, some in SAMPLE.items() for number in some])
def test_the_formula_equals_what_is_counted(repair: str, number: int) -> None:
    """To the byte, on sizes that fill no tile; and what is called the least is no more than what was touched."""
    setup = trials_of(repair)[number].build()
    formula = traffic_of(setup.request, setup.job)
    with counted() as counts:
        run_repair(setup.request, setup.job, "interpret")
    assert (counts.read, counts.written, counts.products) == (formula.read, formula.written, formula.products)
    assert 0 < formula.least <= counts.touched


@pytest.mark.parametrize(
    ("repair", "number"),
    [("index_rebuild", 0), ("index_remap", 1), ("promote", 11), ("recompress", 3), ("relayout", 3), ("tail_fill", 0)],
)
def test_the_formula_holds_with_the_tiles_of_a_gpu(repair: str, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With more and smaller programs, as a GPU would run them; products of 16-bit numbers aside, which it has alone."""
    monkeypatch.setattr("hitproof.kernels.configs.target_of", lambda device: "sm90")
    setup = trials_of(repair)[number].build()
    formula = traffic_of(setup.request, setup.job, "sm90")
    with counted() as counts:
        run_repair(setup.request, setup.job, "interpret")
    assert (counts.read, counts.written, counts.products) == (formula.read, formula.written, formula.products)
