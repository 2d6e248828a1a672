"""What a fault is done to: one model with a prefix cache of its own, prompts, and hands on what is stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any

import torch

from hitproof.engine import Engine
from hitproof.engine.cache import Prompt
from hitproof.engine.cache.slot import Slot
from hitproof.integrations.transformers.oracle.blind import Blind
from hitproof.integrations.transformers.prefix_cache import PrefixCache
from hitproof.integrations.transformers.tiny import TinyModel
from hitproof.spec.facts import Value

__all__ = ["NotHere", "OTHER", "Stage", "WANTED", "forward"]

OTHER, WANTED = 40, 24
"""Tokens of the other continuation that was stored, and of the one that is asked for."""

_UNIT = 8
_HOST_BYTES = 1 << 28
_BLOCKS = 1024


class NotHere(Exception):
    """The fault cannot happen to this model; the text says why."""


class Stage:
    """A model, an empty prefix cache, and three runs of tokens: shared, another continuation, the wanted one.

    Args:
        tiny: The model.
        seed: Decides the tokens.
        shared: Tokens that the stored and the wanted prompt share.
        inputs: Whether the layers' inputs are kept, for repairs to begin from.
        engine: The rulebook bound to the model, where it is at hand.

    Attributes:
        facts: What the request says of itself, beside its length.
        live: A cache of the library that somebody goes on with, instead of what is stored.
    """

    def __init__(
        self,
        tiny: TinyModel,
        seed: int,
        *,
        shared: int,
        inputs: bool = False,
        engine: Engine | None = None,
    ) -> None:
        self.tiny, self.model = tiny, tiny.model
        self.cache = PrefixCache(
            tiny.model,
            tiny.profile,
            unit=_UNIT,
            blocks=_BLOCKS,
            host_bytes=_HOST_BYTES,
            layer_inputs=inputs,
            verify="use",
            engine=engine,
        )
        self.manager = self.cache.manager
        self.blind = Blind(self.cache)
        self.draw = Random(f"{tiny.name}/{seed}")
        self.facts: dict[str, Value] = {}
        self.live: Any = None
        self.shared: list[int] = []
        self.other: list[int] = []
        self.wanted: list[int] = []
        self.draw_prompts(shared)

    def draw_prompts(self, shared: int) -> None:
        """New tokens for all three runs; what is stored stays."""
        self.shared, self.other, self.wanted = (self.tokens(count) for count in (shared, OTHER, WANTED))
        # The two continuations part with their first token.
        self.other[0] = (self.wanted[0] + 1 - _FIRST) % (self.tiny.vocabulary - _FIRST) + _FIRST

    @property
    def asked(self) -> list[int]:
        """The prompt that is asked for."""
        return [*self.shared, *self.wanted]

    @property
    def objects(self) -> frozenset[str]:
        """Objects that the model's caches consist of."""
        return frozenset(group.object for group in self.cache.engine.bound.groups)

    def prompt(self, tokens: Sequence[int], facts: Mapping[str, Value] | None = None) -> Prompt:
        """The prompt as the prefix cache asks for it."""
        return self.manager.prompt(list(tokens), {**self.cache.identity, **(facts or {})})

    def tokens(self, count: int) -> list[int]:
        """So many new tokens."""
        return [self.draw.randrange(_FIRST, self.tiny.vocabulary) for _ in range(count)]

    def store(self, tokens: Sequence[int], facts: Mapping[str, Value] | None = None) -> None:
        """Run a prompt through the prefix cache, and let the blind arm note what was written."""
        self.cache.prefill(list(tokens), facts=facts)
        self.blind.note(tokens, facts)

    def slots(self, tokens: Sequence[int], *objects: str, facts: Mapping[str, Value] | None = None) -> list[Slot]:
        """Segments of these objects on a prompt's path.

        Raises:
            NotHere: There are none.
        """
        found = self.manager.find(self.prompt(tokens, facts))
        wanted = [slot for slot in found if slot.group.object in objects and slot.owner is None]
        if not wanted:
            raise NotHere(f"the model keeps no {' or '.join(objects)}")
        return wanted

    def with_bytes(self, tokens: Sequence[int], *, read: bool = True) -> list[Slot]:
        """Segments on a prompt's path that lie on the device; `read`: only those that queries read."""
        found = self.manager.find(self.prompt(tokens))
        return [
            slot
            for slot in found
            if slot.extent is not None and slot.extent.rows and not (read and slot.group.object == "layer_inputs")
        ]

    def victim(self) -> Slot:
        """Of the segments of the asked prompt's history, the one of the most bytes: every later token may read it.

        Raises:
            NotHere: There is none on the device.
        """
        found = [slot for slot in self.with_bytes(self.shared) if slot.group.object in _HISTORY]
        if not found:
            raise NotHere("nothing of the history is stored")
        return max(found, key=lambda slot: (-_HISTORY.index(slot.group.object), slot.extent.rows if slot.extent else 0))

    def read(self, slot: Slot) -> bytearray:
        """A segment's bytes [layers][rows][row_bytes] as they lie.

        Raises:
            NotHere: It has none on the device.
        """
        if slot.extent is None:
            raise NotHere(f"{slot.group.id} lies on no device")
        return bytearray(self.manager.memory.read(slot.extent))

    def write(self, slot: Slot, payload: bytes | bytearray) -> None:
        """Write over a segment's bytes, behind the manager's back."""
        if slot.extent is None:
            raise NotHere(f"{slot.group.id} lies on no device")
        self.manager.memory.write(slot.extent, 0, bytes(payload))

    def write_as_meant(self, slot: Slot, payload: bytes | bytearray) -> None:
        """The same by whoever committed the segment: the fingerprint is that of these bytes, so nothing is torn."""
        self.write(slot, payload)
        if slot.extent is not None:
            slot.facts.recorded = slot.facts.measured = self.manager.memory.fingerprint(slot.extent)

    def run(self, tokens: Sequence[int], past: Any = None) -> Any:
        """A cache of the library after more tokens; a new one where none is given."""
        past = self.cache.state.fresh() if past is None else past
        forward(self.model, tokens, past)
        return past

    def lose(self, slots: Sequence[Slot]) -> None:
        """Let the manager give segments up, and others be written into their blocks.

        Raises:
            NotHere: One of them cannot be given up.
        """
        if not all(self.manager.evict(slot) for slot in slots):
            raise NotHere("what is to be lost is held")
        self.cache.prefill(self.tokens(len(self.shared)))

    def rows_after(self, tokens: Sequence[int], slot: Slot) -> bytes:
        """What would lie in a segment's place had the model read other tokens."""
        facts = slot.facts
        past = self.run(tokens[: facts.end])
        rows: bytes = self.cache.state.rows(past, slot.group.id, facts.start, facts.end)
        return rows

    @contextmanager
    def otherwise(self, matches: Callable[[str], bool], change: Callable[[Any], Any]) -> Iterator[None]:
        """While open, weights and buffers of matching names are changed.

        Raises:
            NotHere: The model has none of these names.
        """
        tensors = {**dict(self.model.named_parameters()), **dict(self.model.named_buffers())}
        changed = {name: tensor for name, tensor in tensors.items() if matches(name) and tensor.is_floating_point()}
        if not changed:
            raise NotHere("the model has no such weights")
        kept = {name: tensor.detach().clone() for name, tensor in changed.items()}
        with torch.no_grad():
            for tensor in changed.values():
                tensor.copy_(change(tensor))
        try:
            yield
        finally:
            with torch.no_grad():
                for name, tensor in changed.items():
                    tensor.copy_(kept[name])


_HISTORY = ("full_kv", "compressed_global")
_FIRST = 3
"""Smaller token ids may mean padding or ends."""


def forward(model: Any, tokens: Sequence[int], past: Any) -> Any:
    """Logits [T, vocabulary] of tokens behind what a cache holds, in one pass."""
    with torch.no_grad():
        return model(torch.tensor([list(tokens)]), cache=past, use_cache=True).logits[0]
