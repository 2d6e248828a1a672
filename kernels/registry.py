"""Which implementation each repair's name is bound to; torch and triton are imported when one is asked for, not before.

A backend is a way to run a repair: `torch` is the readable reference, `triton` runs kernels on a GPU, and `interpret`
runs the same kernels in Triton's interpreter, on tensors in main memory.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from threading import Lock
from typing import Any, TypeVar

from hitproof.spec.errors import UsageError

__all__ = [
    "AUTO",
    "BACKENDS",
    "INTERPRETER_SWITCH",
    "KERNELS",
    "implementation",
    "interpreting",
    "pick",
    "require_interpreter",
    "require_package",
    "require_torch",
    "require_triton",
]

BACKENDS = ("torch", "triton", "interpret")
"""Names of implementations."""

AUTO = "auto"
"""Asks for the backend of the device on which the rows lie: `kernels/backend.py` finds it."""

INTERPRETER_SWITCH = "TRITON_INTERPRET"
"""The environment variable that Triton reads when it is imported: a process either interprets kernels or compiles."""

KERNELS: tuple[str, ...] = (
    "checksum",
    "index_rebuild",
    "index_remap",
    "promote",
    "recompress",
    "relayout",
    "requantize",
    "tail_fill",
    "window_roll",
)
"""The repairs that a kernel runs: a folder each, whose `bind.py` maps a request to the implementation."""

_INTERPRETER = Lock()

Twin = TypeVar("Twin")


def implementation(repair: str, backend: str = "torch") -> Callable[..., Any]:
    """What runs a repair, as `run(request, job)` of its `bind.py`.

    Raises:
        UsageError: No kernel has the name, there is no such backend, or what it needs is missing.
    """
    if repair not in KERNELS:
        raise UsageError("no kernel runs this repair", got=repair, expected=", ".join(KERNELS))
    if backend not in BACKENDS:
        raise UsageError("there is no such backend", got=backend, expected=", ".join(BACKENDS))
    {"torch": require_torch, "triton": require_triton, "interpret": require_interpreter}[backend]()
    run: Callable[..., Any] = import_module(f"hitproof.kernels.{repair}.bind").run
    if backend == "torch":
        return run
    return partial(run, backend=backend) if backend == "triton" else _one_at_a_time(partial(run, backend=backend))


def pick(backend: str, plain: Twin, quick: Twin) -> Twin:
    """The twin that a backend runs.

    Args:
        backend: One of `BACKENDS`.
        plain: A function of a `reference.py`.
        quick: The function of the same name and arguments in the `launch.py` beside it.
    """
    return plain if backend == "torch" else quick


def require_torch() -> None:
    """Kernels need torch.

    Raises:
        UsageError: It is not installed.
    """
    if find_spec("torch") is None:
        raise UsageError(
            "kernels need torch, which is not installed",
            expected="the packages torch and triton",
            hint="pip install 'hitproof[kernels]'",
        )


def require_triton() -> None:
    """Compiled kernels need torch, triton and a GPU, in a process that does not interpret.

    Raises:
        UsageError: One is missing.
    """
    require_package()
    if interpreting():
        raise UsageError(
            "this process interprets kernels and cannot compile them",
            got=f"{INTERPRETER_SWITCH}={os.environ[INTERPRETER_SWITCH]}",
            expected="the variable unset",
        )
    if not import_module("torch").cuda.is_available():
        raise UsageError(
            "the backend triton needs a GPU, and torch sees none",
            got="triton",
            expected="torch or interpret",
            hint="`interpret` runs the same kernels without one, slowly",
        )


def require_interpreter() -> None:
    """Interpreted kernels need torch and triton, in a process where the switch was set before triton was imported.

    Raises:
        UsageError: A package or the switch is missing.
    """
    require_package()
    if not interpreting():
        late = "triton was imported without it" if "triton" in sys.modules else "it is not set"
        raise UsageError(
            "the interpreter must be switched on before triton is imported",
            got=late,
            expected=f"{INTERPRETER_SWITCH}=1 in the environment of a new process",
            hint="`hitproof kernels selftest --backend interpret` starts one",
        )


def interpreting() -> bool:
    """Whether this process interprets kernels, or will once triton is imported."""
    if "triton" not in sys.modules:
        return os.environ.get(INTERPRETER_SWITCH, "0").lower() in ("1", "true", "on", "yes")
    # Triton decorates functions of its own when it is imported; what they became tells what was asked for then.
    return "interpreter" in type(import_module("triton.language").cdiv).__module__


def require_package() -> None:
    """Kernels other than the reference need torch and triton.

    Raises:
        UsageError: One is not installed.
    """
    require_torch()
    if find_spec("triton") is None:
        raise UsageError(
            "kernels other than the reference need triton, which is not installed",
            expected="the package triton",
            hint="pip install 'hitproof[kernels]'",
        )


def _one_at_a_time(run: Callable[..., Any]) -> Callable[..., Any]:
    """The interpreter keeps its state in its modules, so that two threads would mix theirs."""

    def alone(*arguments: Any) -> Any:
        with _INTERPRETER:
            return run(*arguments)

    return alone
