"""What runs the declared repairs: a readable PyTorch reference for each, loaded when it is asked for."""

from hitproof.kernels.jobs import Done, Held, Job, RepairFault
from hitproof.kernels.registry import BACKENDS, KERNELS, implementation, require_torch
from hitproof.kernels.run import KernelRunner, run_repair

__all__ = [
    "BACKENDS",
    "Done",
    "Held",
    "Job",
    "KERNELS",
    "KernelRunner",
    "RepairFault",
    "implementation",
    "require_torch",
    "run_repair",
]
