"""Light carriers of facts for the running path: slots, no validation, None for unknown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from hitproof.spec.facts import Fact, Value, admit
from hitproof.spec.rulebook import Rulebook

__all__ = ["FactTypes", "Facts", "SegmentFacts"]


class Facts:
    """Base of all carriers: attributes are facts, `names` lists them."""

    __slots__ = ("__weakref__",)
    names: tuple[str, ...] = ()

    def __init__(self, **values: Value) -> None:
        for name in self.names:
            setattr(self, name, values.pop(name, None))
        if values:
            raise AttributeError(f"no fact {sorted(values)[0]!r} here")

    def copy(self) -> Any:
        """The same facts in a new carrier."""
        twin = object.__new__(type(self))
        for name in self.names:
            setattr(twin, name, getattr(self, name))
        return twin

    def as_dict(self, prefix: str = "") -> dict[str, Value]:
        """Facts by path."""
        return {prefix + name: getattr(self, name) for name in self.names}

    def __repr__(self) -> str:
        known = ", ".join(f"{n}={getattr(self, n)!r}" for n in self.names if getattr(self, n) is not None)
        return f"{type(self).__name__}({known})"


class SegmentFacts(Facts):
    """Facts of a segment, with the group that it belongs to; `state` is what the form machine sees."""

    __slots__ = ("group",)
    group: str
    form: str

    def copy(self) -> Any:
        """The same segment's facts in a new carrier."""
        twin = super().copy()
        twin.group = self.group
        return twin

    @property
    def state(self) -> str:
        """State of the form machine: the group's id, a dot, the form."""
        return f"{self.group}.{self.form}"

    @state.setter
    def state(self, value: str) -> None:
        setattr(self, "form", value.rpartition(".")[2])  # noqa: B010 - a slot of the subclass


def _carrier(name: str, facts: Iterable[str], base: type[Facts] = Facts) -> type[Any]:
    names = tuple(facts)
    made = type(name, (base,), {"__slots__": names, "names": names})
    made.copy = _copier(made)  # type: ignore[attr-defined]
    return made


def _copier(carrier: type[Facts]) -> Callable[[Any], Any]:
    """`copy` without a loop: a look-up copies every segment that it finds."""
    slots = (*carrier.names, *(("group",) if issubclass(carrier, SegmentFacts) else ()))
    lines = ["t = new(carrier)", *(f"t.{name} = s.{name}" for name in slots), "return t"]
    space: dict[str, Any] = {"__builtins__": {}, "new": object.__new__, "carrier": carrier}
    # Names of facts are declared identifiers, never a user's text.
    exec("def copy(s):\n" + "\n".join(f"    {line}" for line in lines), space)
    copier: Callable[[Any], Any] = space["copy"]
    return copier


class FactTypes:
    """The carriers of one rulebook: `segment` (all objects' facts), `request`, `runtime`, `kernel`."""

    def __init__(self, rulebook: Rulebook) -> None:
        self.segment_facts: dict[str, Fact] = {}
        for rules in rulebook.objects.values():
            self.segment_facts.update(rules.facts)
        self.segment = _carrier("Segment", self.segment_facts, SegmentFacts)
        self.request = _carrier("Request", rulebook.request)
        self.runtime = _carrier("Runtime", rulebook.runtime)
        self.kernel = _carrier("Kernel", rulebook.kernel)
        self._declared: Mapping[str, Mapping[str, Fact]] = {
            "segment": self.segment_facts,
            "request": rulebook.request,
            "runtime": rulebook.runtime,
            "kernel": rulebook.kernel,
        }

    def make(self, scope: str, values: Mapping[str, object]) -> Any:
        """A carrier from outside values: each is admitted, what does not fit is unknown.

        Raises:
            AttributeError: A name is no fact of the scope.
        """
        declared = self._declared[scope]
        strange = sorted(set(values) - set(declared))
        if strange:
            raise AttributeError(strange[0])
        admitted = {name: admit(declared[name], value) for name, value in values.items()}
        made: type[Facts] = getattr(self, scope)
        return made(**admitted)

    def segment_of(self, group: str, values: Mapping[str, object]) -> Any:
        """A segment of a group from outside values."""
        segment = self.make("segment", values)
        segment.group = group
        return segment
