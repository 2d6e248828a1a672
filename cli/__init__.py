"""The command line, `hitproof`."""

__all__: list[str] = []
