"""The state-aware cache manager: one component that allocates and looks up (article section 4)."""

from __future__ import annotations

import itertools
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import monotonic
from typing import Any
from weakref import WeakSet

from hitproof.engine.cache.adopting import Adopting
from hitproof.engine.cache.columns import Columns
from hitproof.engine.cache.core import Core
from hitproof.engine.cache.hold import Answer, Hold
from hitproof.engine.cache.integrity import check_blocks, check_keys, check_owners, check_pins, check_tiers
from hitproof.engine.cache.keeping import Keeping
from hitproof.engine.cache.measuring import VERIFY, Measuring, Verify
from hitproof.engine.cache.member import CacheMember
from hitproof.engine.cache.moving import Moving
from hitproof.engine.cache.points import At, nobody
from hitproof.engine.cache.promises import Promises
from hitproof.engine.cache.prompt import Prompt
from hitproof.engine.cache.publishing import Publishing
from hitproof.engine.cache.recovering import Recovering
from hitproof.engine.cache.repairs import Repairs
from hitproof.engine.cache.room import Room
from hitproof.engine.cache.slot import Slot
from hitproof.engine.cache.start import kernel_facts, request_facts, runtime_facts
from hitproof.engine.cache.tiers import Tiers
from hitproof.engine.cache.writing import Span, Writing, spans_to_write
from hitproof.engine.decide import Engine
from hitproof.engine.observe.observer import NOBODY, Observer
from hitproof.engine.policy import EarlyDemotion, PolicyEngine
from hitproof.engine.store import Store
from hitproof.spec.errors import UsageError
from hitproof.spec.facts import Value
from hitproof.spec.memory import Memory
from hitproof.spec.repair import ComputeRepair

__all__ = ["CacheManager"]


