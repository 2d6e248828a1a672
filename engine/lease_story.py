"""Leases as a scenario tells them: who takes, checks, confirms, reads and releases, between the events of segments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hitproof.engine.lease import Lease
from hitproof.spec.bound import BoundRulebook
from hitproof.spec.condition import interpret
from hitproof.spec.errors import SchemaError
from hitproof.spec.facts import Value
from hitproof.spec.leasing import BESIDE
from hitproof.spec.scenario import LeaseEvent, LeaseExpectation

__all__ = ["LeaseStory"]

Ready = Callable[[Sequence[str], int], bool]
"""Whether each of these groups passes every check at a length."""


class _Reading:
    """The device, as a fence: it is done when the story says so."""

    def __init__(self) -> None:
        self.going = False

    def done(self) -> bool:
        """Whether the device has read."""
        return not self.going

    def wait(self) -> None:
        """Nobody waits in a story: a release stops where it would have to."""


class _Told:
    """One lease of the story, with what its segments were when they were noted."""

    def __init__(self, lease: Lease, segments: Mapping[str, Any]) -> None:
        self.lease, self.segments = lease, segments
        self.noted = {name: segment.copy() for name, segment in segments.items()}
        self.device = _Reading()
        self.checked: bool | None = None
        self.confirmed: bool | None = None

    def changed(self, facts: Mapping[str, Any]) -> dict[str, list[str]]:
        """By segment, the facts of content and place that are no longer as noted; segments without any are left out."""
        found = {
            name: sorted(
                fact
                for fact in set(facts[segment.group].facts) - BESIDE
                if getattr(segment, fact) != getattr(self.noted[name], fact)
            )
            for name, segment in self.segments.items()
        }
        return {name: names for name, names in found.items() if names}

    def epochs_kept(self) -> bool:
        """Whether no segment's epoch has moved since it was noted."""
        return all(segment.epoch == self.noted[name].epoch for name, segment in self.segments.items())


class LeaseStory:
    """Plays every lease of a scenario with the engine's own `Lease`.

    Args:
        bound: The rulebook.
        segments: Segments by id.
        ready: Asked at a check.
    """

    def __init__(self, bound: BoundRulebook, segments: Mapping[str, Any], ready: Ready) -> None:
        self._bound, self._segments, self._ready = bound, segments, ready
        self._groups = {group.id: group for group in bound.groups}
        self._leases: dict[str, _Told] = {}

    def play(self, event: LeaseEvent) -> None:
        """One step of one lease.

        Raises:
            SchemaError: The rulebook declares no leases, or the lease was not taken, or is taken twice.
        """
        if event.does == "take":
            self._take(event)
            return
        told = self._told(event.lease)
        match event.does:
            case "check":
                told.checked = self._check(told, event.at)
            case "confirm":
                told.confirmed = told.lease.held and told.lease.confirm()
            case "use":
                # Nobody launches a read of what was not found fit and unmoved.
                told.device.going = bool(told.checked and told.confirmed and told.lease.held)
            case "complete":
                told.device.going = False
            case _:
                told.lease.begin_release(told.device)

    def changed(self, lease: str) -> dict[str, list[str]]:
        """By segment of a lease, the facts of content and place that are no longer as noted.

        Raises:
            SchemaError: The lease was not taken.
        """
        return self._told(lease).changed(self._groups)

    def states(self) -> dict[str, dict[str, bool | None]]:
        """What each lease has come to so far, by its name."""
        return {
            name: {
                "checked": told.checked,
                "confirmed": told.confirmed,
                "reading": told.device.going,
                "released": told.lease.released,
            }
            for name, told in self._leases.items()
        }

    def noted(self, lease: str) -> Mapping[str, Any]:
        """The segments of a lease as they were when they were noted, by id.

        Raises:
            SchemaError: The lease was not taken.
        """
        return self._told(lease).noted

    def violated(self) -> set[str]:
        """Ids of invariants over leases that surely fail for a confirmed one that is still needed."""
        return {name for told in self._leases.values() for name in self._violated(told)}

    def differences(self, expected: Mapping[str, LeaseExpectation]) -> list[str]:
        """Every difference from what leases must have come to."""
        found = []
        for name, expect in expected.items():
            told = self._told(name)
            got = {
                "checked": told.checked,
                "confirmed": told.confirmed,
                "reading": told.device.going,
                "released": told.lease.released,
                "epochs_kept": told.epochs_kept(),
                "changed": told.changed(self._groups),
                "violates": self._violated(told),
            }
            for key, wanted in expect.model_dump(exclude_none=True).items():
                same = _within(wanted, told.changed(self._groups)) if key == "changed" else wanted == got[key]
                if not same:
                    found.append(f"lease {name}, {key}: expected {wanted}, got {got[key]}")
        return found

    def _violated(self, told: _Told) -> list[str]:
        found: set[str] = set()
        needed = told.confirmed and (told.lease.held or told.device.going)
        for name, segment in told.segments.items() if needed else ():
            env: dict[str, Value] = {
                **segment.as_dict("self."),
                "lease.confirmed": True,
                "lease.epoch": told.noted[name].epoch,
            }
            kind = self._groups[segment.group].object
            constants = {f"group.{key}": value for key, value in self._groups[segment.group].constants.items()}
            found |= {
                one.id
                for one in self._bound.invariants
                if one.over == "lease" and interpret(one.require[kind], {**constants, **env}) is False
            }
        return sorted(found)

    def _take(self, event: LeaseEvent) -> None:
        leasing = self._bound.rulebook.leasing
        if leasing is None:
            raise SchemaError("the rulebook does not say how leases are taken", expected="leasing")
        if event.lease in self._leases:
            raise SchemaError("a lease is taken once", got=event.lease, rule=event.lease)
        held = {name: self._segments[name] for name in event.segments}
        self._leases[event.lease] = _Told(Lease.take(held.values(), leasing), held)

    def _check(self, told: _Told, at: int | None) -> bool:
        """At a length, whether all groups are ready; without one, whether every segment lies where it can be read."""
        if at is not None:
            return self._ready(sorted({segment.group for segment in told.segments.values()}), at)
        homes = {name: self._groups[segment.group].home for name, segment in told.segments.items()}
        return all(segment.form in (homes[name], "demoted") for name, segment in told.segments.items())

    def _told(self, name: str) -> _Told:
        if name not in self._leases:
            raise SchemaError("a lease is used that was not taken", got=name, expected=", ".join(self._leases))
        return self._leases[name]


def _within(wanted: Mapping[str, list[str]], got: Mapping[str, list[str]]) -> bool:
    """Every fact that must have changed has."""
    return all(set(facts) <= set(got.get(name, ())) for name, facts in wanted.items())
