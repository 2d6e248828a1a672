"""Serves prompts as `vllm serve` does, engine and worker in processes of their own.

To be run as `serve_async MODE FOLDER SCHEDULING`. MODE is `off` (no prefix cache), `plain` or `gated`, SCHEDULING is
`sync` or `async`. Nothing of hitproof is imported here: the flag in the environment is all that may turn it on.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any


async def main(flag: str, folder: Path, scheduling: str) -> None:
    """Serve a prompt set twice, all at once, and write `async-MODE.json` into the folder."""
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    if flag == "gated":
        os.environ["HITPROOF_VLLM"] = "1"
    from prometheus_client import REGISTRY
    from vllm import AsyncEngineArgs, SamplingParams
    from vllm.v1.engine.async_llm import AsyncLLM

    from tests.integrations.vllm.serving import BLOCK, prompts

    settings = AsyncEngineArgs(
        model=str(folder / "gemma3"),
        skip_tokenizer_init=True,
        enforce_eager=True,
        dtype="float32",
        max_model_len=2048,
        block_size=BLOCK,
        num_gpu_blocks_override=512,
        max_num_seqs=4,
        seed=0,
        async_scheduling=scheduling == "async",
        enable_prefix_caching=flag != "off",
        worker_extension_cls="tests.integrations.vllm.worker_tools.WorkerTools",
    )
    engine = AsyncLLM.from_engine_args(settings)
    sampling = SamplingParams(temperature=0, max_tokens=40, logprobs=1, detokenize=False, ignore_eos=True)

    async def ask(name: str, tokens: list[int]) -> dict[str, Any]:
        *_, done = [told async for told in engine.generate({"prompt_token_ids": tokens}, sampling, name)]
        answer = done.outputs[0]
        chosen = [step[token].logprob for step, token in zip(answer.logprobs, answer.token_ids, strict=True)]
        return {"cached": done.num_cached_tokens, "tokens": list(answer.token_ids), "chosen": chosen}

    told: dict[str, Any] = {}
    for turn in ("first", "second"):
        asked = enumerate(prompts())
        told[turn] = await asyncio.gather(*(ask(f"{turn}-{index}", tokens) for index, tokens in asked))
    await engine.collective_rpc("add_to_norms", args=(0.5,))
    asked = enumerate(prompts())
    told["other weights"] = await asyncio.gather(*(ask(f"third-{index}", tokens) for index, tokens in asked))
    told["metrics"] = {
        f"{sample.name} {sample.labels.get('part', '')}".strip(): sample.value
        for metric in REGISTRY.collect()
        for sample in metric.samples
        if "prefix_cache" in sample.name or "hitproof" in sample.name
    }
    engine.shutdown()
    (folder / f"async-{flag}.json").write_text(json.dumps(told), "utf-8")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3]))
