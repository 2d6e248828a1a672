"""What tests let workers do, beside what vLLM lets them do."""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["WorkerTools"]


class WorkerTools:
    """An extension of vLLM's worker."""

    model_runner: Any

    def add_to_norms(self, by: float) -> None:
        """Weights change in place, and nobody empties the cache."""
        with torch.no_grad():
            for name, weight in self.model_runner.get_model().named_parameters():
                # On a CPU the matrices are packed by now, and what is left of them is empty.
                if "norm" in name:
                    weight.add_(by)
