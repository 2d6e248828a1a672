"""What a long command says while it works: nothing in the first second, nothing off a terminal."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hitproof.cli.output import clean, console

__all__ = ["progress"]

PATIENCE_SECONDS = 1.0


@contextmanager
def progress(text: str) -> Iterator[Callable[[str], None]]:
    """Show a line on stderr while the body runs; the function that is given changes it."""
    screen = console(to_stderr=True)
    if not screen.is_terminal:
        yield lambda _: None
        return
    status = screen.status(clean(text))
    timer = threading.Timer(PATIENCE_SECONDS, status.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda now: status.update(clean(now))
    finally:
        timer.cancel()
        timer.join()
        status.stop()
