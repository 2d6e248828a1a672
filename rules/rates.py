"""Rates files: read against a rulebook's vocabulary, written, and put in place of the rates that it states."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from hitproof.rules.places import Places
from hitproof.spec.bound import BoundRulebook
from hitproof.spec.condition import reads
from hitproof.spec.errors import Position, ReferenceNameError, SchemaError, UnitError, UsageError
from hitproof.spec.facts import Fact, admit
from hitproof.spec.rates import Rate, Rates
from hitproof.spec.rulebook import Rulebook
from hitproof.spec.units import parse_unit
from hitproof.spec.yaml_fields import Fields, suggest, validate
from hitproof.spec.yaml_tree import Node, read_tree

__all__ = ["RateSheet", "dump_rates", "load_rates", "rate_facts", "rates_in_force", "with_rates"]

LIMIT_BYTES = 64 * 1024
MAX_DEPTH = 8
MAX_NODES = 4096
_TIME = parse_unit("us")


@dataclass(frozen=True, slots=True)
class RateSheet:
    """A rates file that fits a rulebook.

    Attributes:
        source: The file's name.
        rates: What stands in it.
        places: Where things stand, for errors.
    """

    source: str
    rates: Rates
    places: Places

    @property
    def values(self) -> dict[str, float]:
        """The value of each run-time fact that the file gives, by its name without a scope."""
        return {name: rate.value for name, rate in self.rates.facts.items()}


def rate_facts(rulebook: Rulebook) -> dict[str, Fact]:
    """The run-time facts that are rates, by name.

    These are microseconds a piece of something, and the microseconds that the price of an option or of prefill reads.
    A time that no price reads, such as a limit, is no rate.
    """
    prices = [rulebook.prefill.cost]
    prices += [
        option.cost for rules in rulebook.objects.values() for option in rules.options if option.cost is not None
    ]
    priced = {path.removeprefix("runtime.") for price in prices for path in reads(price)}
    return {
        name: fact
        for name, fact in rulebook.runtime.items()
        if fact.type.unit.is_time and (fact.type.unit != _TIME or name in priced)
    }


def load_rates(path: Path, rulebook: Rulebook) -> RateSheet:
    """Read a rates file and check it against the vocabulary.

    Args:
        path: The file.
        rulebook: Declares which run-time facts there are, with their units and domains.

    Raises:
        ReferenceNameError: It names a fact that the rulebook does not declare.
        UnitError: The unit of a fact is not the declared one.
        SchemaError: Its shape is wrong, a value lies outside the fact's domain, or a fact is no rate.
        HitproofError: It cannot be read. All with file, line and column.
    """
    tree = read_tree(path, limit_bytes=LIMIT_BYTES, max_depth=MAX_DEPTH, max_nodes=MAX_NODES)
    rates, places = validate(Rates, tree), Places(tree)
    for name, rate in rates.facts.items():
        _check_fact(name, rate, rulebook, places.under("facts", name), _key(tree, "facts", name))
    for name, rate in rates.figures.items():
        parse_unit(rate.unit, where=places("figures", name, "unit"), rule=name)
    return RateSheet(str(path), rates, places)


def with_rates(bound: BoundRulebook, sheet: RateSheet) -> BoundRulebook:
    """The same bound rulebook with a file's rates in place of those of its stated environment.

    Raises:
        UsageError: The file is for another model.
    """
    model = sheet.rates.model
    if model is not None and model != bound.profile.name:
        raise UsageError(
            "these rates are for another model",
            where=sheet.places("model"),
            got=model,
            expected=bound.profile.name,
            hint="calibrate for this model; a file that names no model holds for any",
        )
    environment = {**bound.rulebook.environment, **{f"runtime.{name}": rate for name, rate in sheet.values.items()}}
    return replace(bound, rulebook=replace(bound.rulebook, environment=environment))


def rates_in_force(rulebook: Rulebook, runtime: object, sheet: RateSheet | None) -> dict[str, object]:
    """Which rates a report rests on.

    Args:
        rulebook: Declares the rates.
        runtime: Carries the run-time facts in use as attributes.
        sheet: The file that they were taken from, if any.

    Returns:
        `source`, the file or `rulebook`, and `facts`, each rate with the value in use.
    """
    return {
        "source": "rulebook" if sheet is None else sheet.source,
        "facts": {name: getattr(runtime, name, None) for name in rate_facts(rulebook)},
    }


def dump_rates(rates: Rates) -> str:
    """The rates as YAML text; loading it gives equal rates."""
    plain = rates.model_dump(mode="json", exclude_none=True)
    return yaml.dump(plain, Dumper=_Dumper, sort_keys=False, default_flow_style=False, width=10**9, allow_unicode=True)


def _key(tree: Node, section: str, name: str) -> Position:
    """The place of a name in a section, not of what stands under it."""
    whole = Fields(tree, "a rates file")
    return Fields(whole.required(section), section).position(name)


def _check_fact(name: str, rate: Rate, rulebook: Rulebook, at: Places, key: Position) -> None:
    declared = rate_facts(rulebook).get(name)
    if declared is None:
        if name in rulebook.runtime:
            raise SchemaError(
                "this run-time fact is no rate",
                where=key,
                rule=f"runtime.{name}",
                got=name,
                expected=", ".join(rate_facts(rulebook)),
            )
        raise ReferenceNameError(
            f"'{name}' is no run-time fact of {rulebook.name}",
            where=key,
            rule=name,
            got=name,
            hint=suggest(name, rate_facts(rulebook)),
        )
    if parse_unit(rate.unit, where=at("unit"), rule=f"runtime.{name}") != declared.type.unit:
        raise UnitError(
            "the unit is not that of the fact",
            where=at("unit"),
            rule=f"runtime.{name}",
            got=rate.unit,
            expected=declared.type.unit,
        )
    if admit(declared, rate.value) is None:
        raise SchemaError(
            "the value lies outside the fact's domain",
            where=at("value"),
            rule=f"runtime.{name}",
            got=rate.value,
            expected=f"{declared.lo} to {declared.hi}",
        )


class _Dumper(yaml.SafeDumper):
    """Writes no anchors, as our reader refuses them, and quotes what some reader takes for no text."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    bare = re.fullmatch(r"[a-z][a-z0-9_]*", text) and yaml.safe_load(text) == text
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if bare else '"')


_Dumper.add_representer(str, _text)
