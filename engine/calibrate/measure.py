"""All measurements of one machine, put together as a rates file; what is not measured is listed as stated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from hitproof.engine.calibrate.accelerator import find_torch, measure_accelerator
from hitproof.engine.calibrate.checksums import measure_checksums
from hitproof.engine.calibrate.disk import check_folder, measure_disk
from hitproof.engine.calibrate.machine import cache_bytes, describe_machine, memory_bytes
from hitproof.engine.calibrate.memory import MIB, buffer_bytes, measure_memory
from hitproof.engine.calibrate.prefill import measure_prefill
from hitproof.engine.calibrate.sampling import Stopwatch
from hitproof.rules.rates import rate_facts
from hitproof.spec.errors import ReferenceNameError, SchemaError
from hitproof.spec.facts import admit
from hitproof.spec.profile import Profile
from hitproof.spec.rates import Rate, Rates
from hitproof.spec.rulebook import Rulebook
from hitproof.spec.units import parse_unit
from hitproof.spec.yaml_fields import suggest

__all__ = ["Prefill", "calibrate", "complete"]

CHECKSUM_BYTES = 64 * MIB
DISK_BYTES = 256 * MIB


@dataclass(frozen=True, slots=True)
class Prefill:
    """A prefill that is to be measured.

    Attributes:
        profile: The model, for its number of layers.
        active_parameters: Parameters that take part in one token; a profile does not hold them.
    """

    profile: Profile
    active_parameters: int


def calibrate(
    rulebook: Rulebook,
    *,
    watch: Stopwatch | None = None,
    disk: Path | None = None,
    given: Mapping[str, float] | None = None,
    prefill: Prefill | None = None,
    model: str | None = None,
    tell: Callable[[str], object] = lambda _: None,
) -> Rates:
    """Measure this machine's rates.

    Args:
        rulebook: Declares the rates, and states those that are not measured.
        watch: Times everything.
        disk: A folder on the disk to be measured; without it the disk is not.
        given: Rates that are known, by the fact's name; they are not measured.
        prefill: The prefill that is to be measured; without it that is not.
        model: The model that the rates are for; without it they are for any.
        tell: Hears what is measured next.

    Raises:
        MissingFileError, UsageError: The disk cannot be measured in that folder.
        ReferenceNameError, SchemaError: A given rate is no rate of the rulebook, or outside its domain.
        UsageError: The prefill is to be measured, and torch is not installed.
    """
    watch = watch or Stopwatch()
    if disk is not None:
        check_folder(disk, DISK_BYTES)
    torch = find_torch()
    machine = describe_machine(torch)
    found: dict[str, Rate] = {}
    if prefill is not None:
        # First, as it is the one that may be refused for want of a library.
        tell("measuring one block of a model")
        layers, active = prefill.profile.layers, prefill.active_parameters
        found |= measure_prefill(watch, torch, layers=layers, active_parameters=active)
    tell("measuring copies")
    size = buffer_bytes(cache_bytes(), memory_bytes())
    if machine.accelerator is None:
        found |= measure_memory(watch, size)
    else:
        found |= measure_accelerator(watch, torch, size)
    tell("measuring checksums")
    found |= measure_checksums(watch, CHECKSUM_BYTES)
    if disk is not None:
        tell("measuring the disk")
        found |= measure_disk(watch, disk, DISK_BYTES)
    facts, figures = complete(rulebook, found, given or {})
    made = datetime.now(UTC).isoformat(timespec="seconds")
    return Rates(rates=1, rulebook=rulebook.name, model=model, made=made, machine=machine, facts=facts, figures=figures)


def complete(
    rulebook: Rulebook, found: Mapping[str, Rate], given: Mapping[str, float]
) -> tuple[dict[str, Rate], dict[str, Rate]]:
    """Every rate of a rulebook, in its order, and the measured figures that no fact of it takes.

    What is given stands before what is measured, and that before what the rulebook states. A rate that it does not
    even state is left out.

    Raises:
        ReferenceNameError, SchemaError: A given rate is no rate of the rulebook, or outside its domain.
    """
    declared = rate_facts(rulebook)
    for name in sorted(set(given) - set(declared)):
        raise ReferenceNameError(
            f"'{name}' is no rate of {rulebook.name}", rule=name, got=name, hint=suggest(name, declared)
        )
    facts: dict[str, Rate] = {}
    for name, fact in declared.items():
        unit, stated = str(fact.type.unit), rulebook.environment.get(f"runtime.{name}")
        measured = found.get(name)
        if name in given:
            value = admit(fact, given[name])
            if not isinstance(value, float):
                raise SchemaError(
                    "the given rate lies outside the fact's domain",
                    rule=f"runtime.{name}",
                    got=given[name],
                    expected=f"{fact.lo} to {fact.hi} {unit}",
                )
            facts[name] = Rate(value=value, unit=unit, origin="given", how="given by hand")
        elif measured is not None and parse_unit(measured.unit) == fact.type.unit:
            facts[name] = measured
        elif isinstance(stated, float):
            facts[name] = Rate(value=stated, unit=unit, origin="stated", how=f"the example of {rulebook.name}")
    figures = {name: rate for name, rate in sorted(found.items()) if facts.get(name) is not rate and name not in given}
    return facts, figures
