"""The entry of the command line: runs one command and turns whatever happens into an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from hitproof.cli.failure import EXIT_BAD_INPUT, EXIT_GOOD, Asked, report_error
from hitproof.cli.output import write_line
from hitproof.cli.version import version_text

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: What stands after the program's name; None for those of the process.

    Returns:
        0 good, 1 refuted or failed, 2 unknown, 3 bad input or bad usage, 4 internal error.
    """
    if arguments is None:
        # The current folder may be a stranger's checkout: no process that is started here takes modules from it.
        os.environ["PYTHONSAFEPATH"] = "1"
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given == ["--version"]:
        write_line(sys.stdout, version_text())
        return EXIT_GOOD
    try:
        command = _command()
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        write_line(sys.stderr, f"hitproof: the command line needs {error.name}: pip install 'hitproof[cli]'")
        return EXIT_BAD_INPUT
    try:
        code = command.main(args=given, prog_name="hitproof", standalone_mode=False)
    except (Exception, KeyboardInterrupt) as error:
        return report_error(error, _asked(given))
    return code if isinstance(code, int) else EXIT_GOOD


def _command() -> Any:
    import rich  # noqa: F401
    import typer

    from hitproof.cli.app import app

    return typer.main.get_command(app)


def _asked(arguments: Sequence[str]) -> Asked:
    """How errors are to be told; read from the raw arguments, as they may be what is wrong."""

    def values(option: str) -> tuple[str, ...]:
        joined = [word.removeprefix(f"{option}=") for word in arguments if word.startswith(f"{option}=")]
        return (*joined, *(value for name, value in pairwise(arguments) if name == option))

    return Asked(
        command=next((word for word in arguments if not word.startswith("-")), ""),
        format=next(iter(values("--format")), "text"),
        reports=values("--report"),
        debug="--debug" in arguments,
    )
