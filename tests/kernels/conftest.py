"""Settings of the kernel tests."""

from __future__ import annotations

import os
from importlib.util import find_spec

# Kernels are interpreted here; Triton reads this when it is imported, so it must stand before anything imports it.
os.environ["TRITON_INTERPRET"] = "1"

if find_spec("torch") is not None:
    import torch

    # Tests share few cores with one another; more threads would only be in each other's way.
    torch.set_num_threads(1)
