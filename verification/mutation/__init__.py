"""`hitproof mutate`: every guard, term and effect of a rulebook dropped or turned, and what became of each edit."""

from hitproof.verification.mutation.mutate import choose_edits, mutate

__all__ = ["choose_edits", "mutate"]
