"""Serves prompts from a folder of pages in which faults are planted: `serve_pages MODE FOLDER`.

MODE is `off` (neither cache nor folder), `trusting` (pages are taken for what their names say) or `gated`.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

MODEL = "gemma3"


def main(mode: str, folder: Path) -> None:
    """Run all stages and write `pages-MODE.json` into the folder."""
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    given: dict[str, Any] = {"caching": False}
    pages = folder / f"pages-{mode}"
    if mode != "off":
        os.environ["HITPROOF_VLLM"] = "1"
        from vllm.config import KVTransferConfig

        ours = ("HitproofConnector", "hitproof.integrations.vllm.connector")
        trusting = ("TrustingConnector", "tests.integrations.vllm.page_faults")
        name, module = ours if mode == "gated" else trusting
        transfer = KVTransferConfig(
            kv_connector=name,
            kv_connector_module_path=module,
            kv_role="kv_both",
            kv_load_failure_policy="recompute",
            kv_connector_extra_config={"folder": str(pages)},
        )
        given = {"caching": True, "kv_transfer_config": transfer}
    from vllm.lora.request import LoRARequest

    from tests.integrations.vllm import local_faults
    from tests.integrations.vllm import page_faults as faults
    from tests.integrations.vllm.serving import answers, engine, prompt, prompts
    from tests.integrations.vllm.tiny_models import make_adapter

    adapter = make_adapter(folder / "adapter-pages", seed=1)
    llm = engine(folder / MODEL, enable_lora=True, max_lora_rank=8, **given)
    stored = mode != "off"
    told: dict[str, Any] = {}

    def stage(name: str, asked: list[list[int]], plant: Any = None, **served: Any) -> None:
        """Serve, forget what is local, plant, and serve from the folder, twice."""
        llm.reset_prefix_cache()
        shutil.rmtree(pages, ignore_errors=True)
        pages.mkdir()
        answers(llm, asked, **served)
        if plant is not None and stored:
            plant()
        llm.reset_prefix_cache()
        told[name] = answers(llm, asked)
        llm.reset_prefix_cache()
        told[f"{name}, again"] = answers(llm, asked)

    stage("clean", prompts())
    one, other = prompt(11, 300), prompt(12, 300)
    stage("torn", [one], lambda: faults.tear(llm, faults.pages_of(llm, one)[-1]))
    stage(
        "foreign prompt",
        [one, other],
        lambda: faults.put_in_place_of(llm, faults.pages_of(llm, one), faults.pages_of(llm, other)),
    )

    def other_layout() -> None:
        for page in faults.pages_of(llm, one):
            faults.as_other_layout(llm, page)

    stage("other layout", [one], other_layout)
    tuned = LoRARequest("tuned", 1, str(adapter))
    # Pages of an adapter are saved from its second step on.
    answers(llm, [other], lora=tuned)
    stage(
        "foreign adapter",
        [one],
        lambda: faults.put_in_place_of(llm, faults.pages_of(llm, one), faults.pages_of(llm, one, tuned)),
        lora=tuned,
    )
    if mode != "trusting":
        stage("cut", [one], lambda: faults.cut(llm, faults.pages_of(llm, one)[-1]))

    before = faults.pages_of(llm, one) if stored else []
    kept = folder / f"kept-{mode}"

    def keep() -> None:
        shutil.copytree(pages, kept, dirs_exist_ok=True)

    stage("old weights, fresh", [one], keep)
    local_faults.change_weights(llm, 0.5)

    def old_pages() -> None:
        for want, old in zip(faults.pages_of(llm, one), before, strict=True):
            place = pages / want.key[:2] / want.key
            place.parent.mkdir(exist_ok=True)
            shutil.copyfile(kept / old.key[:2] / old.key, place)

    stage("stale weights", [one], old_pages)
    told["metrics"] = {
        f"{metric.name} {metric.labels.get('part', '')}".strip(): metric.value
        for metric in llm.get_metrics()
        if "prefix_cache" in metric.name or "hitproof" in metric.name
    }
    (folder / f"pages-{mode}.json").write_text(json.dumps(told), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
