"""`tail_fill`: keys and values of missing recent positions, made from kept layer inputs."""

from hitproof.kernels.tail_fill.projection import CachePath, NewRows, rows_from_inputs
from hitproof.kernels.tail_fill.reference import Filled, LayerRows, tail_fill

__all__ = ["CachePath", "Filled", "LayerRows", "NewRows", "rows_from_inputs", "tail_fill"]
