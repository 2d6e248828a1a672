"""The form machine as a table of generated functions: the fast twin of `machine`, for bulk changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from hitproof.engine.event import PINS_ALLOWED, EventContext, ImpossibleEventError, admit_argument, paths_read
from hitproof.spec.bound import BoundGroup, BoundRulebook
from hitproof.spec.condition import Literal, Node, python_number, python_true
from hitproof.spec.facts import Fact, admit
from hitproof.spec.rulebook import Transition

__all__ = ["Row", "TransitionTable"]


BUILTINS = {"abs": abs, "bool": bool, "float": float, "max": max, "min": min}
"""All that generated code may call."""


@dataclass(frozen=True, slots=True)
class Row:
    """One transition from one form.

    Args:
        transition: The bound transition.
        fire: Called as (segment, context); changes the segment and answers True, or answers False.
    """

    transition: Transition
    fire: Callable[[Any, EventContext], bool]


class TransitionTable:
    """All transitions of a bound rulebook by (group, form, trigger), in file order.

    Segments must hold admitted facts, as `FactTypes` makes them. The table holds no segment; whoever shares
    segments between threads guards each event with the lock that guards their pins.
    """

    def __init__(self, bound: BoundRulebook) -> None:
        rows: dict[tuple[str, str, str], tuple[Row, ...]] = {}
        for group in bound.groups:
            for transition in group.transitions:
                row = Row(transition, _Writer(transition, group, bound.rulebook.engine_owned).function())
                for source in dict.fromkeys(transition.sources):
                    key = (group.id, source, transition.id)
                    rows[key] = (*rows.get(key, ()), row)
        self.rows = rows

    def fire(self, segment: Any, trigger: str, context: EventContext) -> bool:
        """Let an event happen to a segment; means the same as `FormMachine.fire`.

        Raises:
            ImpossibleEventError: The segment's object does not have the event, or not in this form.
        """
        rows = self.rows.get((segment.group, segment.form, trigger))
        if rows is None:
            raise ImpossibleEventError.of(segment, trigger)
        return any(row.fire(segment, context) for row in rows)

    def fire_all(
        self, segments: Iterable[Any], trigger: str, context: EventContext | Callable[[Any], EventContext]
    ) -> list[bool]:
        """Let the same event happen to many segments, one after another.

        Args:
            segments: The segments, each once.
            trigger: Id of the transition.
            context: What the events read, or a function that gives it for each segment (its group's kernel).

        Returns:
            For each segment, whether it changed.

        Raises:
            ImpossibleEventError: For one segment the event is impossible; then none has changed.
        """
        known = self.rows
        pairs = []
        for segment in segments:
            rows = known.get((segment.group, segment.form, trigger))
            if rows is None:
                raise ImpossibleEventError.of(segment, trigger)
            pairs.append((segment, rows))
        if isinstance(context, EventContext):
            return [any(row.fire(segment, context) for row in rows) for segment, rows in pairs]
        return [any(row.fire(segment, context(segment)) for row in rows) for segment, rows in pairs]


class _Writer:
    """Writes one transition as a flat function of (s: segment, x: context)."""

    def __init__(self, transition: Transition, group: BoundGroup, owned: frozenset[str]) -> None:
        self.transition, self.facts, self.owned = transition, group.facts, owned
        self.space: dict[str, Any] = {"__builtins__": BUILTINS, "admit": admit_argument}

    def function(self) -> Callable[[Any, EventContext], bool]:
        """The function; it assigns nothing before it has worked out everything."""
        lines = [*self._guard(), *self._read(), *self._when(), *self._effects(), "return True"]
        source = "def fire(s, x):\n" + "\n".join("    " + line for line in lines)
        # The text comes from checked trees and declared names only, never from a user's string.
        exec(compile(source, f"<transition {self.transition.id}>", "exec"), self.space)
        made: Callable[[Any, EventContext], bool] = self.space["fire"]
        return made

    def _guard(self) -> list[str]:
        lines = []
        pins = PINS_ALLOWED[self.transition.pins]
        if pins is not None:
            lines.append(f"if s.pins != {pins}: return False")
        if self.transition.owner == "sole":
            lines.append("if x.sole is not True: return False")
        if self.transition.donor:
            lines += ["d = x.donor", "if d is None or d is s or d.group != s.group: return False"]
        return lines

    def _read(self) -> list[str]:
        paths = paths_read(self.transition)
        asked = {path.partition(".")[2] for path in paths if path.startswith("event.")}
        given = asked | set(self.transition.takes)
        lines = []
        for scope, local in (("runtime", "r"), ("kernel", "k")):
            if any(path.startswith(scope + ".") for path in paths):
                lines.append(f"{local} = x.{scope}")
        if given:
            lines.append("a = x.arguments")
        for fact in sorted(given):
            self.space[f"fact_{fact}"] = self.facts[fact]
            lines.append(f"e_{fact} = admit(fact_{fact}, a.get({fact!r}))")
        return lines

    def _name(self, path: str) -> tuple[str, bool]:
        scope, _, fact = path.partition(".")
        if scope == "self":
            return f"s.{fact}", fact not in self.owned
        if scope == "donor" and self.transition.donor:
            return f"d.{fact}", fact not in self.owned
        if scope in ("runtime", "kernel"):
            return f"{scope[0]}.{fact}", True
        return (f"e_{fact}", True) if scope == "event" else ("None", True)

    def _when(self) -> list[str]:
        if self.transition.when is None:
            return []
        return [f"if not ({python_true(self.transition.when, self._name, trusted=True)}): return False"]

    def _effects(self) -> list[str]:
        transition = self.transition
        values: dict[str, list[str]] = {}
        if not transition.keeps_prefix:
            values["epoch"] = ["s.epoch + 1", *self._inside("epoch")]
        if transition.donor:
            copied = (fact for fact in self.facts if fact not in ("form", "epoch", "pins"))
            values |= {fact: [f"d.{fact}"] for fact in copied} | {"pins": ["0"]}
        values |= {fact: [f"e_{fact}"] for fact in transition.takes}
        values |= {fact: self._value(fact, node) for fact, node in transition.sets.items()}
        values |= {fact: ["None"] for fact in transition.forgets}
        values["form"] = [repr(transition.target)]
        lines = [f"n_{fact} = {text}" for fact, (text, *_) in values.items()]
        lines += [check for _, *checks in values.values() for check in checks]
        lines += [f"if n_{fact} is None: return False" for fact in sorted(self.owned & set(values))]
        return lines + [f"s.{fact} = n_{fact}" for fact in values]

    def _value(self, fact: str, node: Node) -> list[str]:
        """Text of a fact's new value, and lines that make it unknown where it leaves the fact's domain."""
        if isinstance(node, Literal):
            return [repr(admit(self.facts[fact], node.value))]
        value, known = python_number(node, self._name, trusted=True)
        if self.facts[fact].type.kind == "real":
            value = f"float({value})"
        return [f"({value}) if {known} else None", *self._inside(fact)]

    def _inside(self, fact: str) -> list[str]:
        declared: Fact = self.facts[fact]
        if not declared.type.is_number:
            return []
        outside = f"n_{fact} is not None and not {declared.lo} <= n_{fact} <= {declared.hi}"
        return [f"if {outside}: n_{fact} = None"]
