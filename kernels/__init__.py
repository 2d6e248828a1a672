"""The repairs' implementations: a readable reference beside each Triton kernel, imported lazily."""

__all__: list[str] = []
