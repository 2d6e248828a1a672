"""`hitproof mutate`: every guard, term and effect of a rulebook dropped or turned, and what became of each edit."""
