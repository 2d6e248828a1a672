"""Adapters that put the engine into serving frameworks by configuration alone."""

__all__: list[str] = []
