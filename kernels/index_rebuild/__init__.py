"""Index keys from their inputs, and what a self-check of them needs."""

from hitproof.kernels.index_rebuild.digest import KeyConfig, key_digest
from hitproof.kernels.index_rebuild.reference import TokenIndexer, compressed_keys, hadamard, token_keys
from hitproof.kernels.index_rebuild.selfcheck import SelfCheck, index_scores, self_check, stable_top_k

__all__ = [
    "KeyConfig",
    "SelfCheck",
    "TokenIndexer",
    "compressed_keys",
    "hadamard",
    "index_scores",
    "key_digest",
    "self_check",
    "stable_top_k",
    "token_keys",
]
