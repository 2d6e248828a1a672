"""Six kinds of models with tiny random weights, whose caches hold every kind of state that real ones hold."""

from hitproof.integrations.transformers.tiny.models import NAMES, TinyModel, random_tokens, tiny_model

__all__ = ["NAMES", "TinyModel", "random_tokens", "tiny_model"]
