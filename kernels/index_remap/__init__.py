"""`index_remap`: an index led to the rows to which its entries have moved."""

from hitproof.kernels.index_remap.reference import Move, Remapped, RowMap, index_remap, remapped

__all__ = ["Move", "Remapped", "RowMap", "index_remap", "remapped"]
