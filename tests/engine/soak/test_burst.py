"""A burst of twice what the device holds: nobody waits for ever, nothing is exceeded, who must wait hears why."""

from __future__ import annotations

import threading
from pathlib import Path

from hitproof.engine.cache.hold import Answer
from hitproof.engine.cache.manager import CacheManager
from hitproof.engine.soak.prompts import UNIT, Asked, Crowd
from hitproof.engine.soak.stage import Settings, Stage

PROMPTS = 6
LONG = 256


def different(seed: int, count: int) -> list[Asked]:
    """So many long prompts that share nothing."""
    facts = Crowd(seed).facts(3, 0, False)
    return [Asked(tuple(range(n * 1000, n * 1000 + LONG)), facts) for n in range(count)]


def written(stage: Stage, asked: Asked) -> str:
    """Write a prompt, and give everything back; what it came to."""
    prompt = stage.manager.prompt(asked.tokens, asked.facts)
    answer = stage.manager.acquire(prompt)
    if answer.hold is None:
        return answer.why
    try:
        writing = stage.manager.begin(prompt, answer.hold, boundaries=[LONG - UNIT])
        if writing is None:
            return "no room"
        prefix = stage.world.prefix(asked.tokens, asked.facts)
        for slot in writing.slots:
            if slot.extent is not None:
                start, end = next((a, b) for a, b, extent in writing.extents[slot.group.id] if extent == slot.extent)
                writing.put(slot.extent, 0, prefix.written(slot.group.id, start, end, slot.facts).tobytes())
        return writing.commit() or "committed"
    finally:
        answer.hold.release()


def used(manager: CacheManager) -> dict[str, int]:
    """Blocks of each pool that somebody owns."""
    return {group: columns.blocks - columns.free for group, columns in manager._core.columns.items()}


def test_twice_the_capacity_at_once(tmp_path: Path) -> None:
    """Holds of twice as many prompts as fit, all at once, while all of them are written too."""
    stage = Stage(Settings(faults=frozenset(), prompts=float(PROMPTS)), tmp_path)
    prompts = different(1, 2 * PROMPTS)
    first = [written(stage, asked) for asked in prompts]
    assert set(first) == {"committed"}
    pools = {group: columns.blocks for group, columns in stage.core.columns.items()}
    answers: list[Answer] = []
    heard: list[str] = []
    lock = threading.Lock()
    ready = threading.Barrier(2 * len(prompts))

    def hold_it(asked: Asked) -> None:
        ready.wait()
        answer = stage.manager.acquire(stage.manager.prompt(asked.tokens, asked.facts))
        with lock:
            answers.append(answer)

    def write_it(asked: Asked) -> None:
        ready.wait()
        word = written(stage, Asked((*asked.tokens[:64], *range(9000, 9000 + LONG - 64)), asked.facts))
        with lock:
            heard.append(word)

    threads = [threading.Thread(target=what, args=(asked,)) for asked in prompts for what in (hold_it, write_it)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert len(answers) == len(heard) == len(prompts)
    assert all(answer.hold is not None or answer.why for answer in answers)
    assert all(heard)
    assert all(blocks <= pools[group] for group, blocks in used(stage.manager).items())
    assert stage.manager.tiers.host_used <= stage.manager.tiers.host_capacity
    stage.audit()
    for answer in answers:
        if answer.hold is not None:
            assert answer.hold.confirm()
            answer.hold.release()
    stage.manager.check_integrity()
    assert written(stage, prompts[0]) == "committed"
    stage.finish()
