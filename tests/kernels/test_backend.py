"""Which backend runs: asked for by name, or chosen by the device, with one warning where a GPU cannot be used."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

import hitproof.kernels.backend as backends  # noqa: E402
import hitproof.kernels.registry as registry  # noqa: E402
from hitproof.kernels.backend import backend_on, default_backend, self_check  # noqa: E402
from hitproof.kernels.blocks import Geometry, Pool  # noqa: E402
from hitproof.kernels.checksum import launch  # noqa: E402
from hitproof.kernels.devices import device_of, moved  # noqa: E402
from hitproof.kernels.jobs import Held, Job  # noqa: E402
from hitproof.kernels.numbers import plain_row  # noqa: E402
from hitproof.kernels.registry import INTERPRETER_SWITCH, implementation, pick  # noqa: E402
from hitproof.kernels.run import run_repair  # noqa: E402
from hitproof.kernels.selftest import trials_of  # noqa: E402
from hitproof.spec.errors import UsageError  # noqa: E402
from tests.architecture.source_tree import LINKS  # noqa: E402


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    """The choice is made once in a process; each test makes it anew."""
    default_backend.cache_clear()
    yield
    default_backend.cache_clear()


def in_child(code: str, switch: str | None) -> subprocess.CompletedProcess[str]:
    """Run a program with the interpreter's switch set so, or unset."""
    environment = {name: value for name, value in os.environ.items() if name != INTERPRETER_SWITCH}
    environment |= {"PYTHONPATH": str(LINKS.parent)} | ({} if switch is None else {INTERPRETER_SWITCH: switch})
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False, timeout=120
    )


def test_without_a_gpu_the_reference_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is wrong where there is no GPU, so nobody is warned."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ["torch", "torch"] == [backend_on("cpu"), backend_on("cuda")]


@pytest.mark.parametrize("fault", ["driver", "wrong sum"])
def test_a_gpu_that_cannot_be_used_is_warned_of_once(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure at the start falls back to the reference, with one warning that tells why."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(backends, "require_triton", lambda: None)
    if fault == "wrong sum":
        monkeypatch.setattr(backends, "self_check", lambda device: self_check("cpu"))
        monkeypatch.setattr(launch, "share_of", lambda *_: 7)
    with pytest.warns(RuntimeWarning) as caught:
        assert "torch" == backend_on("cuda")
        assert "torch" == backend_on("cuda")
    assert 1 == len(caught)
    assert ("known bytes" in str(caught[0].message)) == (fault == "wrong sum")


def test_a_gpu_that_proves_itself_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the self-check passes, rows on a GPU are mended there, and rows in main memory by the reference."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(backends, "require_triton", lambda: None)
    monkeypatch.setattr(backends, "self_check", lambda device: self_check("cpu"))
    assert ["torch", "triton"] == [backend_on("cpu"), backend_on("cuda")]


def test_the_kernels_need_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked for by name, compiled kernels are refused where there is no GPU, and where kernels are interpreted."""
    with pytest.raises(UsageError, match="interprets"):
        implementation("promote", "triton")
    monkeypatch.setattr(registry, "interpreting", lambda: False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(UsageError, match="GPU"):
        implementation("promote", "triton")


@pytest.mark.parametrize("missing", ["torch", "triton"])
def test_a_missing_package_is_told_with_the_extra(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both packages come with one extra."""
    monkeypatch.setattr(registry, "find_spec", lambda name: None if name == missing else object())
    for backend in ("triton", "interpret"):
        with pytest.raises(UsageError, match=missing) as caught:
            implementation("promote", backend)
        assert "hitproof[kernels]" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("switch", "first", "expected"),
    [("1", "", "True"), (None, "", "it is not set"), (None, "import triton", "triton was imported without it")],
)
def test_the_interpreter_is_switched_on_before_triton(switch: str | None, first: str, expected: str) -> None:
    """A process interprets from the start or not at all, and is told so."""
    code = f"{first}\nfrom hitproof.kernels.registry import interpreting, require_interpreter\n"
    code += (
        "try:\n    require_interpreter()\n    print(interpreting())\nexcept Exception as error:\n    print(error.got)"
    )
    done = in_child(code, switch)
    assert expected in done.stdout, done.stderr


