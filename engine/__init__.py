"""The running path: decides, leases and recovers cache hits by the rules of a loaded rulebook."""

__all__: list[str] = []