class CacheManager:
    """Holds the segments of one model in tiers, and answers which of them a prompt may reuse.

    Methods may be called from any number of threads. None of them waits for another request: who would have to is
    answered `defer`. Between the named points of `engine.cache.points` a method holds no lock.

    Args:
        engine: The rulebook, bound to a model.
        memory: Bytes on the device and on the host.
        compute: Runs the repairs that compute, as the host framework can.
        unit: The hash unit, in tokens.
        host_bytes: Bytes of host memory for demoted segments; 0 for no host tier.
        disk: The store below it.
        policy: Id of a policy; without one every request is admitted that finds room.
        request: Facts that requests have unless they say otherwise.
        runtime: Run-time facts that are known: rates, limits.
        kernels: Facts of the kernel contract that all groups share; `kernel` changes those of one group.
        observer: Is told decisions, recoveries and events.
        verify: When bytes are measured, beside at their commit.
        clock: Seconds from some fixed moment on.
        at: Called between two steps.

    Raises:
        UsageError: The hash unit or `verify` cannot be used.
        SchemaError: The rulebook does not say how leases are taken or how a plan is carried out.
    """

    def __init__(
        self,
        engine: Engine,
        memory: Memory,
        compute: ComputeRepair,
        *,
        unit: int = 64,
        host_bytes: int = 0,
        disk: Store | None = None,
        policy: str | None = None,
        request: Mapping[str, Value] | None = None,
        runtime: Mapping[str, Value] | None = None,
        kernels: Mapping[str, Value] | None = None,
        observer: Observer = NOBODY,
        verify: Verify = "tier_crossing",
        clock: Callable[[], float] = monotonic,
        at: At = nobody,
    ) -> None:
        if type(unit) is not int or unit < 1:
            raise UsageError("the hash unit cannot be used", got=unit, expected="tokens, 1 or more")
        if verify not in VERIFY:
            raise UsageError("bytes cannot be measured then", got=verify, expected=", ".join(VERIFY))
        self.unit, self.memory = unit, memory
        chosen = None if policy is None else PolicyEngine(engine.bound, policy)
        self.engine = engine if chosen is None else chosen.engine
        core = self._core = Core(
            self.engine,
            memory,
            runtime_facts(self.engine, memory, unit, runtime or {}),
            {group.id: kernel_facts(self.engine, kernels or {}) for group in engine.bound.groups},
            unit=unit,
            clock=clock,
            at=at,
            observer=observer,
        )
        self._defaults = dict(request or {})
        self.tiers = Tiers(core, host_bytes, disk)
        self._room = Room(core, self.tiers)
        self._promises = Promises(core, policy=chosen is not None)
        self._adopting = Adopting(core, self.tiers, disk)
        self.measuring = Measuring(core, verify)
        decide = self.engine.decide if chosen is None else chosen.decide
        self._recovering = Recovering(
            core,
            self.engine,
            decide,
            Repairs(core, self._room, compute, disk, measures=verify == "use"),
            Publishing(core, self.engine, self.tiers),
            self.measuring,
            self._promises,
        )
        self._moving = Moving(core)
        self._keeping = Keeping(core, self.tiers, None if policy is None else EarlyDemotion(engine.bound, policy))
        self._later: deque[Prompt] = deque()
        self._coming: Counter[object] = Counter()
        self._holds: WeakSet[Hold] = WeakSet()
        self._numbers = itertools.count(1)

    @property
    def runtime(self) -> Any:
        """The run-time facts; rates and loads may be set, pools and promises are the manager's own."""
        return self._core.runtime

    def kernel(self, group: str, **facts: Value) -> None:
        """State facts of a group's kernel contract anew, as after another version of its kernel was loaded.

        Raises:
            UsageError: There is no such group or fact.
        """
        core = self._core
        if group not in core.groups:
            raise UsageError("the model has no such group", got=group, expected=", ".join(core.groups))
        made = kernel_facts(self.engine, {**core.kernels[group].as_dict(), **facts})
        with core.lock:
            core.kernels[group] = made

    def prompt(self, tokens: Sequence[int], facts: Mapping[str, Value] | None = None) -> Prompt:
        """A prompt, to be asked for and written.

        Args:
            tokens: Token ids.
            facts: Facts of the request, beside length and hash unit.

        Raises:
            UsageError: There are no tokens, one cannot be used, or a name is no fact of a request.
        """
        given = {**self._defaults, **(facts or {}), "length": len(tokens), "granularity": self.unit}
        return Prompt(tokens, request_facts(self.engine, given))

    def acquire(self, prompt: Prompt, *, postpones: bool = True) -> Answer:
        """Answer a request: what it may reuse, recovered where a plan says so, leased until it is released.

        Args:
            prompt: The request.
            postpones: Whether a plan that the policy runs beside other work is answered `defer`, and left to `work`;
                else it runs now.

        Returns:
            With a hold, unless it is deferred or refused: then the request holds nothing.
        """
        self._adopting.adopt(prompt)
        answer = self._recovering.answer(prompt, postpones=postpones)
        decision = answer.decision
        if answer.hold is not None:
            self._opened(answer.hold)
        elif answer.verdict == "defer" and decision is not None and decision.execution == "asynchronous" and postpones:
            self._later.append(prompt)
        coming = self._coming_length(prompt)
        if coming <= answer.usable:
            return answer
        return Answer(answer.verdict, answer.usable, decision, answer.hold, answer.why, coming)

    def member(self) -> CacheMember:
        """This manager as one rank of several that reuse together; see `engine.ranks`."""
        return CacheMember(self._core, self._recovering, self._adopting, self._opened)

    def begin(
        self,
        prompt: Prompt,
        hold: Hold,
        *,
        boundaries: Iterable[int] = (),
        inputs: bool = False,
        spans: Iterable[Span] | None = None,
    ) -> Writing | None:
        """Take blocks for what a request computes beyond what it reuses.

        Args:
            prompt: The request.
            hold: What it reuses, open.
            boundaries: Further lengths at which others shall be able to resume.
            inputs: Whether the layers' inputs are kept, for repairs to begin from.
            spans: Exactly these segments, each of one group, where the writer does not have all that could be written:
                a window that has slid on, a state of one length alone. Peers stand before those that read them.

        Returns:
            None where there is no room; the request holds its pins still, and should release them before it asks anew.

        Raises:
            UsageError: The hold was released, or is another prompt's, or a span is none of the model and the prompt.
        """
        if not hold.open or hold.prompt is not prompt:
            raise UsageError("what is written continues what is held", expected="an open hold of the same prompt")
        if spans is None:
            spans = spans_to_write(self.engine.judge.groups, prompt.length, hold, boundaries, inputs=inputs)
        else:
            spans = self._spans(prompt, spans)
        writing = Writing(self._core, self._room, prompt, next(self._numbers), approximate=hold.approximate)
        if not writing.reserve(spans):
            return None
        with self._core.lock:
            self._coming[prompt.digest(prompt.length)] += 1
            writing.on_end = self._arrived
        return writing

    def work(self) -> bool:
        """Run one recovery that was left for later; False where there is none. Workers call it in a loop."""
        try:
            prompt = self._later.popleft()
        except IndexError:
            return False
        answer = self._recovering.answer(prompt, postpones=False)
        if answer.hold is not None:
            answer.hold.release()
        return True

    def find(self, prompt: Prompt) -> tuple[Slot, ...]:
        """The segments on a prompt's path, to demote, promote, evict, share or roll back; they are not pinned."""
        self._core.at("look")
        with self._core.lock:
            _, found = self._core.index.find(prompt)
        return tuple(sorted(found, key=lambda slot: slot.number))

    def slots(self, group: str) -> tuple[Slot, ...]:
        """The segments of a group that hold something, the longest unused first; they are not pinned.

        Raises:
            UsageError: The model has no such group.
        """
        if group not in self._core.groups:
            raise UsageError("the model has no such group", got=group, expected=", ".join(self._core.groups))
        with self._core.lock:
            return tuple(self._core.recent[group])

    def columns(self, group: str) -> Columns:
        """What is known of each block of a group's pool.

        Raises:
            UsageError: No such group has blocks.
        """
        if group not in self._core.columns:
            raise UsageError("no such group has blocks", got=group, expected=", ".join(self._core.columns))
        return self._core.columns[group]

    def demote(self, slot: Slot, to: str = "host") -> bool:
        """Copy a segment to slower storage, and free its device blocks; False where it is held or cannot be."""
        return self.tiers.demote(slot, to)

    def spill(self, slot: Slot) -> bool:
        """Move a demoted segment from the host to the disk; False where it is held or cannot be."""
        return self.tiers.spill(slot)

    def promote(self, slot: Slot) -> bool:
        """Bring a demoted segment back ahead of need; False where it is held or cannot be."""
        return self.tiers.promote(slot) if self._has_room_for(slot) else False

    def evict(self, slot: Slot) -> bool:
        """Give a segment up; False where it is held."""
        return self.tiers.evict(slot)

    def quarantine(self, slot: Slot) -> bool:
        """Set a segment apart; False where it is held."""
        return self.tiers.quarantine(slot)

    def share(self, slot: Slot) -> Slot | None:
        """A second owner of a sealed segment's blocks; None where it may not be shared."""
        return self._moving.share(slot)

    def rollback(self, slot: Slot, end: int) -> bool:
        """Cut a segment back to `end` tokens; False where it is held or cannot be."""
        return self._moving.rollback(slot, end)

    def defragment(self, group: str) -> bool:
        """Move one segment of a group towards the front of its pool; False where nothing is to be moved.

        Raises:
            UsageError: No such group has bytes.
        """
        if group not in self._core.columns:
            raise UsageError("no such group has blocks", got=group, expected=", ".join(self._core.columns))
        return self._moving.defragment(group)

    def pools_moved(self) -> None:
        """Tell that the device pools are new ones: what lay in them is void, and graphs that were captured are too.

        Every other change keeps base, stride, block count and table of a pool, so a captured graph can be replayed
        (article 6.4). Segments of the earlier pools fail `pool_current` and are purged as they are found.
        """
        with self._core.lock:
            self._core.runtime.pool_epoch += 1

    def housekeep(self) -> Counter[str]:
        """Finish releases that waited, set apart and purge what is suspect, demote early; tell how often."""
        done = self._keeping.turn()
        self._note_pools()
        return done

    def discard_quarantined(self) -> int:
        """Give up what was set apart; how many segments."""
        return self._keeping.discard_quarantined()

    def check_integrity(self, *, quiet: bool = True) -> None:
        """Blocks, pins, keys, tiers and owners add up.

        Args:
            quiet: Whether no method runs beside it; then no block may be on its way to a segment either.

        Raises:
            InternalError: They do not.
        """
        core = self._core
        with core.lock:
            check_blocks(core, 0 if quiet else -1)
            check_pins(core, tuple(self._holds))
            check_keys(core)
            check_tiers(core, self.tiers)
            check_owners(core)
            self._promises.check_integrity()

    def _spans(self, prompt: Prompt, spans: Iterable[Span]) -> list[Span]:
        """The spans of a writer, once each is seen to be one of the model and the prompt."""
        given = list(spans)
        for group, start, end in given:
            if group not in self._core.groups or not 0 <= start <= end <= prompt.length:
                raise UsageError(
                    "no such segment can be written",
                    got=f"{group} [{start}, {end})",
                    expected=f"a group of the model, tokens of [0, {prompt.length})",
                )
        return given

    def _opened(self, hold: Hold) -> None:
        with self._core.lock:
            self._holds.add(hold)

    def _has_room_for(self, slot: Slot) -> bool:
        return slot.facts.form == "demoted" and slot.rows > 0 and self._room.make(slot.group.id, slot.rows)

    def _coming_length(self, prompt: Prompt) -> int:
        return max((length for length in self._coming_lengths(prompt)), default=0)

    def _coming_lengths(self, prompt: Prompt) -> Iterable[int]:
        if not self._coming:
            return
        with self._core.lock:
            coming = tuple(self._coming)
        yield from (
            length for length in range(self.unit, prompt.length + 1, self.unit) if prompt.digest(length) in coming
        )

    def _arrived(self, prompt: Prompt) -> None:
        key = prompt.digest(prompt.length)
        self._coming[key] -= 1
        if self._coming[key] <= 0:
            del self._coming[key]

    def _note_pools(self) -> None:
        """Blocks of the device that hold something, in hash units, for the rules about load."""
        core = self._core
        with core.lock:
            filled = max((columns.blocks - columns.free) / max(1, columns.blocks) for columns in core.columns.values())
            core.runtime.filled_blocks = int(filled * (core.runtime.capacity_blocks or 0))
