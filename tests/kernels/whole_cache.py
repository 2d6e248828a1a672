"""A model's whole cache as rows in blocks, group by group, and a cache made anew of nothing but such rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache as once
from typing import Any, NamedTuple

import torch
from transformers import DynamicCache

from hitproof.kernels.blocks import Geometry, gather, pool_of, scatter
from hitproof.kernels.jobs import Done, Held, Job
from hitproof.kernels.numbers import RowFormat, decode, encode, plain_row
from hitproof.kernels.run import run_repair
from hitproof.kernels.selftest.trial import COPY_TAGS, request_for
from tests.kernels import tiny_deepseek, tiny_models

__all__ = [
    "OTHER",
    "PREFIX",
    "SAME",
    "SUFFIX",
    "Group",
    "Lay",
    "Place",
    "Prefix",
    "Rows",
    "measured",
    "mended",
    "plain",
    "prefix_of",
    "read",
    "room",
    "store",
]

PREFIX, SUFFIX = 131, 24
"""Tokens whose rows are cached, amid the windows of both of DeepSeek-V4's ratios, and those that follow at once."""
SAME, OTHER = 1e-5, 1e-2
"""Of the logits' spread, float32: what a valid cache stays below, and what every fault passes."""
_STATES = ("buffer_kv", "buffer_gate", "overlap_kv", "overlap_gate")


class Place(NamedTuple):
    """Where a cache of the library holds some rows: the layer, the attribute, and the name in it, if there are any."""

    layer: int
    attribute: str
    name: str = ""

    @property
    def kind(self) -> str:
        """What the rows are: `rows` of tokens, `entries`, `index keys`, or the `state` of a compressor."""
        if self.attribute in _STATES:
            return "state"
        return {"": "rows", "compressor": "entries", "indexer": "index keys"}[self.name]


Rows = Mapping[Place, torch.Tensor]
"""[T, H, D] of each place."""
Lay = Callable[[int, int], Geometry]
"""Where rows of so many heads and bytes a head lie."""


@dataclass(frozen=True)
class Group:
    """Rows of one kind and shape, which one request is about: a pool a place."""

    places: tuple[Place, ...]
    held: Held

    @property
    def kind(self) -> str:
        """What the rows are."""
        return self.places[0].kind


class Prefix:
    """A tiny model after 131 tokens: the rows of its cache, and its answers behind any rows."""

    def __init__(self, name: str, seed: int) -> None:
        self.model = tiny_deepseek.tiny_v4(seed=seed) if name == "v4" else tiny_models.tiny(name, seed=seed)
        self.tokens = tiny_models.random_tokens(PREFIX + SUFFIX, 30 + seed)
        cache = DynamicCache(config=self.model.config)
        self.logits(self.tokens[:, :PREFIX], cache)
        self.rows: Rows = dict(_rows(cache))
        self.cold = self.logits(self.tokens, DynamicCache(config=self.model.config))[PREFIX:]

    def logits(self, tokens: torch.Tensor, cache: Any) -> torch.Tensor:
        """[T, vocabulary], continuing what the cache holds."""
        return tiny_deepseek.run(self.model, tokens, cache)

    def continued(self, rows: Rows) -> torch.Tensor:
        """Logits of all tokens that follow, in one shot, behind a cache of these rows alone."""
        return self.logits(self.tokens[:, PREFIX:], _cache(self.model, rows))

    def error(self, rows: Rows, other: torch.Tensor | None = None) -> float:
        """Largest difference of a logit from the cold run, or from other logits, as a share of the cold spread."""
        wanted = self.cold if other is None else other
        return float((self.continued(rows) - wanted).abs().max() / self.cold.std())


@once
def prefix_of(name: str, seed: int = 0) -> Prefix:
    """A prefix, computed once; nobody changes it."""
    return Prefix(name, seed)


def plain(heads: int, cell: int) -> Geometry:
    """Blocks of 16 rows, without a gap."""
    return Geometry(16, heads, cell)


