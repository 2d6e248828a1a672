"""The solver path: proves or refutes the claims about a rulebook, independently of the engine."""

__all__: list[str] = []
