"""What stored facts mean under the rulebook of today, and which older rulebooks' segments may still be served."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hitproof.engine.store.answers import Unusable
from hitproof.engine.store.label import Label, Stored
from hitproof.spec.bound import BoundGroup, BoundRulebook
from hitproof.spec.errors import UsageError
from hitproof.spec.facts import Fact, FactType, Value, admit
from hitproof.spec.proof import SEMANTICS_VERSION

__all__ = ["Meaning", "Migration", "type_text"]


@dataclass(frozen=True, slots=True)
class Migration:
    """Somebody's word that segments which were stored under another rulebook may be served under this one.

    Args:
        source: Digest of the rulebook under which they were stored.
        because: Why their facts still mean the same; a plain sentence.
        renames: Facts that have another name today: old name to new name.
    """

    source: str
    because: str
    renames: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Group:
    object: str
    facts: Mapping[str, Fact]
    identity: frozenset[str]


class Meaning:
    """The vocabulary by which facts are stored and read.

    Args:
        bound: The rulebook of today, bound to the model whose segments are stored.
        migrations: Declared ways from other rulebooks.

    Raises:
        UsageError: Two migrations are from one rulebook, one is from the rulebook itself or gives no reason, or renames
            two facts to one or to a fact that no group has.
    """

    def __init__(self, bound: BoundRulebook, migrations: Sequence[Migration] = ()) -> None:
        self.rulebook = bound.rulebook.digest
        self.semantics = SEMANTICS_VERSION
        self._groups = {group.id: _Group(group.object, group.facts, _identity(group)) for group in bound.groups}
        self._migrations = {one.source: one for one in migrations}
        if len(self._migrations) < len(migrations):
            raise UsageError("two migrations are from the same rulebook", expected="one a rulebook")
        known = {name for group in self._groups.values() for name in group.facts}
        for one in migrations:
            _check(one, self.rulebook, known)

    def label(self, key: str, group: str, facts: Mapping[str, Value], sequence: int) -> Label:
        """What a new file says of its segment; facts that are not given are stored as unknown.

        Raises:
            UsageError: The group is none of the model's, a name is no fact of its object, or a value is outside the
                fact's type or domain.
        """
        if group not in self._groups:
            raise UsageError("no such group", got=group, expected=", ".join(sorted(self._groups)))
        of = self._groups[group]
        strange = sorted(set(facts) - set(of.facts))
        if strange:
            raise UsageError(f"{strange[0]} is no fact of the object {of.object}", got=strange[0])
        stored: dict[str, Stored] = {}
        for name, fact in of.facts.items():
            value = facts.get(name)
            admitted = admit(fact, value)
            if value is not None and admitted is None:
                # Identities may be salts, which no message shows.
                shown = type(value).__name__ if fact.type.kind == "identity" else value
                raise UsageError(f"the value of {name} cannot be stored", got=shown, expected=fact.type)
            plain = sorted(admitted) if isinstance(admitted, frozenset) else admitted
            stored[name] = Stored(type_text(fact.type), plain)
        return Label(key, group, of.object, self.rulebook, self.semantics, sequence, stored)

    def facts_of(self, label: Label) -> Mapping[str, Value]:
        """The stored facts under the names and types of today.

        Raises:
            Unusable: They do not mean the same, or nobody has said that they do.
        """
        if label.semantics != self.semantics:
            raise Unusable("other_rulebook", f"semantics version {label.semantics}, this is {self.semantics}")
        renames: Mapping[str, str] = {}
        if label.rulebook != self.rulebook:
            if label.rulebook not in self._migrations:
                raise Unusable("other_rulebook", f"no migration from rulebook {label.rulebook[:12]} is declared")
            renames = self._migrations[label.rulebook].renames
        if label.group not in self._groups:
            raise Unusable("other_meaning", "the model has no such group")
        of = self._groups[label.group]
        if label.object != of.object:
            raise Unusable("other_meaning", f"the group held {label.object!r}, and holds {of.object} today")
        stored = {renames.get(name, name): one for name, one in label.facts.items()}
        if len(stored) < len(label.facts):
            raise Unusable("other_meaning", "two stored facts have one name today")
        lost = sorted(of.identity - set(stored))
        if lost:
            raise Unusable("other_meaning", f"identity needs the fact {lost[0]}, which was not stored")
        return {**dict.fromkeys(of.facts), **{name: _read(of.facts, name, one) for name, one in stored.items()}}


def type_text(kind: FactType) -> str:
    """A type as files tell it; two types have one text only where they are equal."""
    if kind.kind == "enum":
        return f"enum {kind.enum}: {', '.join(kind.members)}"
    return f"{kind.kind} {kind.unit}" if kind.kind in ("int", "real", "set") else kind.kind


def _read(facts: Mapping[str, Fact], name: str, stored: Stored) -> Value:
    if name not in facts:
        raise Unusable("other_meaning", f"the fact {name!r} is not known today")
    fact = facts[name]
    if stored.type != type_text(fact.type):
        raise Unusable("other_meaning", f"{name} was stored as {stored.type!r}, today it is {type_text(fact.type)!r}")
    if stored.value is None:
        return None
    plain = frozenset(stored.value) if isinstance(stored.value, list) else stored.value
    value = admit(fact, plain)
    if value is None:
        raise Unusable("other_meaning", f"the stored value of {name} is outside of what it can be today")
    return value


def _identity(group: BoundGroup) -> frozenset[str]:
    """Facts that tell one segment's content from another's: all identities, and whatever keys are made of."""
    names = {name for name, fact in group.facts.items() if fact.type.kind == "identity"}
    for key in group.keys:
        names.update(key.fields, key.begins.values())
    return frozenset(names & set(group.facts))


def _check(one: Migration, rulebook: str, known: set[str]) -> None:
    if one.source == rulebook:
        raise UsageError("a migration leads from the rulebook to itself", got=one.source[:12])
    if not one.because.strip():
        raise UsageError("a migration says why it is sound", got=one.because, expected="a plain sentence")
    strange = sorted(set(one.renames.values()) - known)
    if strange:
        raise UsageError("a migration renames a fact to one that no group has", got=strange[0])
    if len(set(one.renames.values())) < len(one.renames):
        raise UsageError("a migration gives two facts one name", got=sorted(one.renames.items()))
