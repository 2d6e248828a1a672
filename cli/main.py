"""The entry of the command line: runs one command and turns whatever happens into an exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from hitproof.cli.failure import EXIT_BAD_INPUT, EXIT_GOOD, report_error
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
        return report_error(error, command=_command_of(given), format=_format_of(given), debug="--debug" in given)
    return code if isinstance(code, int) else EXIT_GOOD


def _command() -> Any:
    import rich  # noqa: F401
    import typer

    from hitproof.cli.app import app

    return typer.main.get_command(app)


def _command_of(arguments: Sequence[str]) -> str:
    """The command's name."""
    return next((word for word in arguments if not word.startswith("-")), "")


def _format_of(arguments: Sequence[str]) -> str:
    """How errors are to be told; read from the raw arguments, as they may be what is wrong."""
    joined = [word.removeprefix("--format=") for word in arguments if word.startswith("--format=")]
    apart = [value for option, value in pairwise(arguments) if option == "--format"]
    return next(iter([*joined, *apart]), "text")
