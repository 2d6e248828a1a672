"""`window_roll`: a ring of rows brought to a new boundary."""

from hitproof.kernels.window_roll.boundary import Boundary, members
from hitproof.kernels.window_roll.reference import Order, Ring, Rolled, lost_rows, ring_after, slots_of, window_roll

__all__ = ["Boundary", "Order", "Ring", "Rolled", "lost_rows", "members", "ring_after", "slots_of", "window_roll"]
