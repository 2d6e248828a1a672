"""The same values in another number format, with new scales."""

from hitproof.kernels.requantize.reference import requantize, static_scales

__all__ = ["requantize", "static_scales"]
