"""One simulated machine: a manager over faulty memory and a faulty disk, the truth, the judge and the ledger."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random

from hitproof.engine.cache.core import Core
from hitproof.engine.cache.manager import CacheManager
from hitproof.engine.cache.measuring import Verify
from hitproof.engine.cache.plain_memory import PlainMemory
from hitproof.engine.cache.points import At, nobody
from hitproof.engine.decide import Engine
from hitproof.engine.soak.compute import Compute
from hitproof.engine.soak.faulty_memory import FaultyMemory
from hitproof.engine.soak.injector import Injector
from hitproof.engine.soak.judge import Judge
from hitproof.engine.soak.killed import Killed
from hitproof.engine.soak.ledger import KINDS, Ledger
from hitproof.engine.soak.prompts import UNIT, Crowd
from hitproof.engine.soak.stored import FaultyFiles, NotedStore, Promised
from hitproof.engine.soak.toys import toy
from hitproof.engine.soak.world import World
from hitproof.engine.store import Meaning
from hitproof.engine.store.files import Files
from hitproof.rules.bind import bind_rulebook
from hitproof.rules.profiles import load_profile
from hitproof.rules.resolve import load_rulebook
from hitproof.spec.bound import BoundGroup, BoundRulebook
from hitproof.spec.rows import has_rows, pool_shape, rows_of
from hitproof.spec.rulebook import Rulebook

__all__ = ["RATES", "Settings", "Stage"]

_HOST_PROMPTS, _DISK_PROMPTS = 30, 80

RATES: Mapping[str, float] = {
    "bit_flip": 3.0,
    "swapped_blocks": 1.0,
    "wrong_generation": 1.0,
    "stale_table": 2.0,
    "other_kernel": 0.05,
    "lost_write": 0.002,
    "wrong_object": 0.001,
    "torn_copy": 0.01,
    "odd_address": 0.03,
    "slow_load": 0.01,
    "failed_load": 0.02,
    "hash_collision": 0.02,
    "disk_full": 0.02,
    "disk_rot": 0.02,
    "killed_process": 0.001,
}
"""Of calls the probability of a fault at each; of what the injector does the weight against each other."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a run is made of.

    Args:
        seed: Decides everything that is drawn.
        profile: Name of a shipped profile; it is made small.
        verify: When bytes are measured, as the manager takes it.
        faults: Kinds that are injected.
        prompts: Prompts of the longest kind that the device has room for.
        talks: Conversations.
        longest: Tokens of the longest prompt.
        waits: Share of the requests that wait a turn or more between the decision and the use.
        strict: Wrong bytes and lost segments end the run; else they are counted.
        rulebook: In place of the shipped one.
        rates: In place of `RATES`, kind by kind.
    """

    seed: int = 1
    profile: str = "gemma-3-27b"
    verify: Verify = "use"
    faults: frozenset[str] = frozenset(KINDS)
    prompts: float = 24.0
    talks: int = 14
    longest: int = 288
    waits: float = 0.3
    strict: bool = True
    rulebook: Rulebook | None = None
    rates: Mapping[str, float] = field(default_factory=dict)

    def rate(self, kind: str) -> float:
        """How often a kind is injected; 0 where it is off."""
        return {**RATES, **self.rates}[kind] if kind in self.faults else 0.0


class Stage:
    """Everything that a run shares; actors act on it.

    Args:
        settings: What it is made of.
        folder: Where the disk tier lies; it exists.
        files: The disk; None is the machine's own with faults.
        clock: Seconds.
        pause: Lets seconds pass.
        at: Called between two steps of the manager.
    """

    def __init__(
        self,
        settings: Settings,
        folder: Path,
        *,
        files: Files | None = None,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
        at: At = nobody,
    ) -> None:
        self.settings, self.clock, self.pause = settings, clock, pause
        self._folder, self._files, self._at = folder, files, at
        self.engine = (
            _engine(settings.profile) if settings.rulebook is None else _bound(settings.rulebook, settings.profile)
        )
        self.world = World(self.engine.bound)
        self.crowd = Crowd(settings.seed, settings.talks, settings.longest)
        self.ledger = Ledger(self._serial)
        self.promised = Promised(strict=settings.strict)
        self.counts: Counter[str] = Counter()
        self.lives = self._measured = 0
        self.dying = False
        self.judge = Judge(self.engine.bound, strict=settings.strict)
        self.manager: CacheManager
        self.store: NotedStore | None = None
        self.restart(folder)

    def at(self, point: str) -> None:
        """Others may come in between; a process that was killed goes no further."""
        if self.dying:
            raise Killed
        self._at(point)
        if self.dying:
            raise Killed

    @property
    def measured(self) -> int:
        """Segments that were measured at a use, in all lives."""
        return self._measured + self.manager.measuring.measured

    @property
    def core(self) -> Core:
        """The manager's inside, for faults and for the judge."""
        return self.manager._core

    def rot(self, draw: Random) -> str:
        """Turn a bit of a stored file; answers what was done."""
        names = sorted((self._folder / "store" / "segments").glob("*/*/*.seg"))
        if not names:
            return "no file"
        path = draw.choice(names)
        with self.promised.lock:
            try:
                content = bytearray(path.read_bytes())
            except FileNotFoundError:
                return "no file"
            content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
            self.promised.excuse(path.name[:64])
            with open(path, "r+b") as file:
                file.write(content)
        self.ledger.inject("disk_rot")
        return "a stored bit has turned"

    def count(self, what: str) -> None:
        """One more of something that the report tells."""
        with self.ledger.lock:
            self.counts[what] += 1

    def kill(self) -> str:
        """The process ends: everybody who is under way unwinds at the next point, and nothing reaches the disk."""
        self.ledger.inject("killed_process")
        self.dying = True
        if isinstance(self._live, FaultyFiles):
            self._live.dead = True
        return "the process is killed"

    def restart(self, folder: Path | None = None) -> None:
        """Another process begins on the disk that the last one left; memory and host tier are gone.

        Args:
            folder: Where the disk lies now; None where it lay before.

        Raises:
            LostSegment: A segment that was reported stored is not there any more.
        """
        if folder is not None:
            self._folder = folder
        self.close()
        if self.lives:
            self._measured += self.manager.measuring.measured
        settings, draw = self.settings, Random(f"{self.settings.seed}/{self.settings.profile}/life/{self.lives}")
        bound = self.engine.bound
        self.ledger.memory_is_gone()
        memory = PlainMemory(bound, blocks_for(bound, settings.longest, settings.prompts))
        size = bytes_of(memory, bound, settings.longest)
        rates = {kind: settings.rate(kind) for kind in KINDS}
        self._live: Files = self._files or FaultyFiles(self.ledger, Random(draw.random()), rates["disk_full"])
        self.memory = FaultyMemory(memory, self.ledger, Random(draw.random()), rates, self.pause)
        self.injector = Injector(self.ledger, self.memory, Random(draw.random()), rates)
        self.judge.memory = self.memory
        self.store = NotedStore(
            self._folder / "store",
            Meaning(bound),
            self.promised,
            self.ledger,
            capacity=_DISK_PROMPTS * size,
            files=self._live,
        )
        self.manager = CacheManager(
            self.engine,
            self.memory,
            compute=Compute(self.world, self.memory, measures=settings.verify == "use"),
            host_bytes=_HOST_PROMPTS * size,
            disk=self.store,
            verify=settings.verify,
            unit=UNIT,
            clock=self.clock,
            at=self.at,
        )
        self.dying = False
        if self.lives:
            self.promised.check(self.store, bytes_too=False)
            self.ledger.catch(self.ledger.unnoticed("killed_process"), "the next start: all that was stored is there")
        self.lives += 1

    def audit(self) -> None:
        """What is true between any two steps; changes nothing.

        Raises:
            InternalError: It is not.
        """
        self.manager.check_integrity(quiet=False)

    def finish(self, *, quiet: bool = True) -> None:
        """The end of a run, after every actor has given back what it holds.

        Args:
            quiet: Whether every operation has ended by itself.

        Raises:
            InternalError: Something does not add up, or a segment that was reported stored is lost.
        """
        self.manager.housekeep()
        self.manager.check_integrity(quiet=quiet)
        if self.store is not None:
            self.promised.check(self.store, bytes_too=True)
        self.ledger.close()
        self.close()

    def told(self, kind: str, digest: str) -> None:
        """A simulated disk tells of a fault.

        Args:
            kind: What happened.
            digest: Of the key whose file was hit; empty where none was.
        """
        self.counts[f"disk {kind}"] += 1
        if digest:
            self.promised.excuse(digest)

    def close(self) -> None:
        """Close the disk tier; a dead one is left as it is."""
        if self.store is not None:
            with contextlib.suppress(Killed):
                self.store.close()
            self.store = None

    def _serial(self, group: str, block: int) -> int:
        return int(self.core.columns[group].rows["serial"][block])


@cache
def _engine(profile: str) -> Engine:
    """The shipped rulebook's engine for a small profile; it keeps nothing of a run."""
    return _bound(load_rulebook("mixed_attention"), profile)


def _bound(rulebook: Rulebook, profile: str) -> Engine:
    return Engine(bind_rulebook(rulebook, toy(load_profile(profile))))


def blocks_for(bound: BoundRulebook, longest: int, prompts: float) -> dict[str, int]:
    """Pools in which so many prompts of so many tokens have room, by group."""
    blocks = {}
    for group in bound.groups:
        if has_rows(group):
            each = pool_shape(group, 1).blocks_for(rows_of(group, 0, longest)) + 1
            blocks[group.id] = max(4, round(prompts * each * _kept(group)))
    return blocks


def bytes_of(memory: PlainMemory, bound: BoundRulebook, length: int) -> int:
    """Bytes of a prompt of so many tokens in all groups."""
    return sum(
        memory.shape(group.id).payload_bytes(rows_of(group, 0, length)) * _kept(group)
        for group in bound.groups
        if has_rows(group)
    )


def _kept(group: BoundGroup) -> int:
    """Segments of a prompt that are kept: a state at each of some boundaries, else one."""
    return 3 if "state_bytes" in group.constants else 1
