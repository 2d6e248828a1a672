"""Writers on stores that break a promise; the environment's `BROKEN_WRITER` says which."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

import pytest

from hitproof.engine.soak import killed_writer
from hitproof.engine.store.files import Files
from hitproof.engine.store.layout import Layout


def write_in_place(layout: Layout, files: Files, name: str, parts: Sequence[memoryview]) -> None:
    """Writes a segment's file under its own name, slowly."""
    target = layout.segments / name
    target.parent.mkdir(parents=True, exist_ok=True)
    fd = files.create(target)
    for part in parts:
        time.sleep(0.02)
        files.write_all(fd, part)
    files.sync(fd)
    files.close(fd)
    files.sync_folder(target.parent)


def report_early(layout: Layout, files: Files, name: str, parts: Sequence[memoryview]) -> None:
    """Reports the put that is under way as stored, before its file is written."""
    _, key, mark, _ = told[-1]
    say("stored", key, mark, str(sum(map(len, parts))))
    write(layout, files, name, parts)


write = Layout.write
say = killed_writer._say
told: list[tuple[str, ...]] = []


def say_and_note(*words: str) -> None:
    """Says a line as the writer does, but for receipts, and keeps what puts say."""
    if words[0] == "put":
        told.append(words)
    if words[0] != "stored":
        say(*words)


if __name__ == "__main__":
    with pytest.MonkeyPatch.context() as patch:
        if os.environ["BROKEN_WRITER"] == "in place":
            patch.setattr(Layout, "write", write_in_place)
        else:
            patch.setattr(Layout, "write", report_early)
            patch.setattr(killed_writer, "_say", say_and_note)
        killed_writer.main()
