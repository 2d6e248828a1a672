"""How fast repairs run on pages as a model has them, beside plain PyTorch and a copy of as many bytes."""

from hitproof.kernels.bench.cases import CASES, Case, Page, Sizes, build
from hitproof.kernels.bench.eager import EAGER
from hitproof.kernels.bench.measure import Timing, copy_rate, measured

__all__ = ["CASES", "Case", "EAGER", "Page", "Sizes", "Timing", "build", "copy_rate", "measured"]
