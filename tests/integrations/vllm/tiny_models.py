"""Tiny models with random weights that mix kinds of attention, and tiny adapters for them, as files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

__all__ = ["VOCABULARY", "WINDOW", "make_adapter", "make_gemma3", "make_gpt_oss", "make_llama"]

VOCABULARY = 512
WINDOW = 64
_LAYERS = ["sliding_attention", "sliding_attention", "sliding_attention", "full_attention"]


def make_gemma3(folder: Path) -> Path:
    """Three layers with a window and one without. Untied weights, so that outputs vary."""
    from transformers import Gemma3ForCausalLM, Gemma3TextConfig

    config = Gemma3TextConfig(
        vocab_size=VOCABULARY,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=64,
        sliding_window=WINDOW,
        max_position_embeddings=4096,
        tie_word_embeddings=False,
        layer_types=_LAYERS,
        query_pre_attn_scalar=64,
    )
    return _saved(Gemma3ForCausalLM, config, folder)


def make_gpt_oss(folder: Path) -> Path:
    """Two layers with a window and two without, with sinks and experts."""
    from transformers import GptOssConfig, GptOssForCausalLM

    config = GptOssConfig(
        vocab_size=VOCABULARY,
        hidden_size=128,
        intermediate_size=128,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=64,
        sliding_window=WINDOW,
        max_position_embeddings=4096,
        tie_word_embeddings=False,
        num_local_experts=4,
        num_experts_per_tok=2,
        layer_types=["sliding_attention", "full_attention"] * 2,
    )
    return _saved(GptOssForCausalLM, config, folder)


def make_llama(folder: Path) -> Path:
    """One kind of attention, so that vLLM keeps a single group."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=64,
        max_position_embeddings=4096,
        tie_word_embeddings=False,
    )
    return _saved(LlamaForCausalLM, config, folder)


def _saved(kind: Any, config: Any, folder: Path) -> Path:
    torch.manual_seed(0)
    model = kind(config)
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(torch.randn_like(weight) * (0.08 if weight.dim() > 1 else 0.1))
    model.to(torch.float32).save_pretrained(folder)
    return folder


def make_adapter(folder: Path, seed: int) -> Path:
    """An adapter of rank 8 for the Gemma 3 above; another seed gives other weights under the same file names."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    draw = torch.Generator().manual_seed(seed)
    tensors = {}
    for layer in range(4):
        for name, (wide, out) in {"q_proj": (128, 256), "v_proj": (128, 128)}.items():
            prefix = f"base_model.model.model.layers.{layer}.self_attn.{name}"
            tensors[f"{prefix}.lora_A.weight"] = torch.randn(8, wide, generator=draw) * 0.1
            tensors[f"{prefix}.lora_B.weight"] = torch.randn(out, 8, generator=draw) * 0.1
    save_file(tensors, folder / "adapter_model.safetensors")
    settings = {
        "r": 8,
        "lora_alpha": 16,
        "target_modules": ["q_proj", "v_proj"],
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": "tiny",
        "bias": "none",
        "lora_dropout": 0.0,
    }
    (folder / "adapter_config.json").write_text(json.dumps(settings), "utf-8")
    return folder
