"""Kernels compile to machine code for targets that are not here, without spills, and a spill would be seen."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

from hitproof.kernels.registry import INTERPRETER_SWITCH, KERNELS
from hitproof.kernels.targets import TARGETS, Compiled, compile_all, of_amd, specs_of
from hitproof.spec.errors import UsageError
from tests.architecture.source_tree import LINKS, ROOT
from tests.cli.running import run
from tests.docs.pages import rows

MOVING = ("checksum", "promote")


@pytest.fixture(scope="module")
def machine_code() -> list[Compiled]:
    """The first case of every kernel, and of some for another maker; the command compiles all cases for all targets."""
    return compile_all(KERNELS, ["sm90"], cases=1) + compile_all(MOVING, ["gfx942"], cases=1)


def test_every_kernel_compiles_without_a_spill(machine_code: list[Compiled]) -> None:
    """Nothing that is shipped keeps registers in memory."""
    for target, repairs in (("sm90", KERNELS), ("gfx942", MOVING)):
        cases: dict[str, str] = {}
        for spec in (spec for repair in repairs for spec in specs_of(repair)):
            cases.setdefault(spec.kernel.__name__, spec.name)
        assert cases == {one.kernel: one.case for one in machine_code if one.target == target}
    assert [] == [one for one in machine_code if one.spills]
    assert all(0 < one.registers <= 512 for one in machine_code)


def test_rows_that_lie_aligned_move_16_bytes_at_a_time(machine_code: list[Compiled]) -> None:
    """V4's pages are read and written in the widest accesses that there are."""
    aligned = [one for one in machine_code if one.repair in MOVING and "aligned" in one.case]
    assert 4 == len(aligned)
    assert all(one.wide for one in aligned)


def test_a_spill_is_seen() -> None:
    """A kernel with far too many values a lane keeps some in memory, and the report says so."""
    code = (
        "import json, dataclasses\nfrom hitproof.kernels.configs import DEFAULT, Config\n"
        "from hitproof.kernels.targets import compile_one, specs_of\nspec = specs_of('requantize')[-1]\n"
        "spec = dataclasses.replace(spec, configs={DEFAULT: Config({'ELEMENTS': 8192}, warps=1)})\n"
        "print(json.dumps(compile_one('requantize', spec, 'sm90').spills))"
    )
    environment = {name: value for name, value in os.environ.items() if name != INTERPRETER_SWITCH}
    environment["PYTHONPATH"] = str(LINKS.parent)
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert 0 == done.returncode, done.stderr
    assert json.loads(done.stdout) > 0


def test_a_spill_of_the_other_maker_is_seen() -> None:
    """Its compiler writes lanes' and programs' spilled registers into the text, in registers of 4 bytes."""
    names = {".vgpr_count": 96, ".vgpr_spill_count": 3, ".sgpr_spill_count": 2}
    text = "global_load_dwordx4 v[0:3]\n" + "".join(f"    {name}: {value}\n" for name, value in names.items())
    assert {"registers": 96, "spills": 20, "wide": 1, "matrix": 0} == of_amd({"amdgcn": text})


def test_what_does_not_compile_is_told() -> None:
    """A target that no compiler knows is an error of usage that says for what."""
    with pytest.raises(UsageError, match="sm7"):
        compile_all(["checksum"], ["sm7"])


def test_the_command_tells_each_case() -> None:
    """As JSON, a line a kernel and case."""
    done = run("kernels", "compile", "--targets", "gfx950", "--repair", "checksum", "--format=json")
    assert (0, "good") == (done.code, done.data["verdict"])
    assert [("checksum_kernel", "gfx950")] * len(specs_of("checksum")) == [
        (one["kernel"], one["target"]) for one in done.data["kernels"]
    ]


def test_the_readme_tells_every_kernel_and_target() -> None:
    """The table of the room's README has a row for each case and a column for each target."""
    told = rows(ROOT / "kernels" / "README.md", "kernel", "case", *TARGETS)
    expected = [[f"`{spec.kernel.__name__}`", spec.name] for repair in KERNELS for spec in specs_of(repair)]
    assert expected == [row[:2] for row in told]
    assert all(all(cell.count("/") == 3 for cell in row[2:]) for row in told)
