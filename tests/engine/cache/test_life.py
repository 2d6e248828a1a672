"""The life of segments in the cache manager: written, found, recovered, moved, given up."""

from __future__ import annotations

from pathlib import Path

import pytest

from hitproof.engine.cache import CacheManager
from hitproof.spec.errors import UsageError
from tests.engine.cache.cases import IDENTITY, Machine, prompt_tokens

TOKENS = prompt_tokens(512)
MORE = [*TOKENS, *prompt_tokens(88, seed=7)]


def test_nothing_is_found_before_anything_was_committed() -> None:
    """A miss has a hold with nothing in it, for the request to write by."""
    machine = Machine()
    answer = machine.manager.acquire(machine.prompt(TOKENS))
    assert (answer.verdict, answer.usable) == ("miss", 0)
    assert answer.hold is not None and not answer.hold.tables
    answer.hold.release()
    machine.check()


def test_what_was_committed_is_reused_with_the_very_bytes_that_were_written() -> None:
    """Every group's rows are those that its writer put there."""
    machine = Machine(verify="use")
    assert machine.fill(TOKENS) == ""
    answer = machine.manager.acquire(machine.prompt(MORE))
    assert (answer.verdict, answer.usable) == ("reuse", 512)
    assert answer.hold is not None and answer.hold.confirm()
    for group, found in machine.read(answer.hold).items():
        meant = [rows for (name, *_), rows in machine.written.items() if name == group]
        assert found == meant, group
    answer.hold.release()
    machine.check()


def test_a_prompt_that_differs_later_resumes_at_a_boundary_that_was_kept() -> None:
    """States of a length exist where they were written, so the longest common such length is reused."""
    machine = Machine()
    machine.fill(TOKENS, boundaries=(128, 256, 384))
    for agreed, resumed in ((511, 384), (400, 384), (300, 256), (200, 128), (100, 0)):
        answer = machine.ask([*TOKENS[:agreed], *prompt_tokens(100, seed=3)])
        assert answer.usable == resumed, agreed
    machine.check()


def test_a_writer_writes_what_it_has_and_no_more() -> None:
    """Of a window that has slid on, a part; of states, none: what is missing is a gap for whoever asks."""
    machine = Machine("gemma-3-27b", blocks=512)
    prompt = machine.prompt(TOKENS)
    hold = machine.manager.acquire(prompt).hold
    assert hold is not None
    writing = machine.manager.begin(prompt, hold, spans=[("window_boundary", 0, 512), ("full", 0, 512)])
    assert writing is not None
    assert [("window_boundary", 0, 512), ("full", 0, 512)] == [
        (slot.group.id, slot.facts.start, slot.facts.matched) for slot in writing.slots
    ]
    assert writing.commit() == ""
    hold.release()
    answer = machine.ask(MORE)
    assert answer.decision is not None and "window/covers_window" in answer.decision.failed
    machine.check()


@pytest.mark.parametrize("span", [("unknown", 0, 8), ("full", 8, 0), ("full", -1, 8), ("full", 0, 513)])
def test_a_span_that_is_none_of_the_prompt_is_refused(span: tuple[str, int, int]) -> None:
    """Nothing is taken for it."""
    machine = Machine("gemma-3-27b")
    prompt = machine.prompt(TOKENS)
    hold = machine.manager.acquire(prompt).hold
    assert hold is not None
    with pytest.raises(UsageError):
        machine.manager.begin(prompt, hold, spans=[span])
    hold.release()
    machine.check()


@pytest.mark.parametrize("fact", ["weights", "attention_config", "adapter", "salt"])
def test_another_identity_finds_nothing(fact: str) -> None:
    """Equal tokens of another tenant, adapter or model are a miss."""
    machine = Machine()
    machine.fill(TOKENS)
    answer = machine.ask(MORE, **{fact: "another"})
    assert (answer.verdict, answer.usable) == ("miss", 0)


