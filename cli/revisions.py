"""Rulebooks of earlier revisions, read from git without touching the work tree."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from hitproof.cli.books import Book, open_book
from hitproof.rules.source import embedded_rulebooks
from hitproof.spec.errors import UsageError

__all__ = ["rulebook_at"]

LARGEST_ARCHIVE = 64 << 20
"""Bytes; nothing larger is unpacked."""


@contextmanager
def rulebook_at(name: str) -> Iterator[Book]:
    """A rulebook by name, by path, or as `REVISION:PATH` of the git repository that the current folder is in.

    Raises:
        UsageError: Git does not know the revision or the path, or there is no git.
        HitproofError: The rulebook cannot be read.
    """
    revision, colon, path = name.partition(":")
    if not colon or name in embedded_rulebooks() or Path(name).exists():
        yield open_book(name)
        return
    with TemporaryDirectory(prefix="hitproof-") as folder:
        _unpack(_archive(revision, path), Path(folder))
        yield open_book(str(Path(folder) / path))


def _archive(revision: str, path: str) -> bytes:
    if not revision or revision.startswith("-") or not path:
        raise UsageError("this names no revision of a rulebook", got=f"{revision}:{path}", expected="REVISION:PATH")
    asked = ["git", "archive", "--format=tar", revision, "--", path]
    try:
        done = subprocess.run(asked, capture_output=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError("git cannot be asked for a revision", got=type(error).__name__, expected="git") from error
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise UsageError("git does not have this", got=f"{revision}:{path}", hint=said[0] if said else "see `git log`")
    if len(done.stdout) > LARGEST_ARCHIVE:
        raise UsageError("the folder is too large for a rulebook", got=f"{len(done.stdout)} bytes")
    return done.stdout


def _unpack(archive: bytes, folder: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        try:
            files.extractall(folder, filter="data")
        except tarfile.TarError as error:
            raise UsageError("the revision cannot be unpacked", got=type(error).__name__) from error
