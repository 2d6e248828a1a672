"""A 64-bit fingerprint of rows: the same wherever and however they lie, another for any other rows."""

from hitproof.kernels.checksum.reference import fingerprint, finish, partial

__all__ = ["fingerprint", "finish", "partial"]
