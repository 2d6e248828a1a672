"""Rows out of a staging buffer, at any byte, into aligned blocks, with their fingerprint taken on the way."""

from hitproof.kernels.promote.reference import Manifest, promote

__all__ = ["Manifest", "promote"]
