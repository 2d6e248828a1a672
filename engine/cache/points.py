"""The named points between the atomic steps of the cache manager: there, and nowhere else, others may come in between.

Each step runs under the manager's lock, in microseconds, without input or output and without copying bytes of segments;
bytes are read and written between two points, in blocks that nobody else may write. What the verifier says about
interleavings rests on this list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

__all__ = ["At", "POINTS", "nobody"]

At = Callable[[str], None]
"""Called with the name of the point, by the thread that takes the step, while it holds no lock."""

POINTS: Mapping[str, str] = {
    "look": "segments are found, pinned and read, all in one step",
    "again": "the same segments are read and pinned anew, for a new decision",
    "claim": "the pieces that a plan repairs are claimed for one recovery, all or none",
    "promise": "what an admitted request will take is reserved in the ledger",
    "run": "a repair reads its sources and writes its private copy",
    "allocate": "free blocks and a slot are taken",
    "write": "rows are written into blocks of a pending segment",
    "append": "a pending segment's committed end moves on",
    "commit": "pending segments become visible, and are filed under their keys",
    "abort": "pending segments are given up",
    "publish": "private copies take the place of what they mend, all in one step",
    "confirm": "a lease compares what it noted with what is",
    "use": "bytes that a lease holds are about to be read",
    "release": "a lease gives its pins back, once the device has read to the end",
    "measure": "a fingerprint that was taken of bytes is noted",
    "demote_begin": "a copy to slower storage starts",
    "save": "bytes go from the device to the host",
    "store": "bytes go from the host to the disk",
    "demote_end": "the copy has arrived, and the device blocks are free",
    "demote_failed": "the copy has not left",
    "spill": "a host copy is given up for one on disk",
    "promote_begin": "a copy to the device starts",
    "load": "bytes go from the host to the device",
    "promote_end": "the copy has arrived in new blocks",
    "promote_failed": "the copy has not arrived",
    "share": "a second owner of sealed blocks is made",
    "evict": "a segment is given up",
    "move": "rows are copied to other blocks, for defragmentation",
    "defragment": "the page table leads to the other blocks",
    "rollback": "a rejected continuation is cut off",
    "quarantine": "bytes under suspicion are set apart",
    "discard": "what was set apart is given up",
    "adopt": "what a tier held before this process began is taken in",
}
"""Every point with what the step does that follows it."""


def nobody(point: str) -> None:
    """Lets nobody in between."""
