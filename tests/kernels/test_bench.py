"""`hitproof kernels bench`: what is timed does the work, and what is told of it is said to be what it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from hitproof.cli.kernel_bench import bytes_table, pages_of  # noqa: E402
from hitproof.cli.main import main  # noqa: E402
from hitproof.kernels.bench import CASES, EAGER, Case, Sizes, build, copy_rate, measured  # noqa: E402
from hitproof.kernels.blocks import gather  # noqa: E402
from hitproof.kernels.launching import recorded  # noqa: E402
from hitproof.kernels.registry import KERNELS  # noqa: E402
from hitproof.kernels.run import run_repair  # noqa: E402
from hitproof.kernels.traffic import traffic_of  # noqa: E402

PAGES = pages_of("deepseek-v4-flash")
SMALL = Sizes(PAGES, rows=70, tokens=128, layers=2, device=torch.device("cpu"))


def copies(case: Case) -> list[Any]:
    """Every byte that the case may have written."""
    target = case.job.target
    written = [] if target is None else [pool.buffer.clone() for pool in target.layers]
    if case.request.repair == "index_remap":
        written += [case.job.source("self")[1].rows.clone(), case.job.source("self")[1].positions.clone()]
    return written


def equal(left: list[Any], right: list[Any]) -> bool:
    """Byte by byte."""
    return all(torch.equal(one, other) for one, other in zip(left, right, strict=True))


def test_pages_are_those_of_the_profile() -> None:
    """64 rows of 584 bytes in 37,440; 64 keys of 132 in 8,640; 2 entries of ratio 128 in 1,728."""
    told = {name: (page.cell_bytes, page.rows, page.block_bytes, page.layers) for name, page in PAGES.items()}
    assert (584, 64, 37_440, 43) == told["window"]
    assert (584, 64, 37_440, 21) == told["csa_entries"]
    assert (132, 64, 8_640, 21) == told["csa_index"]
    assert (584, 2, 1_728, 20) == told["hca_entries"]


def test_every_repair_is_timed() -> None:
    """Each kernel has a case, and a form in plain PyTorch to stand beside it."""
    assert list(KERNELS) == sorted({name.partition(",")[0] for name in CASES}) == sorted(EAGER)


@pytest.mark.parametrize("name", CASES)
def test_plain_pytorch_writes_what_the_reference_writes(name: str) -> None:
    """To the byte, or the comparison of times would be one of different work."""
    ours, theirs = build(name, SMALL), build(name, SMALL)
    run_repair(ours.request, ours.job, "torch")
    EAGER[theirs.request.repair](theirs.request, theirs.job)
    assert equal(copies(ours), copies(theirs))


@pytest.mark.parametrize("name", ["promote, entries of ratio 4", "index_remap, index of all layers"])
def test_recorded_launches_do_the_work_again(name: str) -> None:
    """What is timed as the kernels alone is all that writes."""
    case = build(name, SMALL)
    with recorded() as launches:
        run_repair(case.request, case.job, "interpret")
    target = case.job.copy()
    expected = [gather(pool, target.table, target.count) for pool in target.layers]
    for pool in target.layers:
        pool.buffer.fill_(0x5A)
    for one in launches:
        one()
    assert equal(expected, [gather(pool, target.table, target.count) for pool in target.layers])


def test_times_and_bytes_are_of_the_case() -> None:
    """Bytes by the formula; kernels alone are timed only where kernels run; a share is of the copy's rate."""
    case = build("checksum, entries of ratio 4", SMALL)
    plain = measured(case, "torch", 1e9, runs=1)
    quick = measured(case, "interpret", 1e9, runs=1)
    formula = traffic_of(case.request, case.job)
    assert formula.least == plain.least == 70 * 584
    assert formula.read == plain.asked
    assert plain.kernels is None and quick.kernels is not None and plain.compiled is None
    assert plain.share == pytest.approx(plain.least / 1e9 / (plain.repair / 1e6))
    assert quick.share == pytest.approx(quick.least / 1e9 / (quick.kernels / 1e6))
    assert copy_rate(torch.device("cpu"), 1 << 16, runs=1) > 0


def test_the_page_tells_what_the_formulas_give(capsys: pytest.CaptureFixture[str]) -> None:
    """The table of docs/kernels.md is that of `bench --bytes sm90`, row for row."""
    table = bytes_table("sm90", CASES, {"rows": 0, "tokens": 0, "layers": 0})
    page = (Path(__file__).parents[2] / "docs" / "kernels.md").read_text(encoding="utf-8")
    assert [] == [row for row in table if f"| {' | '.join(row)} |\n" not in page]
    assert 0 == main(["kernels", "bench", "--bytes", "gfx942", "--repair", "promote", "--format", "json"])
    assert "gfx942" == json.loads(capsys.readouterr().out)["target"]
    assert 3 == main(["kernels", "bench", "--bytes", "sm1"])


def test_the_command_says_what_it_timed(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a GPU it is the references, and that is said; as JSON all numbers stand there."""
    arguments = ["kernels", "bench", "--repair", "promote", "--rows", "70", "--runs", "1"]
    if torch.cuda.is_available():
        pytest.skip("this is what is said where no GPU is")
    assert 0 == main(arguments)
    assert "the references were timed, not the kernels" in capsys.readouterr().out
    assert 0 == main([*arguments, "--format", "json"])
    told = json.loads(capsys.readouterr().out)
    assert "torch" == told["backend"] and 70 == told["sizes"]["rows"]
    assert ["promote, entries of ratio 4"] == [case["name"] for case in told["cases"]]
    assert 3 == main(["kernels", "bench", "--repair", "teleport"])
