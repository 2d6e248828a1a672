"""What each layer was given, kept while a model runs: the source from which repairs make rows anew."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from hitproof.spec.errors import UsageError
from hitproof.spec.facts import Value

__all__ = ["KeptInputs", "Provenance", "input_norms", "keeping_inputs"]

_VERSIONS = ("compressor_version", "index_config")
"""Facts of a request on which the inputs of all layers but the first depend, beside its identity."""
_REMEMBERED = 4096


class KeptInputs:
    """Rows of every layer's input, as its attention or its mixer was given it, behind the norm.

    Args:
        layers: Number of layers.
        start: Token of the first row.
    """

    def __init__(self, layers: int, start: int) -> None:
        self.start = start
        self._rows: list[list[torch.Tensor]] = [[] for _ in range(layers)]

    def add(self, layer: int, rows: torch.Tensor) -> None:
        """Append the rows [1, T, N] of one pass of one layer."""
        self._rows[layer].append(rows[0].detach())

    @property
    def end(self) -> int:
        """One past the last token whose inputs are kept."""
        return self.start + sum(int(part.shape[0]) for part in self._rows[0])

    def payload(self) -> bytes:
        """[layers][rows][row_bytes] of all that is kept."""
        whole = torch.stack([torch.cat(parts) for parts in self._rows])
        return bytes(whole.contiguous().cpu().flatten().view(torch.uint8).numpy().tobytes())


class Provenance:
    """Behind which compressor and index kept inputs ran: those of later layers are what earlier ones made of these.

    Rows that were made by another version are no source for this one. What nobody remembers is none either.
    """

    def __init__(self) -> None:
        self._ran: OrderedDict[str, tuple[Value, ...]] = OrderedDict()

    def note(self, fingerprint: str, facts: Mapping[str, Value]) -> None:
        """Inputs of this fingerprint were kept for a request with these facts."""
        self._ran[fingerprint] = _versions(facts)
        self._ran.move_to_end(fingerprint)
        if len(self._ran) > _REMEMBERED:
            self._ran.popitem(last=False)

    def serves(self, fingerprint: Value, facts: Mapping[str, Value]) -> bool:
        """Whether inputs of this fingerprint are what a request with these facts would compute."""
        return isinstance(fingerprint, str) and self._ran.get(fingerprint) == _versions(facts)


def _versions(facts: Mapping[str, Value]) -> tuple[Value, ...]:
    return tuple(facts.get(name) for name in _VERSIONS)


def input_norms(model: Any) -> list[Any]:
    """The module of each layer whose output its attention or its mixer is given.

    Raises:
        UsageError: The layers are built otherwise.
    """
    found = [getattr(layer, "input_layernorm", getattr(layer, "norm", None)) for layer in model.model.layers]
    if not found or any(norm is None for norm in found):
        raise UsageError(
            "inputs of these layers cannot be kept", got=type(model).__name__, expected="layers with a norm"
        )
    return found


@contextmanager
def keeping_inputs(model: Any, start: int) -> Iterator[KeptInputs]:
    """While open, every pass of a model appends what its layers are given.

    Args:
        model: The model.
        start: Token at which the first pass begins.
    """
    norms = input_norms(model)
    kept = KeptInputs(len(norms), start)
    hooks = [
        norm.register_forward_hook(lambda _module, _given, out, layer=layer: kept.add(layer, out))
        for layer, norm in enumerate(norms)
    ]
    try:
        yield kept
    finally:
        for hook in hooks:
            hook.remove()
