"""Every protection switched off once: the soak that finds nothing with it finds wrong bytes without it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from hitproof.engine.cache.measuring import Verify
from hitproof.engine.soak.books import PROTECTIONS, without
from hitproof.engine.soak.play import play
from hitproof.engine.soak.stage import Settings, Stage

__all__ = ["CASES", "Case", "Row", "switch_off"]

TURNS = 12_000
"""Most turns without a protection; with it a quarter of them are taken."""


@dataclass(frozen=True, slots=True)
class Case:
    """What a protection stands against.

    Args:
        faults: Kinds that are injected; without any, requests, evictions and moves alone bring the danger.
        rates: How often, where it is not as usual.
        profile: The model.
        verify: When bytes are measured; with `use` a measurement stands in for what is switched off.
        prompts: Prompts that the device has room for.
        waits: Share of the requests that wait between decision and use.
    """

    faults: frozenset[str] = frozenset()
    rates: tuple[tuple[str, float], ...] = ()
    profile: str = "gemma-3-27b"
    verify: Verify = "tier_crossing"
    prompts: float = 12.0
    waits: float = 0.3


CASES: dict[str, Case] = {
    "identity": Case(frozenset({"hash_collision"}), (("hash_collision", 0.1),)),
    # What happens to a block between the decision and the use is for the lease and for measurements at the use.
    "block_integrity": Case(frozenset({"torn_copy", "wrong_generation"}), waits=0.0),
    "kernel_interface": Case(frozenset({"other_kernel"})),
    "group_intersection": Case(profile="deepseek-v4-flash", prompts=24.0),
    "hardware_alignment": Case(frozenset({"odd_address"}), (("odd_address", 0.3),)),
    "lease": Case(prompts=5.0),
    "postcondition": Case(frozenset({"torn_copy"}), (("torn_copy", 0.4),)),
}


@dataclass(frozen=True, slots=True)
class Row:
    """What came of one protection.

    Args:
        protection: Its name.
        change: What the edited rulebook does.
        faults: Kinds that were injected.
        profile: The model.
        with_it: Uses in which wrong bytes were read with the shipped rulebook; 0 is wanted.
        leases_with: Leases that were confirmed meanwhile.
        without_it: The same without the protection; the run ends at the first.
        leases_without: Leases up to there.
        example: What was wrong first.
    """

    protection: str
    change: str
    faults: tuple[str, ...]
    profile: str
    with_it: int
    leases_with: int
    without_it: int
    leases_without: int
    example: str

    @property
    def good(self) -> bool:
        """Whether the protection is seen to be what keeps wrong bytes out."""
        return self.with_it == 0 and self.leases_with > 0 and self.without_it > 0


def switch_off(protections: Iterable[str], seed: int = 1, turns: int = TURNS) -> Iterator[Row]:
    """Run the soak of each protection with it and without it.

    Args:
        protections: Names of `PROTECTIONS`.
        seed: Of both runs.
        turns: Turns of the run without it, at most.

    Raises:
        UsageError: There is no such protection.
        InternalError: The run with the shipped rulebook does not add up.
    """
    for name in protections:
        off = without(name)
        case = CASES[name]
        settings = Settings(
            seed=seed,
            profile=case.profile,
            verify=case.verify,
            faults=case.faults,
            rates=dict(case.rates),
            prompts=case.prompts,
            waits=case.waits,
            strict=False,
        )
        shipped = _run(settings, turns // 4)
        edited = _run(replace(settings, rulebook=off), turns)
        yield Row(
            name,
            PROTECTIONS[name],
            tuple(sorted(case.faults)),
            case.profile,
            shipped.judge.wrong_uses,
            shipped.counts["leases confirmed"],
            edited.judge.wrong_uses,
            edited.counts["leases confirmed"],
            edited.judge.example,
        )


def _run(settings: Settings, turns: int) -> Stage:
    with tempfile.TemporaryDirectory(prefix="hitproof-soak-") as folder:
        return play(settings, turns, Path(folder), until=lambda stage: stage.judge.wrong_uses > 0)