def room(held: Held, lay: Lay, form: RowFormat | None = None, scale: Any = None, poison: int = 0xFF) -> Held:
    """Poisoned blocks in random order for the same rows, with the facts that a copy shall have.

    Args:
        held: The rows.
        lay: Where they shall lie.
        form: Their format; as it was where left out.
        scale: Scales apart from the rows.
        poison: Every byte; 0xFF is a NaN in every format, so that a row that nobody wrote does not pass for one.
    """
    form = form or held.form
    heads = held.layers[0].geometry.heads
    return _room(lay(heads, form.cell_bytes), len(held.layers), held.count, form, scale, poison)


def store(rows: Rows, lay: Lay = plain, poison: int = 0xFF) -> list[Group]:
    """Write float32 rows into blocks, those of one kind and shape together."""
    together: dict[tuple[Any, ...], list[Place]] = {}
    for place, values in rows.items():
        together.setdefault((place.kind, *values.shape), []).append(place)
    groups = []
    for (_, count, heads, size), places in together.items():
        form = plain_row("fp32", size)
        held = _room(lay(heads, form.cell_bytes), len(places), count, form, None, poison)
        for pool, place in zip(held.layers, places, strict=True):
            scatter(pool, held.table, encode(rows[place], form))
        groups.append(Group(tuple(places), held))
    return groups


def read(groups: list[Group]) -> Rows:
    """Every row as it lies in the blocks, float32."""
    return {
        place: decode(gather(pool, group.held.table, group.held.count), group.held.form, group.held.scale)
        for group in groups
        for place, pool in zip(group.places, group.held.layers, strict=True)
    }


def measured(group: Group) -> str:
    """The group's fingerprint, by a request of its own."""
    return str(run_repair(request_for("checksum", group.held, None), Job(group.held, None)).measured["measured"])


def mended(repair: str, group: Group, target: Held, sources: Mapping[str, Any], **facts: Any) -> tuple[Group, Done]:
    """The group as a repair has written it into blocks of its own, and what was told of them."""
    done = run_repair(request_for(repair, group.held, target, **facts), Job(group.held, target, sources))
    return replace(group, held=target), done


def _room(geometry: Geometry, pools: int, count: int, form: RowFormat, scale: Any, poison: int) -> Held:
    needed = -(-count // geometry.rows)
    table = torch.randperm(needed + 2, generator=torch.Generator().manual_seed(count + geometry.rows))[:needed]
    layers = tuple(pool_of(geometry, needed + 2, poison=poison) for _ in range(pools))
    return Held(layers, table, count, form, scale=scale, tags=COPY_TAGS)


def _rows(cache: Any) -> Iterator[tuple[Place, torch.Tensor]]:
    """Every tensor that a cache holds."""
    for index, layer in enumerate(cache.layers):
        yield Place(index, "keys"), layer.keys[0].transpose(0, 1)
        if layer.values is not layer.keys:
            yield Place(index, "values"), layer.values[0].transpose(0, 1)
        for attribute in ("compressed_kv", *_STATES):
            for name, held in getattr(layer, attribute, {}).items():
                if held is not None:
                    yield Place(index, attribute, name), held[0][:, None]


def _cache(model: Any, rows: Rows) -> Any:
    """A cache of the library with these rows and nothing else; its counters follow from length and number of rows."""
    cache = DynamicCache(config=model.config)
    for index, layer in enumerate(cache.layers):
        keys = rows[Place(index, "keys")].transpose(0, 1)[None]
        values = rows.get(Place(index, "values"))
        layer.lazy_initialization(keys, keys)
        layer.keys = keys
        layer.values = keys if values is None else values.transpose(0, 1)[None]
        if layer.is_sliding:
            layer.cumulative_length = PREFIX
    for place, held in rows.items():
        if place.name:
            layer = cache.layers[place.layer]
            getattr(layer, place.attribute)[place.name] = held[:, 0][None]
            if place.attribute == "compressed_kv":
                layer.entry_count[place.name] = held.shape[0]
    return cache
