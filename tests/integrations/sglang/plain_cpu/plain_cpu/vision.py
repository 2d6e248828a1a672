"""Lets torchvision be imported beside a PyTorch that was built without CUDA; importing this module is enough."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__: list[str] = []

_KEPT: list[Any] = []


class _Declaring(MetaPathFinder):
    """Declares two operators as soon as torchvision is looked for; finds nothing itself.

    The wheel of the package index is built for CUDA. Where its compiled part cannot load, nobody declares them, and the
    import of its Python part fails, although no test uses a picture.
    """

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name == "torchvision":
            sys.meta_path.remove(self)
            import torch

            if torch.version.cuda is None:
                library = torch.library.Library("torchvision", "DEF")
                for operator in ("nms", "qnms"):
                    library.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
                _KEPT.append(library)
        return None


sys.meta_path.insert(0, _Declaring())
