"""vLLM: hits of its prefix cache and of a shared page store pass the rulebook; `HITPROOF_VLLM=1` turns it on."""

__all__: list[str] = []
