"""Faults that are done on purpose: to bytes, blocks and tables of what was stored well."""

from __future__ import annotations

from hitproof.engine.cache.slot import Slot
from hitproof.integrations.transformers.oracle.fault import Fault
from hitproof.integrations.transformers.oracle.stage import NotHere, Stage
from hitproof.spec.memory import Extent

__all__ = ["DAMAGED"]

_SALT = "another tenant"


def _victim(stage: Stage) -> Slot:
    stage.store(stage.shared)
    return stage.victim()


def _torn_turn(stage: Stage) -> None:
    older = stage.shared[: len(stage.shared) // 2]
    stage.store(older)
    before = set(stage.with_bytes(older))
    stage.store(stage.shared)
    for slot in stage.with_bytes(stage.shared):
        if slot not in before:
            stage.write(slot, bytes(len(stage.read(slot))))


def _torn(stage: Stage) -> None:
    slot = _victim(stage)
    content = stage.read(slot)
    content[len(content) // 2 :] = bytes(len(content) - len(content) // 2)
    stage.write(slot, content)


def _bit_flip(stage: Stage) -> None:
    slot = _victim(stage)
    content = stage.read(slot)
    # The highest bit of an exponent, little endian: one bit below the sign.
    for place in range(3, len(content), len(content) // 8 // 4 * 4):
        content[place] ^= 0x40
    stage.write(slot, content)


def _lost_write(stage: Stage) -> None:
    slot = _victim(stage)
    stage.write(slot, bytes(len(stage.read(slot))))


def _of_another_prompt(stage: Stage, slot: Slot) -> Slot:
    """A segment of the same group that another prompt stores."""
    other = stage.tokens(len(stage.shared))
    stage.store(other)
    for one in stage.with_bytes(other):
        if one.group is slot.group and one is not slot:
            return one
    raise NotHere("the group has one segment")


def _swapped(stage: Stage) -> None:
    slot = _victim(stage)
    elsewhere = _of_another_prompt(stage, slot)
    memory = stage.manager.memory
    first, second = (
        Extent(slot.group.id, (one.table[0][0],), memory.shape(slot.group.id).rows) for one in (slot, elsewhere)
    )
    contents = memory.read(first), memory.read(second)
    memory.write(first, 0, contents[1])
    memory.write(second, 0, contents[0])


def _wrong_object(stage: Stage) -> None:
    slot = _victim(stage)
    stage.write(slot, stage.rows_after(stage.tokens(len(stage.shared)), slot))


def _given_out_again(stage: Stage) -> None:
    slot = _victim(stage)
    if slot.extent is None:
        raise NotHere("nothing is stored")
    block = slot.extent.blocks[0]
    stage.manager.columns(slot.group.id).give_out_again(block)
    stage.manager.memory.poison(slot.group.id, [block])


def _stale_table(stage: Stage) -> None:
    slot = _victim(stage)
    elsewhere = _of_another_prompt(stage, slot)
    serial = slot.table[0][1]
    slot.table = ((elsewhere.table[0][0], serial), *slot.table[1:])


def _moved_wrongly(stage: Stage) -> None:
    slot = _victim(stage)
    content = stage.read(slot)
    half = len(content) // 2
    stage.write(slot, content[:half] + content[:half] + content[2 * half :])
    slot.facts.measured = None


def _odd_address(stage: Stage) -> None:
    slot = _victim(stage)
    slot.facts.address += 4


def _other_tenant(stage: Stage) -> None:
    stage.store(stage.shared)
    stage.facts = {"salt": _SALT}


DAMAGED = (
    Fault("torn_copy", "The second half of a segment was never copied.", "article 5.1 (checksum)", _torn, False),
    Fault("torn_turn", "The younger of two turns was never copied.", "article 5.1 (checksum)", _torn_turn, False),
    Fault("bit_flip", "Bits of exponents flipped on the device.", "soak of the cache manager", _bit_flip, False),
    Fault("lost_write", "A write never reached the device.", "soak of the cache manager", _lost_write, False),
    Fault(
        "swapped_blocks", "Two prompts' blocks lie in each other's place.", "soak of the cache manager", _swapped, False
    ),
    Fault(
        "wrong_object",
        "The blocks hold another prompt's rows.",
        "scenario 054; soak of the cache manager",
        _wrong_object,
        False,
    ),
    Fault(
        "given_out_again",
        "The allocator gave a block out a second time.",
        "article 5.1 (write generation); scenario 054",
        _given_out_again,
        False,
    ),
    Fault(
        "stale_table",
        "The page table leads to another prompt's block.",
        "article 3.5 (page table mappings)",
        _stale_table,
        False,
    ),
    Fault(
        "moved_wrongly",
        "Rows were moved and did not arrive; nobody measured them since.",
        "scenario 057; ggml-org/llama.cpp#12253",
        _moved_wrongly,
        False,
    ),
    Fault(
        "odd_address",
        "A segment's first row lies four bytes off its alignment.",
        "scenario 045; LMCache/LMCache#4364",
        _odd_address,
        False,
        unobservable="rows are gathered by ordinary loads on a CPU, which read any address; only kernels do not",
    ),
    Fault(
        "other_tenant",
        "Another tenant asks for the same tokens.",
        "scenario 036; sgl-project/sglang#26747",
        _other_tenant,
        False,
        unobservable="equal tokens under equal weights have equal state; what leaks is that they were asked before",
    ),
)
