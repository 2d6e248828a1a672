"""Resolved states for decisions: healthy ones of any bound rulebook, and random ones with a few faults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

from hitproof.engine.decide import Engine
from hitproof.engine.healthy import healthy_segment
from hitproof.engine.state import Resolved
from hitproof.rules.bind import bind_rulebook
from hitproof.rules.profiles import load_profile
from hitproof.rules.resolve import load_rulebook
from hitproof.spec.bound import BoundGroup, BoundRulebook
from hitproof.spec.facts import Fact
from hitproof.spec.profile import Group, Profile

SHIPPED = ("deepseek-v4-flash", "gemma-3-27b", "qwen3-next-80b-a3b")
ADDRESS = 9 * 2**17
"""A multiple of every alignment in use."""

_ROWS = {"row_bytes": 64, "alignment": 64, "stride": 4096}
_POOLED = {**_ROWS, "ratio": 8, "row_tokens": 8}
_STATE = {"state_bytes": 512, "alignment": 64, "stride": 4096}
_SMALL: Mapping[str, tuple[Mapping[str, int | bool], Mapping[str, tuple[str, Mapping[str, int | bool]]]]] = {
    "homogeneous": ({}, {"kv": ("full_kv", _ROWS)}),
    "windowed": (
        {"receptive_field": 40, "warmable": True},
        {
            "kv": ("full_kv", _ROWS),
            "tail": ("uncompressed_tail", {**_ROWS, "window": 16}),
            "edge": ("window_boundary", {}),
            "inputs": ("layer_inputs", _ROWS),
            "manifest": ("demoted_prefix", {}),
        },
    ),
    "pooled": (
        {"receptive_field": 24, "warmable": True},
        {
            "entries": ("compressed_global", _POOLED),
            "index": ("routing_index", _POOLED),
            "state": ("compressor_state", {**_STATE, "ratio": 8, "overlap": 8}),
            "inputs": ("layer_inputs", _ROWS),
            "manifest": ("demoted_prefix", {}),
        },
    ),
    "stored": (
        {},
        {
            "kv": ("full_kv", {**_ROWS, "stored_boundaries": True}),
            "rec": ("recurrent_state", _STATE),
            "other": ("recurrent_state", _STATE),
        },
    ),
    "stored-attention": (
        {},
        {name: ("full_kv", {**_ROWS, "stored_boundaries": True}) for name in ("one", "two", "three")},
    ),
    "two-ranks": ({"ranks": 2}, {"kv": ("full_kv", _ROWS), "inputs": ("layer_inputs", _ROWS)}),
}
SMALL = tuple(_SMALL)


@cache
def bound_to(name: str) -> BoundRulebook:
    """The shipped rulebook bound to a shipped profile or to a small one of four layers."""
    return bind_rulebook(load_rulebook("mixed_attention"), small_profile(name) or load_profile(name))


def small_profile(name: str) -> Profile | None:
    """One of the small profiles."""
    if name not in _SMALL:
        return None
    constants, groups = _SMALL[name]
    made = [
        Group(id=group, object=kind, layers=["0-3"], constants={"lookahead": 0, **own})  # type: ignore[arg-type]
        for group, (kind, own) in groups.items()
    ]
    peers = {"state": {"entries": "entries"}}
    made = [one.model_copy(update={"peers": peers.get(one.id, {})}) for one in made]
    return Profile(profile=name, title=name, layers=4, constants=constants, groups=tuple(made))


@cache
def engine_of(name: str) -> Engine:
    """The engine of that rulebook."""
    return Engine(bound_to(name))


@dataclass
class Build:
    """A state in the making: request, run time and kernels of the stated environment, and segments of each group."""

    engine: Engine
    length: int
    granularity: int = 1

    def __post_init__(self) -> None:
        self.bound = self.engine.bound
        types = self.engine.types
        usual = self.bound.rulebook.environment
        made = {
            scope: types.make(
                scope,
                {path.partition(".")[2]: value for path, value in usual.items() if path.startswith(f"{scope}.")},
            )
            for scope in ("request", "runtime", "kernel")
        }
        self.request, self.runtime = made["request"], made["runtime"]
        self.request.length, self.request.granularity = self.length, self.granularity
        self.kernels = {group.id: made["kernel"].copy() for group in self.bound.groups}
        self.pieces: dict[str, list[Any]] = {group.id: [] for group in self.bound.groups}
        self._count = 0

    def segment(self, group_id: str, **given: object) -> Any:
        """Add one healthy segment; its peers are those of the same place, else the last ones."""
        group = self.bound.group(group_id)
        self._count += 1
        if "address" in group.facts:
            given.setdefault("address", self._count * ADDRESS)
        place = len(self.pieces[group_id])
        peers = {
            role: self.pieces[peer][min(place, len(self.pieces[peer]) - 1)]
            for role, peer in group.peers.items()
            if self.pieces[peer]
        }
        context = {"request": self.request, "runtime": self.runtime, "kernel": self.kernels[group_id]}
        made = healthy_segment(self.engine.types, group, given, context, peers)
        self.pieces[group_id].append(made)
        return made

    def all(self, *, but: Sequence[str] = ()) -> Build:
        """Add one healthy segment to each group, peers first."""
        for group in self.bound.groups:
            if group.id not in but:
                self.segment(group.id)
        return self

    def state(self, matched: int | None = None) -> Resolved:
        """The state; it matches up to the last token but one unless stated."""
        known = self.length - 1 if matched is None else matched
        return Resolved(self.request, self.runtime, self.kernels, self.pieces, known)


def build_of(name: str, length: int, granularity: int = 1) -> Build:
    """A state in the making of a shipped or small profile."""
    return Build(engine_of(name), length, granularity)


def random_build(engine: Engine, random: Random) -> Build:
    """A prompt, its segments in one to three pieces or checkpoints a group, and up to three faults."""
    length, unit = _size(engine.bound.profile.profile, random)
    build = Build(engine, length, unit)
    _environment(build, random)
    steps = sorted({(length - 1) * k // 4 // unit * unit for k in (1, 2, 3)} - {0})
    cuts = sorted(random.sample(steps, random.choice([0, 0, min(1, len(steps)), min(2, len(steps))])))
    source = random.choice([True, True, False])
    demoted = random.choice([None, None, "host", "disk"])
    for group in build.bound.groups:
        if random.random() < 0.04 or (group.object == "layer_inputs" and not source):
            continue
        kept = {} if demoted is None or random.random() < 0.4 else {"form": "demoted", "tier": demoted}
        for facts in _spans(group, length, cuts, random):
            build.segment(group.id, **facts, **(kept if group.constants.get("has_bytes") else {}))
    segments = [(build.bound.group(name), one) for name, held in build.pieces.items() for one in held]
    for _ in range(random.choice([0, 1, 1, 2, 3])):
        if segments:
            group, segment = random.choice(segments)
            fact = random.choice(list(group.facts.values()))
            if fact.name not in build.bound.rulebook.engine_owned:
                setattr(segment, fact.name, fault(fact, getattr(segment, fact.name), random))
            elif fact.name in ("form", "tier", "generation"):
                setattr(segment, fact.name, fault(fact, getattr(segment, fact.name), random, known=True))
    return build


def fault(fact: Fact, value: Any, random: Random, *, known: bool = False) -> Any:
    """Another value of a fact: unknown unless it must be known, at an edge of its domain, or near what it was."""
    if not known and random.random() < 0.25:
        return None
    match fact.type.kind:
        case "bool":
            return not value
        case "enum":
            return random.choice(fact.type.members)
        case "identity":
            return random.choice(["other", "content", 7])
        case "set":
            return frozenset(random.sample([0, 1, *(value or ()), 64, 100, 512], 2))
        case _:
            near, lo, hi = value if isinstance(value, int) else 0, int(fact.lo or 0), int(fact.hi or 0)
            return min(max(random.choice([lo, hi, near - 1, near + 1, near // 2, near + 8]), lo), hi)


def _size(name: str, random: Random) -> tuple[int, int]:
    """Tokens of the prompt and the hash unit, so that a handful of lengths is proposed."""
    if name in SMALL:
        return random.choice([(2, 1), (9, 1), (20, 4), (65, 8), (66, 16), (100, 16)])
    return random.choice(
        [(2, 1), (6, 1), (130, 64), (513, 128), (1025, 256), (1500, 512), (6145, 2048), (60_000, 16_384)]
    )


def _environment(build: Build, random: Random) -> None:
    request, runtime = build.request, build.runtime
    request.allows_approximate = random.choice([False, False, True, None])
    for fact, chance in (("has_tokens", 0.05), ("has_media", 0.05), ("captured", 0.1)):
        if random.random() < chance:
            setattr(request, fact, random.choice([None, False, True]))
    if random.random() < 0.05:
        setattr(request, random.choice(build.bound.rulebook.door), None)
    elif random.random() < 0.05:
        request.adapter = "of this request alone"
    runtime.prefill_us_per_token = random.choice([40.0, 40.0, 0.0, 0.1, 2.0, None])
    if random.random() < 0.1:
        setattr(runtime, random.choice(list(build.bound.rulebook.runtime)), None)


def _spans(group: BoundGroup, length: int, cuts: Sequence[int], random: Random) -> list[dict[str, object]]:
    """Stated spans of a group's segments: a chain of pieces, perhaps with a gap, or a few checkpoints."""
    if not cuts or random.random() < 0.3:
        short = random.choice([None, None, *cuts])
        return [{}] if short is None else [_span(group, 0, short, length)]
    if group.rules.pieces == "point":
        return [_span(group, 0, end, length) for end in (*cuts, length - 1)]
    edges = list(zip([0, *cuts], [*cuts, length - 1], strict=True))
    if random.random() < 0.15:
        edges.remove(random.choice(edges))
    return [_span(group, start, end, length) for start, end in edges]


def _span(group: BoundGroup, start: int, end: int, length: int) -> dict[str, object]:
    unit = int(group.constants.get("row_tokens", 1))
    if group.rules.pieces == "span":
        return {"start": start // unit * unit, "end": end // unit * unit, "matched": length - 1}
    return {"end": end, "matched": length - 1}
