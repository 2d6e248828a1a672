"""Six kinds of models with tiny random weights, whose caches hold every kind of state that real ones hold."""

from hitproof.integrations.transformers.tiny.models import NAMES, TinyModel, random_tokens, tiny_model
from hitproof.integrations.transformers.tiny.stable_topk import StableTopK, choosing_stably, stable_topk

__all__ = ["NAMES", "StableTopK", "TinyModel", "choosing_stably", "random_tokens", "stable_topk", "tiny_model"]
