"""A serving process in simulated time: what a policy does to the time to the first token, to reuse and to traffic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import Any

from hitproof.engine.policy import EarlyDemotion, Ledger, PolicyEngine, Waiter, WaitingOrder
from hitproof.engine.policy.plan_facts import brings_back
from hitproof.engine.replay.directory import Directory, Found
from hitproof.engine.replay.policy_report import PolicyReport, PolicyTally
from hitproof.engine.replay.retention import Retention
from hitproof.engine.replay.serving import Serving
from hitproof.engine.replay.stores import keeps_every_token
from hitproof.engine.state import Resolved
from hitproof.engine.tiers import DEVICE
from hitproof.engine.trace import TraceRequest
from hitproof.spec.bound import BoundRulebook
from hitproof.spec.condition import reads
from hitproof.spec.decision import Decision
from hitproof.spec.errors import InternalError, UsageError
from hitproof.spec.facts import Value

__all__ = ["evaluate_policy"]

TRANSFERRED = {"plan.host_bytes", "plan.disk_bytes"}
"""A pool of which a plan takes by these alone has its share back once the bytes have arrived."""

NOTHING = Found(0, 0, {})
UNDECIDED = Decision("defer", 0, 0)
"""What a request has before it was looked at; an order by arrival need not look."""


def evaluate_policy(
    requests: Iterable[TraceRequest],
    bound: BoundRulebook,
    policy: str,
    *,
    capacity: int,
    host_blocks: int | None = 0,
    disk_blocks: int | None = 0,
    lanes: int = 1,
    period: int = 16,
    pace: float = 1.0,
    runtime: Mapping[str, object] | None = None,
    request: Mapping[str, object] | None = None,
) -> PolicyReport:
    """Serves a trace in simulated time under one policy.

    The model: `lanes` devices prefill one request each at a time, at the stated rate; they share one cache, one path
    to host memory and one to disk, each first come, first served and each with a way in and a way out. A synchronous
    plan holds its lane while its transfers run; an asynchronous one waits beside the lanes and goes before others when
    its bytes are there. A block that is pushed out of the device when room is needed is copied down first, and the
    request that needs the room waits for it; what was demoted early costs no request any time. What a request
    computed can be hit once its prefill has ended. Decoding is left out.

    Args:
        requests: The trace; arrivals in milliseconds.
        bound: The rulebook, bound to a model.
        policy: Id of one of its policies.
        capacity, host_blocks, disk_blocks: Blocks of the three tiers.
        lanes: Devices that prefill.
        period: Blocks between two kept boundaries, for a retention that reads it.
        pace: Arrivals are this many times as fast as in the trace.
        runtime, request: Facts that replace those of the stated environment, such as rates.

    Raises:
        UsageError: A setting cannot be used, or the blocks of two requests differ in size.
        HitproofError: The trace cannot be read on.
    """
    if type(lanes) is not int or lanes < 1:
        raise UsageError("the number of lanes cannot be used", got=lanes, expected="a whole number, at least 1")
    if not pace > 0:
        raise UsageError("the pace cannot be used", got=pace, expected="a number above 0")
    process = _Process(bound, policy, (capacity, host_blocks, disk_blocks), lanes, period, runtime, request)
    for one in requests:
        process.arrives(one, one.timestamp_ms * 1000.0 / pace)
    process.drain()
    return process.report({"pace": pace})


@dataclass(slots=True, eq=False)
class _Job:
    """One request on its way."""

    request: TraceRequest
    arrival: float
    found: Found = NOTHING
    decision: Decision = UNDECIDED
    facts: dict[str, Any] = field(default_factory=dict)
    compute_us: float = 0.0


class _Process:
    """Lanes, paths, queue and cache, moved on from event to event; all times in microseconds."""

    def __init__(
        self,
        bound: BoundRulebook,
        policy: str,
        capacities: tuple[int, int | None, int | None],
        lanes: int,
        period: int,
        runtime: Mapping[str, object] | None,
        request: Mapping[str, object] | None,
    ) -> None:
        self.engine = PolicyEngine(bound, policy)
        rules = bound.rulebook.policy
        self.serving = Serving(bound, self.engine.engine.types, request=request, runtime=runtime)
        self.runtime = self.serving.runtime
        self._note(capacity_blocks=capacities[0])
        self.retention = Retention(rules.retention, self.engine.policy.retention, period)
        self.ledger = Ledger(rules.pools, self.runtime)
        self.passing = [name for name, pool in rules.pools.items() if reads(pool.demand) <= TRANSFERRED]
        # Options that give a piece another place, and whether its bytes are brought there.
        self.places = {
            (group.id, option.id): brings_back(option)
            for group in bound.groups
            for option in group.options
            if brings_back(option) or not option.own_bytes
        }
        self.ranked = self.engine.policy.waiting == "ranked"
        self.order = WaitingOrder(rules.waiting if self.ranked else None)
        self.early = EarlyDemotion(bound, policy)
        self.bound, self.capacities, self.lanes = bound, capacities, lanes
        lower = [tier for tier, blocks in zip(("host", "disk"), capacities[1:], strict=True) if blocks != 0]
        self.below = lower[0] if lower else None
        self.down_us_per_byte = self._rate_down()
        self.cache: Directory | None = None
        self.unit = 0
        self.block_bytes = 0
        self.resting: Any = None
        self.now = 0.0
        self.started: float | None = None
        self.held_until: list[float] = []
        self.events: list[tuple[float, int, str, _Job]] = []
        self.ticket = count()
        self.waiting: list[_Job] = []
        self.ready: list[_Job] = []
        self.path_free = {"host": 0.0, "disk": 0.0, "down": 0.0}
        self.touched: dict[int, float] = {}
        self.tally = PolicyTally()

    def arrives(self, one: TraceRequest, at: float) -> None:
        """Everything up to the arrival happens, then the request joins the queue."""
        self._run_until(at)
        self.now = max(self.now, at)
        if self.started is None:
            self.started = self.now
            self.unit = self.serving.request.granularity = one.block_tokens
            self.cache = Directory(self.bound, self.serving, self.retention, self.unit, self.capacities)
            self.resting = _resting_block(self.bound, self.serving, self.unit)
            self.block_bytes = self.resting.bytes
        elif one.block_tokens != self.unit:
            raise UsageError("blocks differ in size", got=one.block_tokens, expected=f"{self.unit} tokens, as before")
        if one.input_tokens:
            job = _Job(one, self.now)
            if self.ranked:
                self._weigh(job)
            self.waiting.append(job)
            self._dispatch()

    def drain(self) -> None:
        """Everything that has arrived ends; what an idle process does not admit is turned away."""
        self._run_until(float("inf"))
        for job in self.waiting:
            self._turned_away(job)
        self.waiting.clear()

    def report(self, settings: Mapping[str, Any]) -> PolicyReport:
        """The figures."""
        device, host, disk = self.capacities
        return self.tally.report(
            lane_us=(self.now - (self.started or 0.0)) * self.lanes,
            settings={
                "rulebook": self.bound.rulebook.name,
                "digest": self.bound.rulebook.digest,
                "model": self.bound.profile.name,
                "policy": self.engine.policy.id,
                "block_tokens": self.unit,
                "block_bytes": self.block_bytes,
                "capacity": device,
                "host_blocks": host,
                "disk_blocks": disk,
                "lanes": self.lanes,
                "retention": self.retention.name,
                "period": self.retention.period,
                **settings,
            },
        )

    @property
    def _free(self) -> int:
        return self.lanes - len(self.held_until)

    def _run_until(self, at: float) -> None:
        while self.events and self.events[0][0] <= at:
            self.now, _, what, job = heappop(self.events)
            if what == "transferred":
                for pool in self.passing:
                    self.ledger.give_back(id(job), pool, job.decision.promised[pool])
                self.ready.append(job)
            else:
                self._ends(job)
            self._dispatch()

    def _note(self, **facts: Value) -> None:
        """State run-time facts, those of them that the rulebook declares."""
        for name, value in facts.items():
            if name in self.runtime.names:
                setattr(self.runtime, name, value)

    def _later(self, at: float, what: str, job: _Job) -> None:
        heappush(self.events, (at, next(self.ticket), what, job))

    def _dispatch(self) -> None:
        """Idle lanes take what is ready, then whom the rules let in."""
        while self._free and self.ready:
            self._computes(self.ready.pop(0), self.now)
        if not self.waiting or not self._free:
            return
        self._demote_early()
        waiters = []
        for job in self.waiting:
            job.facts["request.waited_us"] = self.now - job.arrival
            waiters.append(Waiter(job, job.arrival, job.facts))
        gone = {id(waiter.holder) for waiter in self.order.may_go(waiters, lambda waiter: self._lets_in(waiter.holder))}
        self.waiting = [job for job in self.waiting if id(job) not in gone]

    def _lets_in(self, job: _Job) -> bool:
        """Decide anew on the state as it is now; False where the request goes on waiting."""
        if not self._free:
            return False
        self._weigh(job)
        if job.decision.verdict == "refuse":
            self._turned_away(job)
            return True
        if job.decision.verdict == "defer" or not self.ledger.reserve(id(job), job.decision.promised):
            self.tally.deferrals += 1
            return False
        self._starts(job)
        return True

    def _weigh(self, job: _Job) -> None:
        """Look up and decide on the state as it is now; changes the job."""
        one, request, cache = job.request, self.serving.request, self._cache()
        request.length = one.input_tokens
        if "waited_us" in request.names:
            request.waited_us = self.now - job.arrival
        self._note(
            host_backlog_us=max(0.0, self.path_free["host"] - self.now),
            disk_backlog_us=max(0.0, self.path_free["disk"] - self.now),
            compute_backlog_us=0.0 if self._free else max(0.0, min(self.held_until) - self.now),
            load_percent=100 * len(self.held_until) // self.lanes,
            filled_blocks=cache.filled(),
        )
        job.found = cache.look_up(one.hash_ids, one.input_tokens)
        state = Resolved(request, self.runtime, self.serving.kernels, job.found.pieces, job.found.matched)
        job.decision, job.facts = self.engine.weigh(state, explain=False)

    def _starts(self, job: _Job) -> None:
        """Room is taken and transfers begin; a plan that is synchronous, or has none, takes a lane at once."""
        decision, cache = job.decision, self._cache()
        transfers = self._transfers(job)
        moved = sum(transfers.values())
        job.compute_us = max(0.0, decision.cost_us - moved) + self._prefill_us(job)
        for pool, amount in decision.promised.items():
            self.ledger.take(id(job), pool, amount)
        room_at = self._makes_room(job)
        reused = job.request.hash_ids[: decision.usable // self.unit]
        cache.touch(reused)
        self.touched.update(dict.fromkeys(reused, self.now))
        self._count(job)
        done = max((self._sends(path, us) for path, us in transfers.items()), default=self.now)
        if decision.plan:
            self.tally.executions[decision.execution] += 1
        if decision.execution == "asynchronous" and moved:
            self._later(max(done, room_at), "transferred", job)
        else:
            self._computes(job, max(done, room_at))

    def _computes(self, job: _Job, ready_at: float) -> None:
        """Hold a lane from now until the prefill ends; it cannot begin before `ready_at`."""
        end = max(self.now, ready_at) + job.compute_us
        self.held_until.append(end)
        self.tally.held_us += end - self.now
        self._later(end, "ends", job)

    def _ends(self, job: _Job) -> None:
        self.held_until.remove(self.now)
        self.ledger.release(id(job))
        one = job.request
        self.tally.ttft_us.append(self.now - job.arrival)
        self._cache().admit(one.hash_ids, one.input_tokens, job.found, job.decision)
        self.touched.update(dict.fromkeys(one.hash_ids, self.now))

    def _transfers(self, job: _Job) -> dict[str, float]:
        """Path to the time that the plan keeps it busy; once a piece has come back, no step on it uses a path."""
        found: dict[str, float] = {}
        placed: set[tuple[str, int]] = set()
        for step in job.decision.plan:
            piece, fetches = (step.group, step.segment), self.places.get((step.group, step.option))
            if step.segment < 0 or piece in placed or fetches is None:
                continue
            placed.add(piece)
            tier = job.found.pieces[step.group][step.segment].tier
            if fetches and tier in ("host", "disk"):
                found[tier] = found.get(tier, 0.0) + (step.cost_us or 0.0)
        return found

    def _sends(self, path: str, us: float) -> float:
        """Queue a transfer; returns when it will have ended."""
        self.path_free[path] = max(self.now, self.path_free[path]) + us
        return self.path_free[path]

    def _makes_room(self, job: _Job) -> float:
        """Blocks that must leave the device for this request are copied down; returns when they are."""
        cache = self._cache()
        over = cache.filled() + cache.absent(job.request.hash_ids) - self.capacities[0]
        return self.now if over <= 0 or self.below is None else self._copies_down(over)

    def _copies_down(self, blocks: int) -> float:
        size = blocks * self.block_bytes
        self.tally.down_bytes += size
        return self._sends("down", size * self.down_us_per_byte)

    def _rate_down(self) -> float:
        """Price of a byte on its way to the tier below the device; 0 where there is none."""
        if self.below is None:
            return 0.0
        name = f"{self.below}_us_per_byte"
        rate = getattr(self.runtime, name, None)
        if rate is None:
            raise UsageError(f"what a byte to the {self.below} costs is not known", expected=f"a fact runtime.{name}")
        return float(rate)

    def _demote_early(self) -> None:
        """The oldest blocks leave while the rules say so, on the way down, at nobody's cost."""
        cache = self._cache()
        if not self.early.asks or self.below is None:
            return
        while (block := cache.oldest()) is not None:
            self._note(filled_blocks=cache.filled())
            segment = self.resting.copy()
            segment.idle_us = self.now - self.touched.get(block, self.now)
            if not self.early.chosen([segment], self.runtime) or not cache.demote_oldest():
                return
            self._copies_down(1)

    def _count(self, job: _Job) -> None:
        decision, tally = job.decision, self.tally
        tally.touched += job.request.input_tokens
        tally.logical += job.found.matched
        if decision.verdict == "reuse":
            tally.effective += decision.usable
        else:
            tally.recovered += decision.usable
        tally.host_bytes += int(job.facts["plan.host_bytes"] or 0)
        tally.disk_bytes += int(job.facts["plan.disk_bytes"] or 0)
        tally.recovery_us += decision.cost_us
        tally.prefill_us += self._prefill_us(job)
        tally.decisions[decision.verdict] = tally.decisions.get(decision.verdict, 0) + 1

    def _prefill_us(self, job: _Job) -> float:
        return job.decision.total_us - job.decision.cost_us

    def _turned_away(self, job: _Job) -> None:
        self.tally.refused += 1
        self.tally.touched += job.request.input_tokens

    def _cache(self) -> Directory:
        if self.cache is None:
            raise InternalError("no request has arrived yet")
        return self.cache


def _resting_block(bound: BoundRulebook, serving: Serving, unit: int) -> Any:
    """A segment that stands for one block at rest: of the first group that keeps every token, with all their bytes."""
    cuts = [
        serving.moulds[0][group.id].cut(0, unit, DEVICE)
        for group in bound.groups
        if keeps_every_token(group) and group.rules.mandatory
    ]
    if not cuts:
        raise UsageError("the model keeps no rows of every token, so a block has no size", got=bound.profile.name)
    segment = cuts[0].copy()
    segment.bytes = sum(cut.bytes for cut in cuts)
    return segment
