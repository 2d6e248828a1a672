"""Who asks: conversations of several tenants that share beginnings, with versions that change while a soak runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

__all__ = ["Asked", "Crowd", "UNIT"]

UNIT = 32
"""The hash unit, in tokens."""
_NO_MEDIA = 1_000_000
_SYSTEMS = 4
_TURNS = 4
_ROLLS = ("compressor_version", "index_config", "window_version", "separators", "skipped")


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """A prompt before the manager has seen it.

    Args:
        tokens: Token ids.
        facts: Facts of the request.
    """

    tokens: tuple[int, ...]
    facts: Mapping[str, Any]


@dataclass(slots=True)
class Crowd:
    """Draws prompts; `versions` change when `roll` is called.

    Args:
        seed: Decides every token.
        talks: How many conversations there are.
        longest: Tokens of the longest prompt.
    """

    seed: int
    talks: int = 14
    longest: int = 288
    versions: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_ROLLS, 0))
    _asked: dict[tuple[int, ...], Asked] = field(default_factory=dict)
    _texts: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def ask(self, draw: Random) -> Asked:
        """A prompt of some conversation, some turns in; popular conversations are drawn more often."""
        talk = min(self.talks - 1, int(draw.paretovariate(0.8)) - 1)
        turn, approximate = draw.randrange(_TURNS), draw.random() < 0.2
        key = (talk, turn, approximate, *self.versions.values())
        known = self._asked.get(key)
        if known is None:
            known = self._asked[key] = self._turn(talk, turn, approximate)
        return known

    def _turn(self, talk: int, turn: int, approximate: bool) -> Asked:
        words = Random(f"{self.seed}/talk/{talk}")
        system = self._text(f"system/{talk % _SYSTEMS}", words.choice((40, 64, 97)))
        whole = (*system, *self._text(f"talk/{talk}", self.longest))[: self.longest]
        length = words.sample(self.ends, _TURNS)[turn]
        return Asked(whole[:length], self.facts(words.randrange(4), words.randrange(3), approximate))

    @property
    def ends(self) -> list[int]:
        """Lengths at which turns of conversations end, some of them no multiple of anything."""
        words = Random(f"{self.seed}/ends")
        return sorted([self.longest, 128, 160, *(words.randrange(UNIT + 1, self.longest) for _ in range(7))])

    def other(self, asked: Asked, draw: Random) -> Asked:
        """The same tokens asked by somebody else."""
        facts = dict(asked.facts)
        name = draw.choice(("adapter", "salt", "weights", "media"))
        facts[name] = f"{facts[name]}+"
        if name == "media":
            facts["media_from"] = min(16, len(asked.tokens) - 1)
        return Asked(asked.tokens, facts)

    def roll(self, draw: Random) -> str:
        """Another version of something comes into use; answers of what. Changes the crowd."""
        name = draw.choice(_ROLLS)
        self.versions[name] = (self.versions[name] + 1) % 3
        return name

    def facts(self, tenant: int, adapter: int, approximate: bool) -> dict[str, Any]:
        """Facts of a request of a tenant."""
        versions = {name: f"{name}-{version}" for name, version in self.versions.items()}
        return {
            "granularity": UNIT,
            "weights": "weights-1",
            "attention_config": "config-1",
            "adapter": "none" if adapter == 0 else f"adapter-{adapter}",
            "media": "none" if tenant else "picture",
            "media_from": _NO_MEDIA if tenant else 48,
            "salt": f"tenant-{tenant}",
            "compression_seed": "seed-1",
            "allows_approximate": approximate,
            "captured": False,
            "graph_epoch": 1,
            "answer_blocks": 0,
            "budget_us": 30_000_000.0,
            "waited_us": 0.0,
            "has_tokens": True,
            "has_media": True,
            **versions,
        }

    def _text(self, name: str, length: int) -> tuple[int, ...]:
        key = f"{name}/{length}"
        if key not in self._texts:
            words = Random(f"{self.seed}/{name}")
            self._texts[key] = tuple(words.randrange(1, 50_000) for _ in range(length))
        return self._texts[key]
