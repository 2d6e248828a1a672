"""Every repair has a test in which a real model goes on behind what it made, and that test cannot do without it."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers", minversion="5.24")

import hitproof.kernels.run as protocol  # noqa: E402
from hitproof.kernels.registry import KERNELS, implementation  # noqa: E402

TESTS: dict[str, list[tuple[str, tuple[Any, ...]]]] = {
    "checksum": [
        ("test_moved_prefix_continues.TestChecksum.test_a_verified_prefix_answers_as_a_cold_run", (model,))
        for model in ("gemma3", "v4")
    ],
    "index_rebuild": [("test_deepseek_end_to_end.test_v4_continues_from_what_the_protocol_wrote", (131,))],
    "index_remap": [("test_remapped_index_continues.test_a_remapped_index_answers_as_a_cold_run", (0,))],
    "promote": [
        ("test_moved_prefix_continues.TestPromote.test_a_prefix_that_came_back_answers_as_a_cold_run", (model,))
        for model in ("gemma3", "v4")
    ],
    "recompress": [("test_deepseek_end_to_end.test_v4_continues_from_what_the_protocol_wrote", (131,))],
    "relayout": [
        ("test_moved_prefix_continues.TestRelayout.test_a_prefix_laid_out_anew_answers_as_a_cold_run", (model,))
        for model in ("gemma3", "v4")
    ],
    "requantize": [
        ("test_requantized_prefix_continues.test_a_prefix_in_eight_bits_answers_within_its_rounding", case)
        for case in (("gemma3", "fp8_e4m3", "in the row"), ("v4", "fp8_e4m3", "powers of two"))
    ],
    "tail_fill": [("test_tail_fill_continues.test_a_filled_prefix_answers_as_a_cold_run", ("gemma3", 0, 9))],
    "window_roll": [("test_window_roll_models.test_a_rolled_ring_answers_as_a_cold_run", ("gemma3", 0, 7))],
}
"""By repair: the test that runs it on a model's cache, and what it is called with."""


class GoneError(Exception):
    """The repair that was taken away was asked for."""


def found(name: str) -> Callable[..., None]:
    """The test itself."""
    module, *inside = name.split(".")
    thing: Any = import_module(f"tests.kernels.{module}")
    for part in inside:
        thing = getattr(thing() if isinstance(thing, type) else thing, part)
    test: Callable[..., None] = thing
    return test


def test_no_repair_is_forgotten() -> None:
    """All nine are listed, and nothing else."""
    assert list(KERNELS) == sorted(TESTS)


CASES = [(repair, name, case) for repair, tests in TESTS.items() for name, case in tests]


@pytest.mark.parametrize(("repair", "name", "case"), CASES, ids=lambda part: str(part).rpartition(".")[2])
def test_a_model_does_not_go_on_without_the_repair(
    monkeypatch: pytest.MonkeyPatch, repair: str, name: str, case: tuple[Any, ...]
) -> None:
    """The test runs the repair by the protocol: with this one taken away it ends there, and with it, it passes."""
    test = found(name)
    asked: list[str] = []

    def counted(wanted: str, backend: str) -> Any:
        asked.append(wanted)
        return implementation(wanted, backend)

    def without(wanted: str, backend: str) -> Any:
        if repair == wanted:
            raise GoneError(wanted)
        return implementation(wanted, backend)

    with monkeypatch.context() as patch:
        patch.setattr(protocol, "implementation", counted)
        test(*case)
    assert repair in asked
    monkeypatch.setattr(protocol, "implementation", without)
    with pytest.raises(GoneError):
        test(*case)