@pytest.mark.parametrize("fact", ["weights", "attention_config", "adapter", "media", "salt"])
def test_an_identity_that_nobody_states_is_unknown_and_finds_nothing(fact: str) -> None:
    """Two who state none are not the same: a default would share one tenant's prefixes with another."""
    machine = Machine()
    machine.fill(TOKENS)
    manager = CacheManager(
        machine.engine,
        machine.memory,
        machine.compute,
        request={name: value for name, value in IDENTITY.items() if name != fact},
    )
    prompt = manager.prompt(TOKENS)
    assert getattr(prompt.request, fact) is None
    for _ in range(2):
        answer = manager.acquire(prompt)
        assert (answer.verdict, answer.usable) == ("miss", 0)
        assert answer.hold is not None
        writing = manager.begin(prompt, answer.hold)
        if writing is not None:
            writing.commit()
            writing.abort()
        answer.hold.release()


def test_pending_segments_are_invisible_and_told_as_coming() -> None:
    """A second request learns that somebody computes its prefix, and finds it once it is committed."""
    machine = Machine()
    prompt = machine.prompt(TOKENS)
    first = machine.manager.acquire(prompt)
    assert first.hold is not None
    writing = machine.manager.begin(prompt, first.hold)
    assert writing is not None
    waiting = machine.ask(MORE)
    assert (waiting.usable, waiting.coming) == (0, 512)
    for group, places in writing.extents.items():
        for start, end, extent in places:
            writing.put(extent, 0, machine.rows(prompt, group, start, end, extent.rows))
    assert writing.commit() == ""
    first.hold.release()
    assert machine.ask(MORE).usable == 512
    assert machine.ask(MORE).coming == 0


def test_an_aborted_writing_leaves_no_trace() -> None:
    """Blocks are free again, and nothing is found."""
    machine = Machine()
    prompt = machine.prompt(TOKENS)
    answer = machine.manager.acquire(prompt)
    assert answer.hold is not None
    writing = machine.manager.begin(prompt, answer.hold)
    assert writing is not None
    extent = next(iter(writing.extents.values()))[0][2]
    writing.abort()
    writing.abort()
    with pytest.raises(UsageError, match="the writing has ended"):
        writing.put(extent, 0, b"")
    answer.hold.release()
    machine.check()
    assert machine.ask(MORE).verdict == "miss"


def test_bytes_that_are_not_those_that_were_meant_are_not_committed() -> None:
    """A write that was lost on its way shows at the commit, where the writer says what it meant."""
    machine = Machine()
    prompt = machine.prompt(TOKENS)
    answer = machine.manager.acquire(prompt)
    assert answer.hold is not None
    writing = machine.manager.begin(prompt, answer.hold)
    assert writing is not None
    group, places = next(iter(writing.extents.items()))
    _, _, extent = places[0]
    meant = b"\x01" * machine.memory.shape(group).payload_bytes(extent.rows)
    why = writing.commit({extent: machine.memory.digest(group, meant)})
    assert why.startswith(group)
    answer.hold.release()
    assert machine.ask(MORE).verdict == "miss"
    machine.check()


@pytest.mark.parametrize("tier", ["host", "disk"])
def test_a_demoted_prefix_comes_back_whole_in_blocks_of_its_own(tier: str, tmp_path: Path) -> None:
    """It is promoted, measured and published; the next request finds it clean."""
    machine = Machine(folder=tmp_path, verify="use")
    machine.fill(TOKENS)
    assert machine.demote_all(TOKENS, tier) > 3
    machine.check()
    answer = machine.manager.acquire(machine.prompt(MORE))
    assert (answer.verdict, answer.usable) == ("repair", 512)
    assert answer.decision is not None and f"promote_from_{tier}" in {step.option for step in answer.decision.plan}
    assert answer.hold is not None and answer.hold.confirm()
    for group, found in machine.read(answer.hold).items():
        assert found == [rows for (name, *_), rows in machine.written.items() if name == group], group
    answer.hold.release()
    machine.manager.housekeep()
    machine.check()
    assert machine.ask(MORE).verdict == "reuse"


def test_a_prefix_of_which_a_part_was_lost_below_comes_back_in_no_part(tmp_path: Path) -> None:
    """The manifest tells of all members; one that was set apart makes the others worthless."""
    machine = Machine(folder=tmp_path)
    machine.fill(TOKENS)
    machine.demote_all(TOKENS)
    lost = next(slot for slot in machine.manager.find(machine.prompt(TOKENS)) if slot.group.id == "csa_entries")
    assert machine.manager.quarantine(lost)
    answer = machine.ask(MORE)
    assert (answer.verdict, answer.usable) == ("recompute", 0)
    assert not machine.jobs
    machine.check()


