"""Launches: tiles of the target, nothing where there is nothing to do, and watchers that see all."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

import hitproof.kernels.configs as configs  # noqa: E402
import hitproof.kernels.launching as launching  # noqa: E402
from hitproof.kernels.access import access_of  # noqa: E402
from hitproof.kernels.blocks import Geometry  # noqa: E402
from hitproof.kernels.configs import DEFAULT, INTERPRET, Config, config_for, target_of  # noqa: E402
from hitproof.kernels.launching import launch, watched  # noqa: E402

TABLE = {DEFAULT: Config({"BLOCK": 8}), "sm90": Config({"BLOCK": 16}), INTERPRET: Config({"BLOCK": 32}, warps=2)}


class Recorded:
    """Stands for a kernel, and keeps what it is called with."""

    __name__ = "recorded_kernel"
    arg_names = ("into", "count", "BLOCK")

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        return lambda *arguments, **constants: self.calls.append((grid, arguments, constants))


def test_a_launch_takes_the_tiles_of_its_target() -> None:
    """Arguments go through, and tiles, warps and stages come from the table."""
    kernel, into = Recorded(), torch.zeros(4)
    launch(kernel, (3,), TABLE, into, 4, ROWS=2)
    assert [((3,), (into, 4), {"ROWS": 2, "BLOCK": 32, "num_warps": 2, "num_stages": 2})] == kernel.calls


def test_nothing_is_launched_for_nothing() -> None:
    """A grid with an empty axis is no launch, and no watcher sees one."""
    kernel = Recorded()
    with watched() as seen:
        launch(kernel, (3, 0), TABLE, torch.zeros(4), 4)
    assert [] == kernel.calls
    assert [] == seen


def test_watchers_see_launches_while_they_watch() -> None:
    """Types of what is passed and all constants are told, to each watcher, until it is closed."""
    kernel = Recorded()
    with watched() as outer:
        with watched() as inner:
            launch(kernel, (1,), TABLE, torch.zeros(4, dtype=torch.uint8), 4, ROWS=2)
        launch(kernel, (2,), TABLE, torch.zeros(4), None)
    launch(kernel, (3,), TABLE, torch.zeros(4), 4)
    assert [(1,), (2,)] == [one.grid for one in outer]
    assert [outer[0]] == inner
    assert {"into": "*u8", "count": "int"} == inner[0].types
    assert {"ROWS": 2, "BLOCK": 32} == inner[0].constants
    assert 3 == len(kernel.calls)


@pytest.mark.parametrize(
    ("hip", "about", "target", "tile"),
    [
        (None, SimpleNamespace(major=9, minor=0), "sm90", 16),
        (None, SimpleNamespace(major=12, minor=0), "sm120", 8),
        ("7.0", SimpleNamespace(gcnArchName="gfx942:sramecc+:xnack-"), "gfx942", 8),
    ],
)
def test_targets_are_named_by_their_device(
    hip: str | None, about: Any, target: str, tile: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NVIDIA's by their capability, AMD's by their architecture; what no table names has the default."""
    monkeypatch.setattr(torch.version, "hip", hip)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: about)
    configs._gpu_target.cache_clear()
    device = torch.device("cuda", 0)
    assert (target, tile) == (target_of(device), config_for(TABLE, device).tiles["BLOCK"])
    configs._gpu_target.cache_clear()
    assert INTERPRET == target_of(torch.device("cpu"))


@pytest.mark.parametrize(
    ("geometry", "address", "unit", "dense"),
    [
        (Geometry(64, 1, 584, block_bytes=37_440), 64, 8, 1),
        (Geometry(64, 1, 584, block_bytes=37_440), 4, 4, 0),
        (Geometry(64, 1, 584, block_bytes=37_440), 3, 1, 0),
        (Geometry(64, 1, 132), 0, 4, 0),
        (Geometry(16, 2, 64, pitch=136), 0, 8, 0),
        (Geometry(16, 2, 64, "head_major"), 0, 8, 0),
        (Geometry(16, 2, 64, "value_major", item_bytes=2), 0, 2, 0),
        (Geometry(16, 2, 65), 0, 1, 0),
    ],
)
def test_accesses_are_as_wide_as_rows_allow(geometry: Geometry, address: int, unit: int, dense: int) -> None:
    """By the address, all steps and the bytes that lie together; dense only where words follow one another."""
    access = access_of(geometry, address)
    assert (unit, dense) == (access.unit, access.dense)
    assert access.words == geometry.rows * geometry.heads * -(-geometry.cell_bytes // 8)


def test_types_that_kernels_take_are_told() -> None:
    """Numbers, tensors and nothing at all."""
    told = [launching._type_of(one) for one in (1, 0.5, torch.zeros(1, dtype=torch.int64), torch.zeros(1), None)]
    assert ["int", "fp32", "*i64", "*fp32", "int"] == told
