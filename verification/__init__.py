"""Proofs about rulebooks: a second reading of the rules, which never imports the engine."""

from hitproof.verification.mutants import MUTANTS, Mutant
from hitproof.verification.verify import run_mutant, verify

__all__ = ["MUTANTS", "Mutant", "run_mutant", "verify"]
