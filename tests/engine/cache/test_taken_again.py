"""Slots are taken again, and every use measures everything: no earlier life counts, nothing torn is missed."""

from __future__ import annotations

from tests.engine.cache.cases import Machine, prompt_tokens

TOKENS, OTHER = prompt_tokens(512), prompt_tokens(512, seed=5)
MORE = [*TOKENS, *prompt_tokens(88, seed=7)]


def test_a_slot_taken_again_tells_nothing_of_its_earlier_segment() -> None:
    """What is written after an eviction has the versions of its own prompt, and an index that fits its own entries."""
    machine = Machine()
    assert machine.fill(TOKENS, compressor_version="1", index_config="old") == ""
    for group in machine.memory.groups():
        for slot in machine.slots(group):
            assert machine.manager.evict(slot)
    assert machine.fill(OTHER, compressor_version="2", index_config="new") == ""
    slots = [slot for group in machine.memory.groups() for slot in machine.slots(group)]
    assert any(slot.incarnation > 1 for slot in slots)
    for slot in slots:
        for fact, value in (("compressor_version", "2"), ("index_config", "new")):
            assert fact not in slot.group.facts or getattr(slot.facts, fact) == value, slot
        if "kv_content" in slot.group.facts:
            (entries,) = machine.slots(slot.group.peers["kv"])
            assert (slot.facts.kv_content, slot.facts.kv_generation) == (
                entries.facts.recorded,
                entries.facts.generation,
            )
    answer = machine.ask([*OTHER, *prompt_tokens(8, seed=9)], compressor_version="2", index_config="new")
    assert (answer.verdict, answer.usable) == ("reuse", 512)


def test_a_confirmation_that_fails_has_measured_everything() -> None:
    """Two segments are torn: one confirmation finds both, so that the next plan reckons with both."""
    machine = Machine(verify="use")
    machine.fill(TOKENS)
    groups = [group for group in machine.memory.groups() if machine.slots(group)]
    torn = [machine.slots(group)[-1] for group in groups[::2]]
    assert len(torn) > 1
    for slot in torn:
        machine.damage(slot.group.id)
    answer = machine.manager.acquire(machine.prompt(MORE))
    assert answer.hold is not None
    held = {one.slot for one in answer.hold.reads()}
    assert held.issuperset(torn)
    assert not answer.hold.confirm()
    assert answer.hold.broken == "block_integrity/fingerprint_matches"
    assert {slot for slot in held if slot.suspect} == set(torn)
    answer.hold.release()
