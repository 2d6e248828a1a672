"""What is enqueued can be captured in a graph: between a call and its launch nothing is allocated, copied or read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

import hitproof.kernels.checksum.launch as checksum  # noqa: E402
import hitproof.kernels.promote.launch as promote  # noqa: E402
import hitproof.kernels.relayout.launch as relayout  # noqa: E402
import hitproof.kernels.requantize.launch as requantize  # noqa: E402
from hitproof.kernels.blocks import Geometry, pool_of  # noqa: E402
from hitproof.kernels.numbers import V4_ROW, plain_row  # noqa: E402

VIEWS = {"aten.slice.Tensor", "aten.alias.default", "aten.as_strided.default", "aten.expand.default"}
"""What torch may be asked for: other views of the same memory."""


class Noted(TorchDispatchMode):  # type: ignore[misc]
    """Notes every operation of torch that is not a view."""

    def __init__(self) -> None:
        super().__init__()
        self.done: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if str(func) not in VIEWS:
            self.done.append(str(func))
        return func(*args, **(kwargs or {}))


SOURCE, TARGET = pool_of(Geometry(4, 1, 584), 3), pool_of(Geometry(4, 1, 584, stride=2400), 3)
WIDE, TABLE, TOTAL = pool_of(Geometry(4, 1, 1024), 3), torch.tensor([2, 0, 1]), torch.zeros(1, dtype=torch.int64)
SCALE = torch.ones((1, 1, 1)).expand(9, 1, 512)
SMALL = pool_of(Geometry(4, 1, 512), 3)
WAYS: dict[str, tuple[Any, Callable[[], None]]] = {
    "checksum": (checksum, lambda: checksum.enqueue(TOTAL, SOURCE, TABLE, 9, 1)),
    "promote": (promote, lambda: promote.enqueue(TOTAL, SOURCE, TABLE, TARGET, TABLE, 9, 1)),
    "relayout": (relayout, lambda: relayout.enqueue(TOTAL, SOURCE, TABLE, TARGET, TABLE, 9, 1)),
    "requantize": (
        requantize,
        lambda: requantize.enqueue(SOURCE, TABLE, WIDE, TABLE, 9, (V4_ROW, None), (plain_row("bf16", 512), None), 1, 1),
    ),
    "requantize, scales apart": (
        requantize,
        lambda: requantize.enqueue(
            WIDE, TABLE, SMALL, TABLE, 9, (plain_row("bf16", 512), None), (plain_row("fp8_e4m3", 512), SCALE)
        ),
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_only_views_are_made(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every way is launched at once, with tensors that were there before or are views of them."""
    module, enqueue = WAYS[way]
    launched: list[tuple[Any, ...]] = []
    monkeypatch.setattr(module, "launch", lambda *arguments, **constants: launched.append(arguments))
    with Noted() as noted:
        enqueue()
    assert [] == noted.done
    assert launched


def test_a_number_that_is_read_back_is_noted() -> None:
    """The plain call reads its sum, which is seen, so that an empty note says something."""
    with Noted() as noted:
        checksum.share_of(SOURCE, TABLE, 9, 1)
    assert "aten._local_scalar_dense.default" in noted.done
