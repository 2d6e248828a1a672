"""Faults of parts that are gone while the others are there, and of segments between tiers."""

from __future__ import annotations

from collections.abc import Callable

from hitproof.engine.cache.slot import Slot
from hitproof.integrations.transformers.oracle.fault import Fault
from hitproof.integrations.transformers.oracle.stage import NotHere, Stage

__all__ = ["LOST"]

_YOUNG = 3
"""Tokens by which the older of two stored prompts is shorter."""


def _without(object_: str) -> Callable[[Stage], None]:
    """Stored whole, then everything of one object goes."""

    def lost(stage: Stage) -> None:
        stage.store(stage.shared)
        stage.lose(stage.slots(stage.shared, object_))

    return lost


def _young_end_lost(stage: Stage) -> None:
    stage.store(stage.shared[:-_YOUNG])
    older = set(stage.with_bytes(stage.shared[:-_YOUNG], read=False))
    stage.store(stage.shared)
    younger = [slot for slot in stage.with_bytes(stage.shared) if slot not in older]
    if not younger:
        raise NotHere("nothing was written for the youngest tokens")
    stage.lose(younger)


def _index_starts_late(stage: Stage) -> None:
    stage.store(stage.shared)
    for slot in stage.slots(stage.shared, "routing_index"):
        # What arrived was measured as it arrived: nothing is wrong with the bytes, only with what they cover.
        stage.write_as_meant(slot, _shifted(stage, slot, stage.read(slot)))
        slot.facts.start += int(slot.group.constants["ratio"])


def _index_shifted(stage: Stage) -> None:
    stage.store(stage.shared)
    for slot in stage.slots(stage.shared, "routing_index"):
        stage.write(slot, _shifted(stage, slot, stage.read(slot)))


def _shifted(stage: Stage, slot: Slot, rows: bytearray) -> bytes:
    """Every row in the place of the one before it, the first one last."""
    shape = stage.manager.memory.shape(slot.group.id)
    layer = len(rows) // shape.layers
    parts = [bytes(rows[place * layer : (place + 1) * layer]) for place in range(shape.layers)]
    return b"".join(part[shape.row_bytes :] + part[: shape.row_bytes] for part in parts)


def _demote(stage: Stage, slots: list[Slot]) -> None:
    """To host memory, and another prompt into the blocks."""
    if not all(stage.manager.demote(slot) for slot in slots):
        raise NotHere("it cannot be demoted")
    stage.cache.prefill(stage.tokens(len(stage.shared)))


def _demoted(stage: Stage) -> None:
    stage.store(stage.shared)
    _demote(stage, stage.with_bytes(stage.shared, read=False))


def _demoted_and_damaged(stage: Stage) -> None:
    stage.store(stage.shared)
    victim = stage.victim()
    _demote(stage, stage.with_bytes(stage.shared, read=False))
    memory = stage.manager.memory
    if victim.host is None:
        raise NotHere("nothing lies in host memory")
    content = bytearray(memory.payload(victim.host))
    content[len(content) // 2 :] = bytes(len(content) - len(content) // 2)
    memory.fill(victim.host, bytes(content))


def _partly_demoted(stage: Stage) -> None:
    stage.store(stage.shared)
    slots = stage.with_bytes(stage.shared)
    if len(slots) < 2:
        raise NotHere("it has one segment with bytes")
    # The half that is on the device still is what it was; the blocks of the other half are somebody else's.
    _demote(stage, slots[::2])


def _came_back_torn(stage: Stage) -> None:
    _demoted_and_damaged(stage)
    for slot in stage.manager.find(stage.prompt(stage.shared)):
        if slot.host is not None:
            stage.manager.promote(slot)
    stage.blind.note(stage.shared)


_PEERS = "measured on DeepSeek-V4 with transformers 5.24"

LOST = (
    Fault(
        "tail_buffer_dropped",
        "Entries and windows were kept, the compressor's unfinished rows were not.",
        _PEERS,
        _without("compressor_state"),
        inputs=True,
    ),
    Fault(
        "index_lost",
        "Entries came back from slower storage, their index keys did not.",
        "scenario 001; sgl-project/sglang#38031",
        _without("routing_index"),
        inputs=True,
    ),
    Fault(
        "index_starts_late",
        "The index arrived short of its first entry, and its keys lie one place early.",
        "scenario 002; sgl-project/sglang#30057",
        _index_starts_late,
        inputs=True,
    ),
    Fault(
        "index_shifted",
        "Every index key lies one entry off, with the top-k below the number of entries.",
        "measured on DeepSeek-V4 and V3.2 with transformers 5.24",
        _index_shifted,
        inputs=True,
    ),
    Fault(
        "entries_lost",
        "The pool of compressed entries gave its blocks to another prompt.",
        "scenario 054; ovg-project/kvcached#362",
        _without("compressed_global"),
        inputs=True,
    ),
    Fault(
        "window_lost",
        "The blocks of the window were given to another prompt, the history was not.",
        "DeepSeek-V4 report, zero retention; scenario 054",
        _without("uncompressed_tail"),
        inputs=True,
    ),
    Fault(
        "recurrence_lost",
        "The row of the recurrent state was given to another prompt, keys and values were not.",
        "vllm-project/vllm#56525; scenario 054",
        _without("recurrent_state"),
    ),
    Fault(
        "young_end_lost",
        "The youngest rows were given up, the older ones are there.",
        "scenario 006; vllm-project/vllm#17398",
        _young_end_lost,
        inputs=True,
    ),
    Fault(
        "demoted",
        "The prefix went to host memory, and its blocks to another prompt.",
        "article 3.5; scenario 027, ai-dynamo/dynamo#15079",
        _demoted,
    ),
    Fault(
        "partly_demoted",
        "Half of the segments went to host memory, and their blocks to another prompt.",
        "article 3.5; scenario 001",
        _partly_demoted,
    ),
    Fault(
        "demoted_and_damaged",
        "The prefix went to host memory, where half of its largest part was lost.",
        "scenario 029; NVIDIA/TensorRT-LLM#9056",
        _demoted_and_damaged,
    ),
    Fault(
        "came_back_torn",
        "The prefix came back from host memory; half of its largest part is not what it was.",
        "scenario 023; vllm-project/vllm#45704",
        _came_back_torn,
    ),
)
