"""A manager on plain memory, with rows whose bytes follow from tokens and identity, for tests to drive."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from hitproof.engine import Engine, load
from hitproof.engine.cache import Answer, CacheManager, Hold, PlainMemory, Prompt
from hitproof.engine.store import Meaning, Store
from hitproof.rules.profiles import load_profile
from hitproof.rules.profiles.slim import slimmed
from hitproof.spec.memory import Extent
from hitproof.spec.repair import RepairJob, RepairOutcome

__all__ = ["IDENTITY", "Machine", "engine", "payload", "prompt_tokens"]

IDENTITY = {
    "weights": "weights-1",
    "attention_config": "attention-1",
    "adapter": "none",
    "media": "none",
    "salt": "tenant-1",
    "window_version": "1",
    "separators": "none",
    "skipped": "none",
    "compressor_version": "1",
    "compression_seed": "seed",
    "index_config": "index-1",
}

AS_COPY = ("relayout", "window_roll", "index_remap")


@cache
def engine(profile: str) -> Engine:
    """The shipped rulebook for a shipped model with one layer a group."""
    return load(slimmed(load_profile(profile), 1))


def prompt_tokens(count: int, seed: int = 0) -> list[int]:
    """Tokens of which two seeds share none."""
    return [seed * 1_000_000 + place for place in range(count)]


def payload(size: int, *named: object) -> bytes:
    """Bytes that follow from what they are named by."""
    word = blake2b(repr(named).encode(), digest_size=32).digest()
    return (word * (size // 32 + 1))[:size]


class Machine:
    """One manager over one memory; what was written is remembered by group, span and tokens.

    Args:
        profile: A shipped model.
        blocks: Blocks of every pool.
        folder: Where the disk tier lies; None for none.
        at: Called between two steps.
        settings: Further arguments of the manager.
    """

    def __init__(
        self,
        profile: str = "deepseek-v4-flash",
        blocks: int = 128,
        folder: Path | None = None,
        at: Callable[[str], None] | None = None,
        **settings: Any,
    ) -> None:
        self.engine = engine(profile)
        self.memory = PlainMemory(self.engine.bound, blocks)
        self.jobs: list[RepairJob] = []
        self.points: list[str] = []
        self.at = at
        self.store = None if folder is None else Store(folder / "store", Meaning(self.engine.bound))
        settings.setdefault("host_bytes", 1 << 26)
        self.manager = CacheManager(
            self.engine, self.memory, self.compute, request=IDENTITY, disk=self.store, at=self._at, **settings
        )
        self.written: dict[tuple[str, int, int, str], bytes] = {}

    def _at(self, point: str) -> None:
        self.points.append(point)
        if self.at is not None:
            self.at(point)

    def compute(self, job: RepairJob) -> RepairOutcome:
        """Repairs that only move rows are run; all others fail."""
        self.jobs.append(job)
        if job.request.repair in AS_COPY and job.own is not None:
            self.memory.copy(job.own.extent, job.target)
            return RepairOutcome("done", {})
        return RepairOutcome("failed", {}, "nothing here can compute it")

    def prompt(self, tokens: Sequence[int], **facts: Any) -> Prompt:
        """A prompt of tenant 1."""
        return self.manager.prompt(tokens, facts)

    def ask(self, tokens: Sequence[int], **facts: Any) -> Answer:
        """Acquire and release; the hold of the answer is confirmed first where there is one."""
        answer = self.manager.acquire(self.prompt(tokens, **facts))
        if answer.hold is not None:
            answer.hold.confirm()
            answer.hold.release()
        return answer

    def fill(self, tokens: Sequence[int], boundaries: Iterable[int] = (), *, inputs: bool = False, **facts: Any) -> str:
        """Compute a prompt as a framework does: acquire, write the rest, commit; why nothing was committed."""
        prompt = self.prompt(tokens, **facts)
        answer = self.manager.acquire(prompt)
        if answer.hold is None:
            return answer.why
        try:
            writing = self.manager.begin(prompt, answer.hold, boundaries=boundaries, inputs=inputs)
            if writing is None:
                return "no room"
            meant: dict[Extent, str] = {}
            for group, places in writing.extents.items():
                for start, end, extent in places:
                    rows = self.rows(prompt, group, start, end, extent.rows)
                    writing.put(extent, 0, rows)
                    meant[extent] = self.memory.digest(group, rows)
            return writing.commit(meant)
        finally:
            answer.hold.release()

    def rows(self, prompt: Prompt, group: str, start: int, end: int, rows: int) -> bytes:
        """The true bytes of one segment."""
        size = self.memory.shape(group).payload_bytes(rows)
        digest = prompt.digest(end)
        made = payload(size, group, start, end, digest, prompt.request.adapter, prompt.request.salt)
        self.written[group, start, end, str(digest)] = made
        return made

    def read(self, hold: Hold) -> dict[str, list[bytes]]:
        """The bytes that a hold leads to, by group."""
        return {group: [self.memory.read(held.extent) for held in table] for group, table in hold.tables.items()}

    def damage(self, group: str, row: int = 0) -> None:
        """Other bytes in the first row of a group's youngest segment on the device."""
        slot = self.slots(group)[-1]
        assert slot.extent is not None
        size = self.memory.shape(group).payload_bytes(1)
        self.memory.write(slot.extent, row, b"\xa5" * size)

    def slots(self, group: str) -> list[Any]:
        """Segments of a group on the device, in the order in which they were made."""
        found = [slot for slot in self.manager.slots(group) if slot.extent is not None and slot.owner is None]
        return sorted(found, key=lambda slot: slot.number)

    def demote_all(self, tokens: Sequence[int], to: str = "host", **facts: Any) -> int:
        """Demote whatever of a prompt has bytes on the device; how many segments went."""
        found = self.manager.find(self.prompt(tokens, **facts))
        return sum(self.manager.demote(slot, to) for slot in found if slot.extent is not None)

    def check(self) -> None:
        """Everything adds up."""
        self.manager.check_integrity()


Facts = Mapping[str, Any]
