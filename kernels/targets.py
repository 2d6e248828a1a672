"""Kernels compiled for targets that are not here: registers, spills and shared memory, read off the machine code."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hitproof.kernels.registry import INTERPRETER_SWITCH, require_package
from hitproof.spec.errors import UsageError

if TYPE_CHECKING:
    from hitproof.kernels.configs import CompileSpec

__all__ = ["Compiled", "TARGETS", "compile_all", "compile_one", "compiled_for", "of_amd", "of_nvidia", "specs_of"]

TARGETS = ("sm80", "sm90", "sm100", "gfx942", "gfx950")
"""Targets that every kernel is compiled for: NVIDIA A100, H100 and B200, AMD MI300X and MI350X."""

_SECONDS = 900


@dataclass(frozen=True, slots=True)
class Compiled:
    """A kernel's machine code for one target.

    Args:
        repair: Folder of the kernel.
        kernel: Name of the function.
        case: The way in which it is launched, in words.
        target: As in `TARGETS`.
        tiles: Its configuration.
        warps: Warps of a program.
        registers: 32-bit registers of a lane (AMD: vector registers).
        spills: Bytes of a lane's registers that live in memory.
        shared: Bytes of shared memory of a program.
        wide: Instructions that load or store 16 bytes of global memory a lane.
        matrix: Instructions of the tensor cores (AMD: matrix cores).
    """

    repair: str
    kernel: str
    case: str
    target: str
    tiles: Mapping[str, int]
    warps: int
    registers: int
    spills: int
    shared: int
    wide: int
    matrix: int


def compile_all(repairs: Iterable[str], targets: Iterable[str], cases: int = 0) -> list[Compiled]:
    """Compile the ways in which kernels are launched, one child process a target.

    Args:
        repairs: Folders of kernels.
        targets: As in `TARGETS`.
        cases: The first so many of each kernel; 0 for all.

    Raises:
        UsageError: A package is missing, or a kernel does not compile.
    """
    require_package()
    names = list(repairs)
    # A child is one process and each waits for it in a thread.
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as waiting:
        return [one for found in waiting.map(lambda target: _in_child(target, names, cases), targets) for one in found]


def _in_child(target: str, repairs: list[str], cases: int) -> list[Compiled]:
    done = subprocess.run(
        [sys.executable, "-m", "hitproof.kernels.targets", target, str(cases), *repairs],
        env={name: value for name, value in os.environ.items() if name != INTERPRETER_SWITCH},
        capture_output=True,
        text=True,
        check=False,
        timeout=_SECONDS,
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no word of it"])[-1]
        raise UsageError(f"the kernels do not compile for {target}", got=last, expected="machine code")
    return [Compiled(**one) for one in json.loads(done.stdout)]


def compiled_for(target: str, repairs: Iterable[str], cases: int = 0) -> list[Compiled]:
    """The same for one target in this process, which must not interpret."""
    found: list[Compiled] = []
    seen: Counter[str] = Counter()
    for repair in repairs:
        for spec in specs_of(repair):
            seen[spec.kernel.__name__] += 1
            if not cases or seen[spec.kernel.__name__] <= cases:
                found.append(compile_one(repair, spec, target))
    return found


def specs_of(repair: str) -> list[CompileSpec]:
    """The ways in which a repair's kernels are launched."""
    # Where the cases are many, they have a file of their own.
    module = "cases" if find_spec(f"hitproof.kernels.{repair}.cases") else "launch"
    found: list[CompileSpec] = import_module(f"hitproof.kernels.{repair}.{module}").specs()
    return found


def compile_one(repair: str, spec: CompileSpec, target: str) -> Compiled:
    """Compile one case, in a process that does not interpret."""
    triton: Any = import_module("triton")
    source: Any = import_module("triton.compiler").ASTSource
    from hitproof.kernels.configs import DEFAULT

    config = spec.configs.get(target, spec.configs[DEFAULT])
    constants = {**spec.constants, **config.tiles}
    names = list(spec.kernel.arg_names)
    made = triton.compile(
        source(
            spec.kernel,
            {name: spec.types.get(name, "constexpr") for name in names},
            {(names.index(name),): value for name, value in constants.items()},
            {(names.index(name),): [["tt.divisibility", 16]] for name in spec.aligned},
        ),
        target=_gpu(target),
        options={"num_warps": config.warps, "num_stages": config.stages},
    )
    read = of_nvidia if target.startswith("sm") else of_amd
    return Compiled(
        repair=repair,
        kernel=spec.kernel.__name__,
        case=spec.name,
        target=target,
        tiles=dict(config.tiles),
        warps=config.warps,
        shared=int(made.metadata.shared),
        **read(made.asm),
    )


def _gpu(target: str) -> Any:
    of: Any = import_module("triton.backends.compiler").GPUTarget
    return of("cuda", int(target[2:]), 32) if target.startswith("sm") else of("hip", target, 64)


def of_nvidia(asm: Mapping[str, Any]) -> dict[str, int]:
    """From the cubin, by the tools that come with Triton."""
    with tempfile.TemporaryDirectory() as folder:
        cubin = Path(folder) / "kernel.cubin"
        cubin.write_bytes(asm["cubin"])
        usage = _tool("cuobjdump", "-res-usage", cubin)
        code = _tool("nvdisasm", "-c", cubin)
    registers, stack, local = (int(re.findall(rf"{name}:(\d+)", usage)[0]) for name in ("REG", "STACK", "LOCAL"))
    return {
        "registers": registers,
        "spills": stack + local,
        "wide": len(re.findall(r"\b(?:LDG|STG|LDGSTS)\S*\.128", code)),
        "matrix": len(re.findall(r"\b(?:HMMA|HGMMA|IMMA|QGMMA|UTCHMMA|UTCQMMA)\b", code)),
    }


def of_amd(asm: Mapping[str, Any]) -> dict[str, int]:
    """From the assembler's text."""
    code = asm["amdgcn"]

    def number(name: str) -> int:
        return int(re.findall(rf"{re.escape(name)}:\s*(\d+)", code)[0])

    return {
        "registers": number(".vgpr_count"),
        "spills": 4 * (number(".vgpr_spill_count") + number(".sgpr_spill_count")),
        "wide": len(re.findall(r"\b(?:global|buffer)_(?:load|store)_dwordx4\b", code)),
        "matrix": len(re.findall(r"\bv_(?:s?mfma|wmma)\w*", code)),
    }


def _tool(name: str, *arguments: Any) -> str:
    """What one of the tools in Triton's wheel prints."""
    package = Path(str(import_module("triton").__file__)).parent
    command = [str(package / "backends" / "nvidia" / "bin" / name), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


if __name__ == "__main__":
    print(json.dumps([asdict(one) for one in compiled_for(sys.argv[1], sys.argv[3:], int(sys.argv[2]))]))
