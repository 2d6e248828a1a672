"""Small configurations of the shipped models and of further families, written from the public keys and figures."""

from __future__ import annotations

from typing import Any

__all__ = ["ALL", "FURTHER", "NEMOTRON_H", "SHIPPED_CONFIGS"]

Config = dict[str, Any]


def _nested(model_type: str, text: Config, **outer: Any) -> Config:
    return {"model_type": model_type, "dtype": "bfloat16", "text_config": text, **outer}


_VISION = {"vision_config": {"hidden_size": 1152}}

V4_FLASH: Config = {
    "model_type": "deepseek_v4",
    "torch_dtype": "bfloat16",
    "num_hidden_layers": 43,
    "hidden_size": 4096,
    "num_nextn_predict_layers": 1,
    "num_key_value_heads": 1,
    "head_dim": 512,
    "qk_rope_head_dim": 64,
    "sliding_window": 128,
    "index_head_dim": 128,
    "index_topk": 512,
    "compress_ratios": [0, 0, *[4, 128] * 20, 4, 0],
}
V4_PRO = V4_FLASH | {
    "num_hidden_layers": 61,
    "hidden_size": 7168,
    "index_topk": 1024,
    "compress_ratios": [128, 128, *[4, 128] * 29, 4, 0],
}
V32: Config = {
    "model_type": "deepseek_v32",
    "torch_dtype": "bfloat16",
    "num_hidden_layers": 61,
    "hidden_size": 7168,
    "num_nextn_predict_layers": 1,
    "kv_lora_rank": 512,
    "qk_rope_head_dim": 64,
    "index_head_dim": 128,
    "index_topk": 2048,
}
GEMMA3_27B = _nested(
    "gemma3",
    {
        "model_type": "gemma3_text",
        "num_hidden_layers": 62,
        "hidden_size": 5376,
        "num_attention_heads": 32,
        "num_key_value_heads": 16,
        "head_dim": 128,
        "sliding_window": 1024,
    },
    **_VISION,
)
# The 4B model's file leaves heads and widths to the library.
GEMMA3_4B = _nested(
    "gemma3",
    {"model_type": "gemma3_text", "num_hidden_layers": 34, "hidden_size": 2560, "sliding_window": 1024},
    **_VISION,
)
GEMMA3_1B: Config = {
    "model_type": "gemma3_text",
    "torch_dtype": "bfloat16",
    "num_hidden_layers": 26,
    "hidden_size": 1152,
    "num_attention_heads": 4,
    "num_key_value_heads": 1,
    "head_dim": 256,
    "sliding_window": 512,
    "sliding_window_pattern": 6,
}
GEMMA4_12B = _nested(
    "gemma4_unified",
    {
        "model_type": "gemma4_unified_text",
        "num_hidden_layers": 48,
        "hidden_size": 3840,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "num_global_key_value_heads": 1,
        "head_dim": 256,
        "global_head_dim": 512,
        "sliding_window": 1024,
        "attention_k_eq_v": True,
        "num_kv_shared_layers": 0,
        "layer_types": [*["sliding_attention"] * 5, "full_attention"] * 8,
    },
)
GEMMA4_26B = _nested(
    "gemma4",
    {
        "model_type": "gemma4_text",
        "num_hidden_layers": 30,
        "hidden_size": 2816,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "num_global_key_value_heads": 2,
        "head_dim": 256,
        "global_head_dim": 512,
        "sliding_window": 1024,
        "attention_k_eq_v": True,
        "num_kv_shared_layers": 0,
        "use_bidirectional_attention": "vision",
        "layer_types": [*["sliding_attention"] * 5, "full_attention"] * 5,
    },
    **_VISION,
)
GEMMA4_E2B = _nested(
    "gemma4",
    {
        "model_type": "gemma4_text",
        "num_hidden_layers": 35,
        "hidden_size": 1536,
        "num_attention_heads": 8,
        "num_key_value_heads": 1,
        "num_global_key_value_heads": None,
        "head_dim": 256,
        "global_head_dim": 512,
        "sliding_window": 512,
        "attention_k_eq_v": False,
        "num_kv_shared_layers": 20,
        "use_bidirectional_attention": None,
        "layer_types": [*["sliding_attention"] * 4, "full_attention"] * 7,
    },
    **_VISION,
)
GPT_OSS_120B: Config = {
    "model_type": "gpt_oss",
    "dtype": "bfloat16",
    "num_hidden_layers": 36,
    "hidden_size": 2880,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "sliding_window": 128,
    "layer_types": ["sliding_attention", "full_attention"] * 18,
}
GPT_OSS_20B = GPT_OSS_120B | {"num_hidden_layers": 24, "layer_types": ["sliding_attention", "full_attention"] * 12}
KIMI_LINEAR: Config = {
    "model_type": "kimi_linear",
    "dtype": "bfloat16",
    "num_hidden_layers": 27,
    "hidden_size": 2304,
    "kv_lora_rank": 512,
    "qk_rope_head_dim": 64,
    "mla_use_nope": True,
    "linear_attn_config": {
        "full_attn_layers": [4, 8, 12, 16, 20, 24, 27],
        "kda_layers": [layer for layer in range(1, 27) if layer % 4],
        "head_dim": 128,
        "num_heads": 32,
        "short_conv_kernel_size": 4,
    },
}
LLAMA4_SCOUT = _nested(
    "llama4",
    {
        "model_type": "llama4_text",
        "num_hidden_layers": 48,
        "hidden_size": 5120,
        "num_attention_heads": 40,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "attention_chunk_size": 8192,
        "no_rope_layers": [1, 1, 1, 0] * 12,
    },
    **_VISION,
)
MINIMAX_TEXT: Config = {
    "model_type": "minimax_text_01",
    "torch_dtype": "bfloat16",
    "num_hidden_layers": 80,
    "hidden_size": 6144,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "attn_type_list": [0, 0, 0, 0, 0, 0, 0, 1] * 10,
}
NSA: Config = {
    "model_type": "nsa",
    "torch_dtype": "bfloat16",
    "num_hidden_layers": 24,
    "hidden_size": 2048,
    "num_heads": 64,
    "num_kv_heads": 4,
    "head_dim": 32,
    "block_size": 64,
    "block_counts": 16,
    "window_size": 512,
}
QWEN_NEXT: Config = {
    "model_type": "qwen3_next",
    "torch_dtype": "bfloat16",
    "num_hidden_layers": 48,
    "hidden_size": 2048,
    "full_attention_interval": 4,
    "num_attention_heads": 16,
    "num_key_value_heads": 2,
    "head_dim": 256,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4,
}

