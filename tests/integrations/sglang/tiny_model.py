"""A tiny Gemma 4 with random weights: two window layers, two full ones, no tied weights."""

from __future__ import annotations

import json
from pathlib import Path

__all__ = ["PAGE", "VOCABULARY", "WINDOW", "make_adapter", "make_model"]

VOCABULARY = 256
WINDOW = 32
PAGE = 16
LAYERS = 4
RANK = 4


def make_model(folder: Path, seed: int = 0) -> Path:
    """Write configuration and weights.

    Args:
        folder: Where to.
        seed: Of the weights.
    """
    import torch
    from transformers import Gemma4ForCausalLM, Gemma4TextConfig

    torch.manual_seed(seed)
    config = Gemma4TextConfig(
        vocab_size=VOCABULARY,
        vocab_size_per_layer_input=VOCABULARY,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=LAYERS,
        layer_types=["sliding_attention", "full_attention"] * (LAYERS // 2),
        sliding_window=WINDOW,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        global_head_dim=16,
        hidden_size_per_layer_input=0,
        num_kv_shared_layers=0,
        max_position_embeddings=2048,
        tie_word_embeddings=False,
        initializer_range=0.2,
    )
    Gemma4ForCausalLM(config).float().save_pretrained(folder)
    place = folder / "config.json"
    # The library drops keys that published configurations have and SGLang reads.
    heads = {"global_head_dim": 16, "swa_num_key_value_heads": 2, "swa_head_dim": 16, "swa_v_head_dim": 16}
    place.write_text(json.dumps({**json.loads(place.read_text()), **heads}))
    return folder


def make_adapter(folder: Path, seed: int = 1) -> Path:
    """Write a LoRA adapter that changes the values of every layer.

    Args:
        folder: Where to.
        seed: Of its weights.
    """
    import torch
    from safetensors.torch import save_file

    generator = torch.Generator().manual_seed(seed)
    named = {}
    for layer in range(LAYERS):
        for target, width in (("q_proj", 64), ("k_proj", 32), ("v_proj", 32)):
            place = f"base_model.model.model.layers.{layer}.self_attn.{target}"
            named[f"{place}.lora_A.weight"] = torch.randn(RANK, 64, generator=generator) * 0.2
            named[f"{place}.lora_B.weight"] = torch.randn(width, RANK, generator=generator) * 0.2
    folder.mkdir()
    save_file(named, folder / "adapter_model.safetensors")
    config = {
        "peft_type": "LORA",
        "base_model_name_or_path": "",
        "r": RANK,
        "lora_alpha": 2 * RANK,
        "target_modules": ["q_proj", "k_proj", "v_proj"],
        "bias": "none",
        "task_type": "CAUSAL_LM",
    }
    (folder / "adapter_config.json").write_text(json.dumps(config))
    return folder