def test_a_switch_that_comes_late_changes_nothing() -> None:
    """What triton was imported as is what counts, not what the environment says now."""
    code = (
        "import triton, os\nos.environ['TRITON_INTERPRET'] = '1'\n"
        "from hitproof.kernels.registry import interpreting\nprint(interpreting())"
    )
    assert "False" == in_child(code, None).stdout.strip()


def test_one_repair_is_interpreted_at_a_time() -> None:
    """Threads wait for one another, since the interpreter keeps its state in its modules."""
    trials, found = trials_of("checksum")[:4], []

    def work(trial: Any) -> None:
        setup = trial.build()
        got = run_repair(setup.request, setup.job, "interpret").measured
        found.append(got == run_repair(setup.request, setup.job, "torch").measured)

    threads = [threading.Thread(target=work, args=(trial,)) for trial in trials]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [True] * 4 == found


def test_pick_names_the_twin() -> None:
    """The reference for torch, the launch for every other backend."""
    assert ["plain", "quick", "quick"] == [pick(name, "plain", "quick") for name in registry.BACKENDS]


def job_of(buffer: Any) -> Job:
    """A job whose rows, copy and sources share memory."""
    geometry = Geometry(2, 1, 8)
    pools = [Pool(buffer[16 * i : 16 * i + 32], geometry, 2) for i in range(2)]
    held, target = (Held((pool,), torch.tensor([0, 1]), 4, plain_row("bf16", 4)) for pool in pools)
    return Job(held, target, {"maps": (torch.arange(3), [held.table])}, {"weights": {"key": torch.ones(2)}})


def test_a_job_is_moved_whole() -> None:
    """Copies share memory where the originals do; addresses stay; what was written comes back, and nothing else."""
    buffer = torch.arange(48, dtype=torch.uint8)
    job = job_of(buffer)
    job = replace(job, sources={**job.sources, "self": job.held})
    there, back = moved(job, "cpu")
    held, target, twice = there.own(), there.copy(), there.source("self")
    assert (job.own().address, job.copy().address) == (held.address, target.address)
    assert job.own().layers[0].buffer.data_ptr() != held.layers[0].buffer.data_ptr()
    assert twice.layers[0].buffer.data_ptr() == held.layers[0].buffer.data_ptr()
    target.layers[0].buffer[0] = 200
    there.source("maps")[0][1] = 9
    assert 200 == int(held.layers[0].buffer[16])
    assert 16 == int(buffer[16])
    back()
    assert (200, 17, 9) == (int(buffer[16]), int(buffer[17]), int(job.source("maps")[0][1]))
    assert torch.equal(torch.ones(2), there.parameters["weights"]["key"])


def test_the_device_is_that_of_what_is_written() -> None:
    """The copy's device, else that of the rows; a job without rows runs on the processor."""
    job = job_of(torch.zeros(48, dtype=torch.uint8))
    assert "cpu" == device_of(job)
    away = Held((Pool(torch.empty(32, dtype=torch.uint8, device="meta"), Geometry(2, 1, 8), 2),), *_rest(job))
    assert "meta" == device_of(replace(job, target=away))
    assert "meta" == device_of(replace(job, held=away, target=None))
    assert "cpu" == device_of(Job(None, None))


def _rest(job: Job) -> tuple[Any, int, Any]:
    held = job.own()
    return held.table, held.count, held.form


def test_rows_elsewhere_are_brought_to_the_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows on another device than the backend's are copied, mended and brought back."""
    import hitproof.kernels.devices as devices

    setup = next(trial for trial in trials_of("promote")).build()
    monkeypatch.setattr(devices, "device_of", lambda job: "cuda")
    plain = run_repair(setup.request, setup.job, "torch")
    again = next(trial for trial in trials_of("promote")).build()
    expected = run_repair(again.request, again.job, "interpret")
    assert expected.measured == plain.measured
    for one, two in zip(setup.job.copy().layers, again.job.copy().layers, strict=True):
        assert torch.equal(one.buffer, two.buffer)
