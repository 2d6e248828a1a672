"""A platform for SGLang that needs no accelerator and no compiled kernels; for tests."""

__all__ = ["activate"]


def activate() -> str:
    """Where SGLang finds the platform."""
    return "plain_cpu.platform:PlainCpu"
