"""Settings of these tests."""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("torch") is not None:
    import torch

    # Tests share few cores with one another; more threads would only be in each other's way.
    torch.set_num_threads(1)
