"""Which faults a simulated disk has, how often, and whom they excuse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import PurePath
from random import Random
from types import MappingProxyType

__all__ = ["DISK_RATES", "DiskFaults"]

DISK_RATES: Mapping[str, float] = MappingProxyType(
    {
        "misdirected_write": 0.002,
        "phantom_write": 0.002,
        "failed_sync": 0.002,
        "phantom_sync": 0.002,
        "short_write": 0.01,
        "disk_full": 0.003,
        "failed_read": 0.003,
        "bit_rot": 0.002,
        "cold_cache": 0.05,
        "catalogue_lost": 0.05,
        "catalogue_torn": 0.2,
        "power_loss": 0.5,
    }
)
"""How likely each fault is where it can strike: at a write, a synchronisation, an opening, or the death of the process.

`misdirected_write`: the bytes land in another file. `phantom_write`: the page cache has the bytes, the medium never
gets them. `failed_sync`: it fails, and the next one succeeds without having written anything. `phantom_sync`: it
succeeds and has written nothing. `short_write`: fewer bytes are written than were asked for. `disk_full`: no room.
`failed_read`: the medium cannot read a file. `bit_rot`: a bit of the medium has changed. `cold_cache`: the page cache
has been dropped, so that the medium is read. `catalogue_lost`, `catalogue_torn`: SQLite's files are gone, or its log is
cut short, after a loss of power. `power_loss`: what was not synchronised is lost with the process.
"""

EXCUSING = frozenset({"misdirected_write", "phantom_write", "failed_sync", "phantom_sync", "failed_read", "bit_rot"})
"""Faults after which a segment that was reported stored may be gone; never may it be wrong."""


class DiskFaults:
    """Draws faults and tells them.

    Args:
        draw: What decides.
        rates: How likely each kind is; kinds that are not given do not strike.
        told: Gets the kind, and the digest of the key whose file was hit, or "" where no file is excused.
    """

    def __init__(self, draw: Random, rates: Mapping[str, float], told: Callable[[str, str], object]) -> None:
        self.draw = draw
        self.count: Counter[str] = Counter()
        self._rates, self._listeners = dict(rates), [told]

    def listen(self, told: Callable[[str, str], object]) -> None:
        """Tells one more of every fault."""
        self._listeners.append(told)

    def strikes(self, kind: str, *hit: str) -> bool:
        """Draws whether a fault strikes here, and if so tells it.

        Args:
            kind: The kind.
            hit: Paths of the files that it hits.
        """
        rate = self._rates.get(kind, 0.0)
        if not rate or self.draw.random() >= rate:
            return False
        self.tell(kind, *hit)
        return True

    def tell(self, kind: str, *hit: str) -> None:
        """Tells a fault that has struck, and whom it excuses."""
        self.count[kind] += 1
        if kind not in EXCUSING or not hit:
            self._say(kind, "")
        for path in hit:
            self.excuse(kind, path)

    def excuse(self, kind: str, path: str) -> None:
        """Tells that one more file was hit by a fault that has struck."""
        if kind in EXCUSING:
            self._say(kind, PurePath(path).name[:64])

    def _say(self, kind: str, digest: str) -> None:
        for told in self._listeners:
            told(kind, digest)