def test_moved_rows_are_measured_before_they_are_used() -> None:
    """Defragmentation forgets the measurement, and the plan takes it anew."""
    machine = Machine(verify="use")
    machine.fill(TOKENS)
    machine.fill(prompt_tokens(512, seed=1))
    for slot in machine.manager.find(machine.prompt(TOKENS)):
        machine.manager.evict(slot)
    moved = {group for group in machine.memory.groups() if machine.manager.defragment(group)}
    assert moved
    machine.check()
    answer = machine.ask([*prompt_tokens(512, seed=1), 5])
    assert answer.verdict == "repair"
    assert answer.decision is not None
    assert {step.group for step in answer.decision.plan} == moved
    assert {step.option for step in answer.decision.plan} <= {"verify", "remap", "bounce"}
    assert machine.ask([*prompt_tokens(512, seed=1), 5]).verdict == "reuse"


def test_other_bytes_are_seen_where_every_use_is_measured_and_are_set_apart() -> None:
    """The confirmation fails, the segment is quarantined, and nobody is led to it again."""
    machine = Machine(verify="use")
    machine.fill(TOKENS)
    machine.damage("csa_entries")
    answer = machine.manager.acquire(machine.prompt(MORE))
    assert answer.hold is not None and not answer.hold.confirm()
    assert answer.hold.broken == "block_integrity/fingerprint_matches"
    answer.hold.release()
    assert machine.manager.housekeep()["quarantined"] == 1
    assert machine.ask(MORE).usable == 0
    assert machine.manager.discard_quarantined() == 1
    machine.check()


def test_other_bytes_are_not_seen_before_they_cross_tiers_where_only_that_is_measured() -> None:
    """What `tier_crossing` cannot see is said by this test: the hold is confirmed."""
    machine = Machine(verify="tier_crossing")
    machine.fill(TOKENS)
    machine.damage("csa_entries")
    answer = machine.manager.acquire(machine.prompt(MORE))
    assert answer.hold is not None and answer.hold.confirm()
    answer.hold.release()
    machine.demote_all(TOKENS)
    assert machine.ask(MORE).usable == 0


def test_a_stale_page_table_is_no_reason_to_read_another_block() -> None:
    """A table that leads elsewhere fails the mapping check at the look-up, and the confirmation afterwards."""
    machine = Machine()
    machine.fill(TOKENS)
    answer = machine.manager.acquire(machine.prompt(MORE))
    assert answer.hold is not None and answer.hold.confirm()
    slot = machine.slots("csa_entries")[0]
    right, slot.table = slot.table, ((slot.table[0][0] + 1, slot.table[0][1]), *slot.table[1:])
    assert not answer.hold.confirm()
    assert answer.hold.broken == "block_integrity/mapping_current"
    answer.hold.release()
    found = machine.ask(MORE)
    assert found.decision is not None and "csa_entries/mapping_current" in found.decision.failed
    slot.table = right
    assert machine.ask(MORE).verdict == "reuse"


def test_a_block_that_was_given_out_again_behind_the_back_is_not_read() -> None:
    """The block's serial number is not the one under which the segment got it."""
    machine = Machine()
    machine.fill(TOKENS)
    slot = machine.slots("window")[0]
    machine.manager.columns("window").give_out_again(slot.extent.blocks[0])
    answer = machine.ask(MORE)
    assert answer.decision is not None and "window/generation_current" in answer.decision.failed
    assert answer.usable == 0


def test_whoever_is_held_stays_and_whoever_waits_for_the_device_is_held() -> None:
    """Nothing demotes, evicts, moves or sets apart a leased segment, until the fence after the release is done."""
    machine = Machine()
    machine.fill(TOKENS)
    answer = machine.manager.acquire(machine.prompt(MORE))
    assert answer.hold is not None

    class Fence:
        complete = False

        def done(self) -> bool:
            return self.complete

        def wait(self) -> None:
            raise AssertionError("nobody waits")

    fence = Fence()

    def all_refused() -> bool:
        manager = machine.manager
        return not any(
            change(slot)
            for slot in manager.find(machine.prompt(TOKENS))
            for change in (manager.demote, manager.evict, manager.quarantine)
        )

    assert all_refused()
    answer.hold.release(fence)
    machine.manager.housekeep()
    assert all_refused()
    fence.complete = True
    assert machine.manager.housekeep()["drained"] == 1
    assert all(machine.manager.evict(slot) for slot in machine.manager.find(machine.prompt(TOKENS)))
    machine.check()
    assert machine.ask(MORE).verdict == "miss"


