"""The vocabulary: units, facts, conditions, and the models of rules, repairs, proofs and scenarios."""

__all__: list[str] = []
