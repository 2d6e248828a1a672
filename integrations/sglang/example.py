"""Serves two prompts twice and shows what the gate counted; takes SGLang's own options.

python example.py --model-path MODEL --radix-cache-backend hitproof
"""

from __future__ import annotations

import sys

import sglang
from sglang.srt.server_args import prepare_server_args


def main() -> None:
    """Start an engine as the command line says, and serve."""
    engine = sglang.Engine(server_args=prepare_server_args(sys.argv[1:]))
    try:
        for turn in ("first", "second"):
            for start in (5, 40):
                prompt = [start + place % 37 for place in range(160)]
                answer = engine.generate(input_ids=prompt, sampling_params={"max_new_tokens": 4, "temperature": 0.0})
                print(f"{turn} time: {answer['meta_info']['cached_tokens']} of {len(prompt)} tokens from the cache")
        for state in engine.get_server_info()["internal_states"]:
            counted = state["hitproof"]
            print(f"logical {counted['logical_rate']:.0%}, effective {counted['effective_rate']:.0%}")
    finally:
        engine.shutdown()


if __name__ == "__main__":
    main()