def test_room_is_made_by_sending_the_longest_unused_down_and_then_by_giving_it_up(tmp_path: Path) -> None:
    """Pools of five blocks hold two prompts; host memory holds another, and the disk the others."""
    machine = Machine(blocks=5, folder=tmp_path, host_bytes=300_000)
    for seed in range(6):
        assert machine.fill(prompt_tokens(512, seed=seed)) == "", seed
        machine.check()
    tiers = {slot.facts.tier for group in machine.memory.groups() for slot in machine.manager.slots(group)}
    assert tiers == {"device", "host", "disk"}
    for seed in range(6):
        answer = machine.ask([*prompt_tokens(512, seed=seed), 1])
        assert answer.usable in (0, 512), seed
        machine.manager.housekeep()
        machine.check()


def test_a_prompt_larger_than_the_pools_finds_no_room_and_takes_nothing() -> None:
    """Its writing is refused, and everybody else's segments stay."""
    machine = Machine(blocks=4, host_bytes=0)
    small = prompt_tokens(128, seed=1)
    assert machine.fill(small) == ""
    assert machine.fill(prompt_tokens(2048, seed=2)) == "no room"
    machine.check()
    assert machine.ask([*small, 1]).usable == 128


def test_what_the_disk_held_before_a_restart_is_found_again(tmp_path: Path) -> None:
    """A new manager over the same folder promotes what an earlier one stored, for the identity that stored it alone."""
    machine = Machine(folder=tmp_path)
    machine.fill(TOKENS)
    machine.demote_all(TOKENS, "disk")
    assert machine.store is not None
    machine.store.close()
    later = Machine(folder=tmp_path, verify="use")
    assert later.ask(MORE, salt="another").verdict == "miss"
    answer = later.manager.acquire(later.prompt(MORE))
    assert (answer.verdict, answer.usable) == ("repair", 512)
    assert answer.hold is not None and answer.hold.confirm()
    for group, found in later.read(answer.hold).items():
        assert found == [rows for (name, *_), rows in machine.written.items() if name == group], group
    answer.hold.release()
    later.check()


def test_a_shared_segment_outlives_its_first_owner() -> None:
    """Two owners of sealed blocks; they are free when both have gone."""
    machine = Machine()
    machine.fill(TOKENS)
    before = machine.manager.columns("csa_entries").free
    first = machine.slots("csa_entries")[0]
    second = machine.manager.share(first)
    assert second is not None
    machine.check()
    assert not machine.manager.defragment("csa_entries")
    assert machine.manager.evict(first)
    assert machine.ask(MORE).verdict == "reuse"
    assert machine.manager.evict(second)
    assert machine.manager.columns("csa_entries").free == before + 2
    machine.check()


def test_a_rolled_back_segment_is_found_no_more() -> None:
    """The rejected rows are cut off, and no key leads to what is left."""
    machine = Machine("gemma-3-27b")
    machine.fill(TOKENS)
    slot = machine.slots("global_kv" if "global_kv" in machine.memory.groups() else machine.memory.groups()[-1])[0]
    assert not machine.manager.rollback(slot, 600)
    assert machine.manager.rollback(slot, 300)
    assert slot.facts.end == 300
    machine.check()
    assert machine.ask(MORE).usable == 0


def test_a_prompt_or_setting_that_cannot_be_used_is_told_so() -> None:
    """Typed errors name what was got and what was expected."""
    machine = Machine()
    with pytest.raises(UsageError, match="no such fact of the request"):
        machine.prompt(TOKENS, salz="x")
    with pytest.raises(UsageError, match="a token cannot be used"):
        machine.prompt([-1])
    with pytest.raises(UsageError, match="bytes cannot be measured then"):
        Machine(verify="always")
    with pytest.raises(UsageError, match="the hash unit cannot be used"):
        Machine(unit=0)
    with pytest.raises(UsageError, match="no such group has blocks"):
        machine.manager.defragment("window_boundary")
