"""Load on the cache manager: admission under a policy, recoveries beside other work, bursts beyond the capacity."""

from __future__ import annotations

from collections import Counter
from threading import Thread

import pytest

from hitproof.engine.cache import Answer
from tests.engine.cache.cases import Machine, prompt_tokens

TOKENS = prompt_tokens(512)
MORE = [*TOKENS, *prompt_tokens(88, seed=7)]


def test_requests_beyond_the_promised_room_wait_and_are_told_why() -> None:
    """Used and promised blocks never exceed the capacity, and what is given back admits the next."""
    machine = Machine(policy="state_aware", blocks=16, unit=64)
    capacity = machine.manager.runtime.capacity_blocks
    held: list[Answer] = []
    turned: list[Answer] = []
    for seed in range(12):
        answer = machine.manager.acquire(machine.prompt(prompt_tokens(512, seed=seed)))
        (held if answer.hold is not None else turned).append(answer)
        machine.check()
    assert len(held) == capacity // 8
    assert {answer.verdict for answer in turned} == {"defer"}
    assert all("loads under way still need" in answer.why for answer in turned)
    first = held.pop(0).hold
    assert first is not None
    first.release()
    again = machine.manager.acquire(machine.prompt(prompt_tokens(512, seed=20)))
    assert again.hold is not None


def test_what_can_never_fit_is_refused_and_not_deferred() -> None:
    """A prompt larger than the whole pool waits for nothing."""
    machine = Machine(policy="state_aware", blocks=16, unit=64)
    tokens = machine.manager.runtime.capacity_blocks * 64 + 64
    answer = machine.ask(prompt_tokens(tokens))
    assert answer.verdict == "refuse"
    assert "waits in vain" in answer.why


def test_a_slow_way_back_runs_beside_other_work_and_the_next_request_finds_it_done() -> None:
    """The plan is left to a worker; meanwhile the request is deferred and holds nothing."""
    slow = {"host_us_per_byte": 0.05, "sync_limit_us": 100.0, "prefill_us_per_token": 5000.0}
    machine = Machine(policy="state_aware", runtime=slow)
    machine.fill(TOKENS)
    machine.demote_all(TOKENS)
    waiting = machine.manager.acquire(machine.prompt(MORE))
    assert (waiting.verdict, waiting.hold) == ("defer", None)
    assert waiting.why == "its plan runs beside other work"
    machine.check()
    assert machine.manager.work()
    assert not machine.manager.work()
    machine.check()
    found = machine.ask(MORE)
    assert (found.verdict, found.usable) == ("reuse", 512)


def test_one_recovery_of_a_segment_at_a_time() -> None:
    """Who comes second while the first one copies is deferred, and finds it done afterwards."""
    second: list[Answer] = []
    machine = Machine()

    def meanwhile(point: str) -> None:
        if point == "load" and not second:
            second.append(machine.manager.acquire(machine.prompt([*MORE, 1])))

    machine.at = meanwhile
    machine.fill(TOKENS)
    machine.demote_all(TOKENS)
    first = machine.ask(MORE)
    assert (first.verdict, first.usable) == ("repair", 512)
    assert (second[0].verdict, second[0].why) == ("defer", "another request recovers the same segments")
    machine.manager.housekeep()
    machine.check()
    assert machine.ask([*MORE, 1]).verdict == "reuse"


@pytest.mark.parametrize("policy", [None, "state_aware"])
def test_a_burst_at_twice_the_capacity_neither_deadlocks_nor_exceeds_memory(policy: str | None) -> None:
    """Sixteen threads ask for twice what the pools hold; each is served in the end, and every refusal has a reason."""
    machine = Machine(policy=policy, blocks=16, host_bytes=1 << 20)
    ended: Counter[str] = Counter()
    reasons: set[str] = set()
    failures: list[BaseException] = []

    def serve(seed: int) -> None:
        try:
            tokens = prompt_tokens(256 + 64 * (seed % 4), seed=seed % 24)
            for _ in range(2000):
                prompt = machine.prompt(tokens)
                answer = machine.manager.acquire(prompt, postpones=False)
                if answer.hold is None:
                    ended[answer.verdict] += 1
                    reasons.add(answer.why)
                    continue
                writing = machine.manager.begin(prompt, answer.hold)
                if writing is None:
                    ended["no room"] += 1
                    answer.hold.release()
                    continue
                for group, places in writing.extents.items():
                    for start, end, extent in places:
                        writing.put(extent, 0, machine.rows(prompt, group, start, end, extent.rows))
                confirmed = answer.hold.confirm()
                if confirmed:
                    writing.commit()
                else:
                    writing.abort()
                answer.hold.release()
                if confirmed:
                    ended["served"] += 1
                    return
            ended["starved"] += 1
        except BaseException as error:
            failures.append(error)

    threads = [Thread(target=serve, args=(seed,), daemon=True) for seed in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert not failures
    assert not any(thread.is_alive() for thread in threads)
    assert ended["served"] == 32 and not ended["starved"]
    assert all(reasons)
    machine.manager.housekeep()
    machine.check()


def test_readers_do_not_wait_for_a_reader_that_decides() -> None:
    """A second request is answered while a first one stands between its look-up and its confirmation."""
    answers: list[Answer] = []
    machine = Machine()

    def meanwhile(point: str) -> None:
        if point == "confirm" and not answers:
            answers.append(Answer("miss", 0, None, None))
            thread = Thread(target=lambda: answers.append(machine.ask(MORE)))
            thread.start()
            thread.join(timeout=30)
            assert not thread.is_alive()

    machine.at = meanwhile
    machine.fill(TOKENS)
    answers.clear()
    assert machine.ask(MORE).verdict == "reuse"
    assert [answer.verdict for answer in answers] == ["miss", "reuse"]


def test_after_new_pools_nothing_of_the_earlier_ones_is_read() -> None:
    """The pool epoch moves on, so that every address of before is void."""
    machine = Machine()
    machine.fill(TOKENS)
    held = machine.manager.acquire(machine.prompt(MORE))
    machine.manager.pools_moved()
    answer = machine.ask(MORE)
    assert answer.usable == 0
    assert answer.decision is not None and "csa_entries/pool_current" in answer.decision.failed
    assert held.hold is not None and not held.hold.confirm()
    assert held.hold.broken == "block_integrity/pool_current"
    held.hold.release()
    machine.manager.housekeep()
    machine.check()
