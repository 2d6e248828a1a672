"""The replay of a trace: look up, decide by the rules, count, admit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from time import perf_counter
from typing import Any

from hitproof.engine.decide import Engine
from hitproof.engine.replay.directory import Directory
from hitproof.engine.replay.report import ReplayReport, Tally
from hitproof.engine.replay.retention import Retention
from hitproof.engine.replay.serving import Serving
from hitproof.engine.state import Resolved
from hitproof.engine.trace import TraceRequest
from hitproof.rules.rates import RateSheet, rates_in_force, with_rates
from hitproof.spec.bound import BoundRulebook
from hitproof.spec.errors import UsageError

__all__ = ["replay"]


def replay(
    requests: Iterable[TraceRequest],
    bound: BoundRulebook,
    *,
    capacity: int | None,
    host_blocks: int | None = 0,
    disk_blocks: int | None = 0,
    retention: str = "full",
    period: int = 16,
    version_change_rate: float = 0.0,
    seed: int = 0,
    runtime: Mapping[str, object] | None = None,
    request: Mapping[str, object] | None = None,
    rates: RateSheet | None = None,
) -> ReplayReport:
    """Runs requests one after the other through a cache that the rulebook decides about.

    The cache holds blocks of the trace in three tiers, least recently used first out. A block stands for its
    tokens' rows in every group that keeps one a token or an entry; state that belongs to a length is kept where
    the retention says. What a request reuses, repairs or computes lies on the device after it, so a later request
    finds it. Answers are not in a trace, so nothing of them is cached.

    Args:
        requests: The trace, in order of arrival.
        bound: The rulebook, bound to a model; its engine gives every verdict.
        capacity: Blocks that the device holds; None is unlimited.
        host_blocks, disk_blocks: The same of the lower tiers; 0 leaves the tier out.
        retention: Where windows and states are kept, see `Retention`.
        period: Blocks between two kept boundaries, in `periodic`.
        version_change_rate: Probability, a request, of an injected version change; nothing about it is measured.
        seed: Seed of the injected changes.
        runtime, request: Facts that replace those of the rulebook's environment, and of `rates`.
        rates: A machine's rates, in place of those that the rulebook states; the report tells which were in force.

    Returns:
        The figures; the same arguments give the same, but for the wall time.

    Raises:
        UsageError: A setting cannot be used, the rates are for another model, or the blocks of two requests differ
            in size.
        HitproofError: The trace cannot be read on, where it is read while it is replayed.
    """
    bound = bound if rates is None else with_rates(bound, rates)
    engine = Engine(bound)
    serving = Serving(bound, engine.types, change_rate=version_change_rate, seed=seed, request=request, runtime=runtime)
    kept = Retention(bound.rulebook.policy.retention, retention, period)
    state = Resolved(serving.request, serving.runtime, serving.kernels, {}, 0)
    tally = Tally(engine)
    directory: Directory | None = None
    capacities = (capacity, host_blocks, disk_blocks)
    began = perf_counter()
    for one in requests:
        ids, tokens = one.hash_ids, one.input_tokens
        if directory is None:
            tally.unit = serving.request.granularity = one.block_tokens
            directory = Directory(bound, serving, kept, one.block_tokens, capacities)
        elif one.block_tokens != tally.unit:
            raise UsageError("blocks differ in size", got=one.block_tokens, expected=f"{tally.unit} tokens, as before")
        if serving.pass_time():
            state.kernels = serving.kernels
        found = directory.look_up(ids, tokens)
        # A prompt without a whole token has no length that a rule could read.
        state.request.length = tokens or None
        state.matched, state.pieces = found.matched, found.pieces
        decision = engine.decide(state, explain=False)
        tally.count(one, found, state, decision)
        directory.admit(ids, tokens, found, decision)
    settings: dict[str, Any] = {
        "rulebook": bound.rulebook.name,
        "digest": bound.rulebook.digest,
        "model": bound.profile.name,
        "block_tokens": tally.unit,
        "capacity": capacity,
        "host_blocks": host_blocks,
        "disk_blocks": disk_blocks,
        "retention": retention,
        "period": period,
        "version_change_rate": version_change_rate,
        "seed": seed,
        "rates": rates_in_force(bound.rulebook, serving.runtime, rates),
    }
    return tally.report(injected=serving.changes, seconds=perf_counter() - began, settings=settings)
