"""An engine of vLLM in this process, prompts for it, and what it answers, as plain data."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

from tests.integrations.vllm.tiny_models import VOCABULARY

__all__ = ["BLOCK", "answers", "core_of", "engine", "prompt", "prompts"]

BLOCK = 32
"""The smallest block of vLLM's attention on a CPU, in tokens."""


def engine(model: Path, *, caching: bool, **given: Any) -> Any:
    """A whole `LLM()` on a CPU, with its core in this process unless the environment says otherwise."""
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    from vllm import LLM

    settings: dict[str, Any] = {
        "skip_tokenizer_init": True,
        "enforce_eager": True,
        "dtype": "float32",
        "max_model_len": 2048,
        "block_size": BLOCK,
        "num_gpu_blocks_override": 512,
        "max_num_seqs": 4,
        "max_logprobs": VOCABULARY,
        "disable_log_stats": False,
        "enable_prefix_caching": caching,
        "seed": 0,
    }
    return LLM(str(model), **{**settings, **given})


def core_of(llm: Any) -> Any:
    """The engine's core, where it runs in this process."""
    return llm.llm_engine.engine_core.engine_core


def prompt(seed: int, length: int) -> list[int]:
    """Random tokens; a prompt of the same seed is a prefix of every longer one."""
    draw = random.Random(seed)
    return [draw.randrange(3, VOCABULARY) for _ in range(length)]


def prompts() -> list[list[int]]:
    """A set with prefixes in common: whole, longer, cut, and with another end."""
    return [
        prompt(1, 300),
        prompt(1, 420),
        prompt(1, 200) + prompt(2, 77),
        prompt(3, 97),
        prompt(3, 96),
        prompt(4, 513),
        prompt(4, 500) + prompt(5, 60),
        prompt(6, 31),
    ]


def answers(llm: Any, asked: list[list[int]], **given: Any) -> list[dict[str, Any]]:
    """What is answered to each prompt, one after the other: reused tokens, answer, and the whole first distribution.

    Returns:
        By prompt: `cached` in tokens, `tokens`, `chosen` with the log-probability of each, `first` by token.
    """
    from vllm import SamplingParams

    sampling = SamplingParams(temperature=0, max_tokens=6, logprobs=VOCABULARY, detokenize=False, ignore_eos=True)
    told = []
    for tokens in asked:
        (done,) = llm.generate(
            [{"prompt_token_ids": tokens, **given.get("extra", {})}],
            sampling,
            use_tqdm=False,
            lora_request=given.get("lora"),
        )
        answer = done.outputs[0]
        first = {token: entry.logprob for token, entry in answer.logprobs[0].items()}
        told.append(
            {
                "cached": done.num_cached_tokens,
                "tokens": list(answer.token_ids),
                "chosen": [step[token].logprob for step, token in zip(answer.logprobs, answer.token_ids, strict=True)],
                "first": [first[token] for token in range(VOCABULARY)],
            }
        )
    return told
