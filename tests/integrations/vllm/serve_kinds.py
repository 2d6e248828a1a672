"""Serves other tiny models with the gate, each prompt computed and then reused: `serve_kinds MODEL FOLDER`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any


def main(model: str, folder: Path) -> None:
    """Serve, and write `kinds-MODEL.json` into the folder."""
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    os.environ["HITPROOF_VLLM"] = "1"
    from tests.integrations.vllm import local_faults as faults
    from tests.integrations.vllm.serving import answers, core_of, engine, prompt, prompts
    from tests.integrations.vllm.tiny_models import make_gpt_oss, make_llama

    made = {"gpt_oss": make_gpt_oss, "llama": make_llama}[model](folder / model)
    llm = engine(made, caching=True)
    told: dict[str, Any] = {"computed": [], "groups": sorted(core_of(llm).hitproof.gate.groups.values())}
    for tokens in prompts():
        llm.reset_prefix_cache()
        told["computed"] += answers(llm, [tokens])
    answers(llm, prompts())
    told["reused"] = answers(llm, prompts())
    one = prompt(11, 300)
    told["torn, computed"] = answers(llm, [one])
    faults.tear(llm, one, len(told["groups"]) - 1, 4)
    told["torn"] = answers(llm, [one])
    (folder / f"kinds-{model}.json").write_text(json.dumps(told), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
