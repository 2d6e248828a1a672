"""Serves prompts and plants faults in one engine, and writes down what was answered: `serve_local MODE FOLDER`.

MODE is `off` (no prefix cache), `plain` (vLLM's own) or `gated` (with the flag set). Every stage asks the same in each
mode; only what is planted into a cache is left out where there is none.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

MODEL = "gemma3"


def main(mode: str, folder: Path) -> None:
    """Run all stages and write `MODE.json` into the folder."""
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    if mode == "gated":
        os.environ["HITPROOF_VLLM"] = "1"
    from vllm.lora.request import LoRARequest

    from tests.integrations.vllm import local_faults as faults
    from tests.integrations.vllm.serving import answers, core_of, engine, prompt, prompts
    from tests.integrations.vllm.tiny_models import make_adapter

    # Each mode has an adapter folder of its own: a fault replaces what lies in it.
    adapter = make_adapter(folder / f"adapter-{mode}", seed=1)
    llm = engine(folder / MODEL, caching=mode != "off", enable_lora=True, max_lora_rank=8)
    cached = mode != "off"
    told: dict[str, Any] = {}

    def fresh() -> None:
        llm.reset_prefix_cache()

    def stage(name: str, asked: list[list[int]], plant: Callable[[], None], *, in_cache: bool = True) -> None:
        """Serve, plant, serve again what is asked, then once more: by then the bad blocks must be gone."""
        fresh()
        answers(llm, asked)
        if cached or not in_cache:
            plant()
        told[name] = answers(llm, asked)
        told[f"{name}, again"] = answers(llm, asked)

    told["first time"] = answers(llm, prompts())
    told["second time"] = answers(llm, prompts())

    told["same batch"] = batch(llm, prompts())

    one, other, short = prompt(11, 300), prompt(12, 300), prompt(11, 200)

    def stale_windows() -> None:
        for group in range(3):
            faults.swap_entries(llm, one, other, group)

    stage("stale entries", [one, other], lambda: faults.swap_entries(llm, one, other))
    stage("stale window entries", [one, other], stale_windows)
    stage("torn", [one], lambda: faults.tear(llm, one, 3, 4))
    stage("torn window", [one], lambda: faults.tear(llm, one, 0, 8))
    stage("torn behind a boundary", [short, one], lambda: faults.tear(llm, one, 3, 8))
    stage("other layout", [one], lambda: faults.other_layout(llm, one, 3, 2))

    named = LoRARequest("tuned", 1, str(adapter))
    fresh()
    answers(llm, [one], lora=named)
    told["adapter"] = answers(llm, [one], lora=named)
    told["no adapter"] = answers(llm, [one])
    make_adapter(adapter, seed=2)
    reloaded = LoRARequest("tuned", 1, str(adapter), load_inplace=True)
    told["foreign adapter"] = answers(llm, [one], lora=reloaded)
    told["foreign adapter, again"] = answers(llm, [one], lora=named)

    stage("stale weights", [one], lambda: faults.change_weights(llm, 0.5), in_cache=False)

    if mode == "gated":
        told["counters"] = counted(core_of(llm))
    told["metrics"] = {
        f"{metric.name} {metric.labels.get('part', '')}".strip(): metric.value
        for metric in llm.get_metrics()
        if "prefix_cache" in metric.name or "hitproof" in metric.name
    }
    (folder / f"{mode}.json").write_text(json.dumps(told), "utf-8")


def batch(llm: Any, asked: list[list[int]]) -> list[dict[str, Any]]:
    """Prompts that nobody served yet, twice each and all at once."""
    from vllm import SamplingParams

    llm.reset_prefix_cache()
    sampling = SamplingParams(temperature=0, max_tokens=6, logprobs=1, detokenize=False, ignore_eos=True)
    done = llm.generate([{"prompt_token_ids": one} for one in asked * 2], sampling, use_tqdm=False)
    return [
        {
            "cached": one.num_cached_tokens,
            "tokens": list(one.outputs[0].token_ids),
            "chosen": [
                step[token].logprob
                for step, token in zip(one.outputs[0].logprobs, one.outputs[0].token_ids, strict=True)
            ],
        }
        for one in done
    ]


def counted(core: Any) -> dict[str, int]:
    """The gate's own counters."""
    counters = core.hitproof.gate.counters
    return {name: getattr(counters, name) for name in ("touched", "logical", "effective", "recomputed")}


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
