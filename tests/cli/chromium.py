"""Drives Chromium without a window: the elements that it made of a page, a picture of it, and its print."""

from __future__ import annotations

import shutil
import struct
import subprocess
import tempfile
import zlib
from pathlib import Path

__all__ = ["CHROMIUM", "dump", "first_pixel", "printed", "screenshot"]

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
"""The browser's program, None where there is none."""

_QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--hide-scrollbars"),
)
_DARK = ("--force-dark-mode", "--blink-settings=preferredColorScheme=0")


def dump(page: Path, width: int, height: int) -> str:
    """The document as the browser holds it after loading, written as HTML."""
    return _run(page, f"--window-size={width},{height}", "--dump-dom").decode("utf-8")


def screenshot(page: Path, file: Path, width: int, height: int, *, dark: bool = False) -> bytes:
    """What a window of this size shows, as PNG, in the light or the dark scheme."""
    _run(page, f"--window-size={width},{height}", f"--screenshot={file}", *(_DARK if dark else ()))
    return file.read_bytes()


def printed(page: Path, file: Path) -> bytes:
    """The page as PDF."""
    _run(page, "--no-pdf-header-footer", f"--print-to-pdf={file}")
    return file.read_bytes()


def first_pixel(png: bytes) -> tuple[tuple[int, int], tuple[int, ...], int]:
    """Width and height, colour of the upper left pixel, and how many different bytes the picture is made of."""
    width, height = struct.unpack(">II", png[16:24])
    packed, place = b"", 8
    while place < len(png):
        (length,) = struct.unpack(">I", png[place : place + 4])
        if png[place + 4 : place + 8] == b"IDAT":
            packed += png[place + 8 : place + 8 + length]
        place += 12 + length
    lines = zlib.decompress(packed)
    # Whatever its filter, the first pixel of the first line is stored as it is.
    return (width, height), tuple(lines[1:4]), len(set(lines))


def _run(page: Path, *arguments: str) -> bytes:
    if CHROMIUM is None:
        raise LookupError("no Chromium on the path")
    with tempfile.TemporaryDirectory() as profile:
        done = subprocess.run(
            [CHROMIUM, *_QUIET, f"--user-data-dir={profile}", *arguments, page.as_uri()],
            capture_output=True,
            check=True,
            timeout=120,
        )
    return done.stdout
