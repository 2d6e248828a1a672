"""The cache manager under load, faults and deaths, with every used row compared with the truth."""

__all__: list[str] = []
