"""Every repair on awkward sizes, judged by its declaration and by plain loops."""

from hitproof.kernels.selftest.check import Failure, check_sources, check_trial
from hitproof.kernels.selftest.trial import Setup, Trial, trials_of

__all__ = ["Failure", "Setup", "Trial", "check_sources", "check_trial", "trials_of"]
