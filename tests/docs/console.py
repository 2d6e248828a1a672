"""Runs the commands that the documents show, and compares or rewrites what they print.

A block that opens with ```console holds lines `$ command`, each followed by its output; the blocks of one document run
in order in one folder that holds links to `rules/` and `examples/`. Those that open with ```console slow are rewritten
with the others, and not compared by the tests.

`PYTHONPATH=.pkg python -m tests.docs.console README.md` rewrites what a document shows.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ROOT", "Shown", "commands_of", "comparable", "prepare", "rewritten", "run"]

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"^```console( slow)?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_VARYING = (
    # Wall times, and the padding that follows their width.
    (re.compile(r"\b\d+\.\d\d(?= s\b| *$)", re.MULTILINE), "N.NN"),
    (re.compile(r"\b[0-9a-f]{12,64}\b"), "DIGEST"),
    (re.compile(r" +"), " "),
    (re.compile("─+"), "─"),
)


@dataclass(frozen=True)
class Shown:
    """One command of a document, and the output that the document shows for it."""

    command: str
    output: str
    slow: bool


def commands_of(text: str) -> list[Shown]:
    """Every command that a document shows, in order."""
    return [one for block in _BLOCK.finditer(text) for one in _split(block)]


def _split(block: re.Match[str]) -> Iterator[Shown]:
    for part in re.split(r"^\$ ", block[2], flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield Shown(command, output, slow=block[1] is not None)


def prepare(folder: Path) -> None:
    """Make a folder look like the root of the repository, with `hitproof` and `python` to call."""
    tools = folder / ".tools"
    tools.mkdir()
    for name, arguments in (("hitproof", "-m hitproof.cli "), ("python", "")):
        script = tools / name
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments}"$@"\n')
        script.chmod(0o755)
    for name in ("rules", "examples"):
        (folder / name).symlink_to(ROOT / name)


def run(command: str, folder: Path) -> str:
    """Run one command in a prepared folder; what it prints, errors too."""
    environment = {
        **os.environ,
        "PATH": f"{folder / '.tools'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / ".pkg"),
        "NO_COLOR": "1",
    }
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=600,
    )
    return done.stdout


def comparable(output: str) -> str:
    """The output without what differs from run to run: times, digests, and the width of columns."""
    for pattern, replacement in _VARYING:
        output = pattern.sub(replacement, output)
    return "\n".join(line.strip() for line in output.strip().splitlines())


def rewritten(text: str) -> str:
    """The document with every shown output replaced by what the command prints now."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)

        def renew(block: re.Match[str]) -> str:
            parts = [f"$ {one.command}\n{run(one.command, folder)}".strip("\n") for one in _split(block)]
            return "\n".join([f"```console{block[1] or ''}", *parts, "```"])

        return _BLOCK.sub(renew, text)


if __name__ == "__main__":
    for document in map(Path, sys.argv[1:]):
        document.write_text(rewritten(document.read_text("utf-8")), "utf-8")
