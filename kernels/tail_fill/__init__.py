"""`tail_fill`: keys and values of missing recent positions, made from kept layer inputs."""

from hitproof.kernels.tail_fill.projection import CachePath, NewRows, rows_from_inputs

__all__ = ["CachePath", "NewRows", "rows_from_inputs"]
