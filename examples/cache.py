"""A cache manager over host memory: a prompt is written, demoted, found again, recovered and read."""

from __future__ import annotations

from hitproof.engine import load
from hitproof.engine.cache import CacheManager, PlainMemory, Prompt
from hitproof.rules.profiles import load_profile
from hitproof.rules.profiles.slim import slimmed
from hitproof.spec.repair import RepairJob, RepairOutcome

engine = load(slimmed(load_profile("gemma-3-27b"), layers=1))
memory = PlainMemory(engine.bound, blocks=64)
of_the_request = ("weights", "attention_config", "adapter", "media", "salt", "window_version", "separators", "skipped")
identity = dict.fromkeys(of_the_request, "mine")


def compute(job: RepairJob) -> RepairOutcome:
    """What a framework would compute; this example only copies."""
    return RepairOutcome("failed", {}, f"no model runs '{job.request.repair}' here")


manager = CacheManager(engine, memory, compute, host_bytes=2**26, request=identity, verify="use")


def serve(title: str, tokens: list[int]) -> Prompt:
    """Reuse what may be reused, write the rest, and let others find it."""
    prompt = manager.prompt(tokens)
    answer = manager.acquire(prompt)
    repairs = [f"{step.group}/{step.option}" for step in answer.decision.plan] if answer.decision else []
    print(f"{title}: {answer.verdict}, {answer.usable} of {len(tokens)} tokens", *repairs)
    if answer.hold is not None:
        writing = manager.begin(prompt, answer.hold)
        if writing is not None:
            for group, places in writing.extents.items():
                for _, _, extent in places:
                    writing.put(extent, 0, bytes(memory.shape(group).payload_bytes(extent.rows)))
            if answer.hold.confirm():
                writing.commit()
            writing.abort()
        answer.hold.release()
    return prompt


question = list(range(500))
first = serve("first", question)
serve("second turn", question + list(range(1000, 1100)))
print("demoted:", sum(manager.demote(slot) for slot in manager.find(first)), "segments")
serve("after demotion", question + list(range(2000, 2100)))
serve("once more", question + list(range(3000, 3100)))
manager.housekeep()
manager.check_integrity()
