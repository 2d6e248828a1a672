"""Which of the shipped models stand for all of them where a test is too slow to run sixteen times."""

from __future__ import annotations

__all__ = ["REPRESENTATIVE"]

REPRESENTATIVE = ("deepseek-v4-flash", "gemma-3-27b", "llama-4-scout", "nsa-reference", "qwen3-next-80b-a3b")
"""Together they bind every check and every option that any shipped model binds; a test holds this."""