SHIPPED_CONFIGS: dict[str, Config] = {
    "deepseek-v3.2": V32,
    "deepseek-v4-flash": V4_FLASH,
    "deepseek-v4-pro": V4_PRO,
    "gemma-3-1b": GEMMA3_1B,
    "gemma-3-27b": GEMMA3_27B,
    "gemma-3-4b": GEMMA3_4B,
    "gemma-4-12b": GEMMA4_12B,
    "gemma-4-26b-a4b": GEMMA4_26B,
    "gemma-4-e2b": GEMMA4_E2B,
    "gpt-oss-120b": GPT_OSS_120B,
    "gpt-oss-20b": GPT_OSS_20B,
    "kimi-linear-48b-a3b": KIMI_LINEAR,
    "llama-4-scout": LLAMA4_SCOUT,
    "minimax-text-01": MINIMAX_TEXT,
    "nsa-reference": NSA,
    "qwen3-next-80b-a3b": QWEN_NEXT,
}
"""A configuration of each shipped model."""

LLAMA: Config = {
    "model_type": "llama",
    "torch_dtype": "bfloat16",
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
}
QWEN2 = LLAMA | {"model_type": "qwen2", "sliding_window": 4096, "use_sliding_window": False}
MISTRAL = LLAMA | {"model_type": "mistral", "sliding_window": 4096}
GEMMA2: Config = {
    "model_type": "gemma2",
    "dtype": "bfloat16",
    "num_hidden_layers": 26,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "sliding_window": 4096,
}
MINIMAX_M1 = MINIMAX_TEXT | {"model_type": "minimax_m1"}
MINIMAX_LIBRARY = {key: value for key, value in MINIMAX_TEXT.items() if key != "attn_type_list"} | {
    "model_type": "minimax",
    "layer_types": [*["linear_attention"] * 7, "full_attention"] * 10,
}

NEMOTRON_H: Config = {
    "model_type": "nemotron_h",
    "torch_dtype": "bfloat16",
    "num_hidden_layers": 52,
    "hidden_size": 4096,
    "hybrid_override_pattern": "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-",
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "mamba_num_heads": 128,
    "mamba_head_dim": 64,
    "ssm_state_size": 128,
    "n_groups": 8,
    "conv_kernel": 4,
}

FURTHER = [LLAMA, QWEN2, MISTRAL, GEMMA2, MINIMAX_M1, MINIMAX_LIBRARY, NEMOTRON_H]
ALL = [*SHIPPED_CONFIGS.values(), *FURTHER]
"""A configuration of every family."""
