"""Two rulebooks compared by what they accept, not by how they are written."""

from hitproof.verification.diff.compare import compare
from hitproof.verification.diff.report import Difference, DiffReport, Relation, Witness

__all__ = ["DiffReport", "Difference", "Relation", "Witness", "compare"]
