"""Serves a tiny model in a whole SGLang engine, with faults planted in its cache, and writes down what came out.

Run as `python -m tests.integrations.sglang.serve_story OUT.json [hitproof]`, with SGLang and `plain_cpu` installed.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hitproof.integrations.sglang.metrics import METRIC
from tests.integrations.sglang.plain_cpu.plain_cpu.faults import FAULTS, NAMELESS, PLANT
from tests.integrations.sglang.tiny_model import PAGE, VOCABULARY, make_adapter, make_model

TOKENS = 6
LENGTHS = (100, 130, 49, 200)
ON_A_CPU: dict[str, Any] = {
    "skip_tokenizer_init": True,
    "device": "cpu",
    "dtype": "float32",
    "page_size": PAGE,
    "max_total_tokens": 2048,
    "max_running_requests": 4,
    "attention_backend": "triton",
    "sampling_backend": "pytorch",
    "grammar_backend": "none",
    "disable_cuda_graph": True,
    "disable_overlap_schedule": True,
    "skip_server_warmup": True,
    "log_level": "warning",
}
"""SGLang's options for a tiny model on a machine without an accelerator."""


def prompts(vocabulary: int) -> list[list[int]]:
    """Prompts of many tokens: the second begins as the first does, the others as none."""
    made = [
        [(7 * place + 31 * index + place * place % 11) % vocabulary for place in range(n)]
        for index, n in enumerate(LENGTHS)
    ]
    made[1][:80] = made[0][:80]
    return made


def served(engine: Any, prompt: Sequence[int], **more: Any) -> dict[str, Any]:
    """One request: tokens, their log-probabilities, how many prompt tokens came from the cache, and the time."""
    began = time.perf_counter()
    answer = engine.generate(
        input_ids=list(prompt),
        sampling_params={"max_new_tokens": TOKENS, "temperature": 0.0, "ignore_eos": True},
        return_logprob=True,
        top_logprobs_num=8,
        **more,
    )
    took = time.perf_counter() - began
    meta = answer["meta_info"]
    tops = [{str(token): value for value, token, _ in place} for place in meta["output_top_logprobs"]]
    return {"tokens": answer["output_ids"], "tops": tops, "cached": meta["cached_tokens"], "took": took}


def flush(engine: Any) -> None:
    """Empty the cache, once the scheduler has put the last request away."""
    while not engine.flush_cache().success:
        time.sleep(0.05)


def exported() -> dict[str, float]:
    """Samples of the gate's counter in SGLang's Prometheus metrics, by part."""
    from prometheus_client import CollectorRegistry
    from prometheus_client.multiprocess import MultiProcessCollector

    registry = CollectorRegistry()
    MultiProcessCollector(registry)
    samples = [sample for metric in registry.collect() for sample in metric.samples]
    return {sample.labels["part"]: sample.value for sample in samples if sample.name == f"{METRIC}_total"}


def replaced(engine: Any, prompt: Sequence[int], other: Path) -> dict[str, Any]:
    """The weights are replaced while serving, and the cache that the old ones filled is kept."""
    from sglang.srt.managers.io_struct import UpdateWeightFromDiskReqInput

    flush(engine)
    told = {"warm": served(engine, prompt)}
    asked = UpdateWeightFromDiskReqInput(model_path=str(other), flush_cache=False)
    engine.loop.run_until_complete(engine.tokenizer_manager.update_weights_from_disk(asked, None))
    told["struck"] = served(engine, prompt)
    told["after"] = served(engine, prompt)
    flush(engine)
    return {**told, "cold": served(engine, prompt)}


def story(engine: Any, plant: Path, other: Path, vocabulary: int) -> dict[str, Any]:
    """Cold answers, a set of prompts served twice, and each fault planted in a warm cache."""
    asked = prompts(vocabulary)
    told: dict[str, Any] = {"cold": [], "faults": {}}
    for prompt in asked:
        flush(engine)
        told["cold"].append(served(engine, prompt))
    flush(engine)
    told["first"] = [served(engine, prompt) for prompt in asked]
    told["second"] = [served(engine, prompt) for prompt in asked]
    told["state"] = engine.get_server_info()["internal_states"][0].get("hitproof")
    told["repeats"] = [served(engine, asked[3])["took"] for _ in range(40)]
    for fault in FAULTS:
        flush(engine)
        if fault == NAMELESS:
            # It strikes the writer: what the adapter computes is filed as if nobody's.
            plant.write_text(fault)
            warm = served(engine, asked[0], lora_path="other")
        else:
            warm = served(engine, asked[0])
            plant.write_text(fault)
        told["faults"][fault] = {"warm": warm, "struck": served(engine, asked[0]), "after": served(engine, asked[0])}
    told["metrics"] = exported()
    told["state_after"] = engine.get_server_info()["internal_states"][0].get("hitproof")
    told["weights"] = replaced(engine, asked[3], other)
    return told


def main(out: Path, backend: str | None) -> None:
    """Build the model and the engine, tell the story, write it down."""
    import sglang

    with tempfile.TemporaryDirectory() as scratch:
        plant = Path(scratch) / "plant"
        os.environ[PLANT] = str(plant)
        os.environ["SGLANG_PLATFORM"] = "plain_cpu"
        engine = sglang.Engine(
            model_path=str(make_model(Path(scratch) / "model")),
            radix_cache_backend=backend,
            enable_metrics=True,
            enable_lora=True,
            lora_paths={"other": str(make_adapter(Path(scratch) / "adapter"))},
            lora_backend="torch_native",
            **ON_A_CPU,
        )
        try:
            out.write_text(json.dumps(story(engine, plant, make_model(Path(scratch) / "other", seed=1), VOCABULARY)))
        finally:
            engine.shutdown()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None)
