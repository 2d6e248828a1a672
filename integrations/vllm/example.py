"""Serves two prompts twice and shows what the gate counted: `HITPROOF_VLLM=1 python example.py MODEL`.

MODEL is a folder or a name that vLLM can load and hitproof has cache groups for, such as Gemma 3. Without the flag the
same program runs with vLLM's own prefix cache.
"""

from __future__ import annotations

import sys

from vllm import LLM, SamplingParams


def main(model: str) -> None:
    """Serve, and print what vLLM's metrics say."""
    llm = LLM(model, enforce_eager=True, max_model_len=2048, skip_tokenizer_init=True, disable_log_stats=False)
    sampling = SamplingParams(temperature=0, max_tokens=4, detokenize=False, ignore_eos=True)
    for turn in ("first", "second"):
        for start in (5, 40):
            prompt = [start + place % 37 for place in range(400)]
            (done,) = llm.generate([{"prompt_token_ids": prompt}], sampling, use_tqdm=False)
            print(f"{turn} time: {done.num_cached_tokens} of {len(prompt)} tokens from the cache")
    for metric in llm.get_metrics():
        if metric.name in ("vllm:hitproof_tokens", "vllm:prefix_cache_hits"):
            print(metric.name, metric.labels.get("part", ""), metric.value)


if __name__ == "__main__":
    main(sys.argv[1])
