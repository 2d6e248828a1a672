"""What ends an actor from outside; no `except Exception` goes on after it, and no clean-up reaches the disk."""

from __future__ import annotations

__all__ = ["Killed", "Over"]


class Killed(BaseException):
    """The process was killed, or the power failed: whoever is under way unwinds, and nothing it does counts."""


class Over(BaseException):
    """The run has failed; whoever is under way unwinds, and nothing it does counts."""
