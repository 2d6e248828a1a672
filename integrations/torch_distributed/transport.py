"""Messages between ranks as gathers of bytes over a process group on the CPU."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hitproof.engine.ranks.messages import MAX_BYTES
from hitproof.engine.ranks.protocol import Place
from hitproof.engine.ranks.turn import Heard
from hitproof.spec.errors import UsageError

__all__ = ["GlooTransport"]

_FRAME = 2048
"""Bytes of the first gather; votes fit in, longer messages take a second one."""

_HEAD = 8


class GlooTransport:
    """Tells and hears by `all_gather`, which every rank of the group must call equally often.

    So one exchange that fails, by a time-out or a lost rank, leaves the ranks out of step for good: from then on the
    transport hears nobody, every turn ends without a go, and `alive` is false. The deployment makes a new group of
    the ranks that are left, as it must for the model's own collectives.

    Args:
        group: A process group with the backend gloo, of its own, so that its gathers never meet the model's; None for
            the default group.

    Raises:
        UsageError: The group has another backend; gathers of device memory cannot be given up in time.
    """

    def __init__(self, group: Any = None) -> None:
        import torch
        import torch.distributed as distributed

        backend = distributed.get_backend(group)
        if backend != "gloo":
            raise UsageError("ranks exchange messages over a group on the CPU", got=backend, expected="gloo")
        self._torch, self._distributed, self._group = torch, distributed, group
        self._rank: int = distributed.get_rank(group)
        self._size: int = distributed.get_world_size(group)
        self._alive = True
        self._given_up: Any = None

    @property
    def rank(self) -> int:
        return self._rank

    @property
    def size(self) -> int:
        return self._size

    @property
    def alive(self) -> bool:
        """Whether no exchange has failed yet."""
        return self._alive

    def exchange(self, place: Place, message: bytes, timeout_s: float) -> Heard:
        """As `Transport.exchange`; to tell without waiting is nothing that a gather can do, and is left out."""
        nobody: Heard = [None] * self._size
        if timeout_s <= 0 or not self._alive or len(message) > MAX_BYTES:
            return nobody
        head = len(message).to_bytes(_HEAD, "little") + message
        frames = self._gather(head[:_FRAME].ljust(_FRAME, b"\0"), timeout_s)
        if frames is None:
            return nobody
        sizes = [int.from_bytes(frame[:_HEAD], "little") for frame in frames]
        if max(sizes) > MAX_BYTES:
            self._alive = False
            return nobody
        rest = max(sizes) + _HEAD - _FRAME
        if rest > 0:
            tails = self._gather(head[_FRAME:].ljust(rest, b"\0"), timeout_s)
            if tails is None:
                return nobody
            frames = [frame + tail for frame, tail in zip(frames, tails, strict=True)]
        return [frame[_HEAD : _HEAD + size] for frame, size in zip(frames, sizes, strict=True)]

    def _gather(self, part: bytes, timeout_s: float) -> list[bytes] | None:
        """Everybody's part, each as long as one's own; None where it fails, and then for good."""
        torch = self._torch
        mine = torch.frombuffer(bytearray(part), dtype=torch.uint8)
        parts = [torch.empty_like(mine) for _ in range(self._size)]
        work = None
        try:
            work = self._distributed.all_gather(parts, mine, group=self._group, async_op=True)
            work.wait(timeout=timedelta(seconds=timeout_s))
        except RuntimeError:
            # A gather that was given up may still write, so its buffers are kept.
            self._alive, self._given_up = False, (work, mine, parts)
            return None
        return [bytes(one.numpy()) for one in parts]
