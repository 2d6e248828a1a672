"""Faults of state that has gone on: another continuation, a crop, a rollback, a write after the commit."""

from __future__ import annotations

from hitproof.integrations.transformers.oracle.fault import Fault
from hitproof.integrations.transformers.oracle.stage import NotHere, Stage

__all__ = ["CONTINUED"]

_PEERS = "measured on five models with transformers 5.24"
_TAIL = 6
"""Rows of a window that a speculative continuation wrote."""


def _stale_window(stage: Stage) -> None:
    tokens = [*stage.shared, *stage.other]
    stage.store(tokens)
    stage.slots(tokens, "uncompressed_tail")


def _stale_recurrence(stage: Stage) -> None:
    tokens = [*stage.shared, *stage.other]
    stage.store(tokens)
    stage.slots(tokens, "recurrent_state")


def _cropped(stage: Stage) -> None:
    if "compressor_state" not in stage.objects:
        raise NotHere("its cache has no compressor; the library crops it rightly, or raises")
    extra = stage.other[:3]
    past = stage.run([*stage.shared, *extra])
    past.crop(-len(extra))
    stage.live = past
    stage.cache.keep(stage.shared, past)


def _rolled_back(stage: Stage) -> None:
    if "recurrent_state" not in stage.objects:
        raise NotHere("the model has no recurrent state")
    past = stage.run(stage.shared)
    past.activate_past_recording()
    extra = stage.other[:8]
    stage.run(extra, past)
    past.crop(-len(extra))
    stage.live = past
    stage.cache.keep(stage.shared, past)


def _state_of_other_length(stage: Stage) -> None:
    tokens = [*stage.shared, *stage.other]
    stage.store(tokens)
    stage.slots(tokens, "compressor_state")


def _stale_overlap(stage: Stage) -> None:
    stage.store(stage.shared)
    states = stage.slots(stage.shared, "compressor_state")
    # The last whole entry was of other tokens; nothing is unfinished here, so the overlap alone is stale.
    other = [*stage.shared[:-4], *stage.other[:4]]
    for slot in states:
        if slot.group.constants.get("overlap"):
            stage.write(slot, stage.rows_after(other, slot))


def _ring_written_on(stage: Stage) -> None:
    stage.store(stage.shared)
    for slot in stage.slots(stage.shared, "uncompressed_tail"):
        facts = slot.facts
        other = [*stage.shared[: facts.end - _TAIL], *stage.other[:_TAIL]]
        stage.write(slot, stage.rows_after(other, slot))
        facts.write_sequence += _TAIL


CONTINUED = (
    Fault(
        "stale_window",
        "The window's ring has slid on with another continuation; the tokens before it still match.",
        f"{_PEERS}; ggml-org/llama.cpp#13194",
        _stale_window,
    ),
    Fault(
        "stale_recurrence",
        "The recurrent state stands behind another continuation; the tokens before it still match.",
        f"{_PEERS}; vllm-project/vllm#56525",
        _stale_recurrence,
    ),
    Fault(
        "cropped_cache",
        "The library's cache was cropped inside the window; its compressor's rows and entries stayed.",
        f"DeepseekV4HCACache and DeepseekV4CSACache have no crop of their own; {_PEERS}",
        _cropped,
        shared=6,
        longer=0,
    ),
    Fault(
        "rolled_back_recurrence",
        "The library's cache was rolled back; keys and values went, the recurrent state did not.",
        f"past recording of linear-attention layers; {_PEERS}",
        _rolled_back,
    ),
    Fault(
        "state_of_other_length",
        "The compressor's running state is that of a longer prompt.",
        "sgl-project/sglang#35494",
        _state_of_other_length,
        shared=131,
        inputs=True,
    ),
    Fault(
        "stale_overlap",
        "The rows that the next entry overlaps with are those of another continuation.",
        f"{_PEERS}; sgl-project/sglang#35494",
        _stale_overlap,
        shared=132,
        inputs=True,
    ),
    Fault(
        "ring_written_on",
        "A speculative continuation wrote into the ring after it was committed.",
        "article 3.2 (write sequence number); scenario ring-written-after-commit",
        _ring_written_on,
    ),
)
