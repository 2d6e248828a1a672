"""What `every_object:` gives to all objects: checks, options, dispositions, shared effects and check sets."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from hitproof.rules.places import Places
from hitproof.rules.vocabulary import Vocabulary
from hitproof.spec.errors import Position, ReferenceNameError
from hitproof.spec.rulefile import CheckDecl, DispositionDecl, EffectDecl, EveryObjectDecl, OptionDecl, RuleFile
from hitproof.spec.yaml_fields import suggest
from hitproof.spec.yaml_tree import Node

__all__ = ["Inherited"]


class Inherited:
    """The `every_object:` sections of all files, each declaration with its place."""

    def __init__(self, parts: list[tuple[Node, RuleFile]], vocabulary: Vocabulary) -> None:
        self._every: list[tuple[EveryObjectDecl, Places]] = [
            (part.every_object, Places(tree, ("every_object",))) for tree, part in parts if part.every_object
        ]
        self._effects: dict[str, tuple[EffectDecl, Places]] = {}
        self.check_sets: dict[str, tuple[str, ...]] = {}
        for decl, at in self._every:
            for name, effect in decl.effects.items():
                vocabulary.claim("effect", name, at("effects", name))
                self._effects[name] = (effect, at.under("effects", name))
            for name, members in decl.check_sets.items():
                vocabulary.claim("check set", name, at("check_sets", name))
                self.check_sets[name] = tuple(members)

    def refuse_unknown(self, checks: Collection[str]) -> None:
        """Refuse a check set that names what is no check of any object.

        Raises:
            ReferenceNameError: With the place of the name.
        """
        for decl, at in self._every:
            for name, members in decl.check_sets.items():
                for i, member in enumerate(members):
                    if member not in checks:
                        raise ReferenceNameError(
                            f"'{member}' is no check of any object",
                            where=at("check_sets", name, i),
                            rule=name,
                            got=member,
                            hint=suggest(member, checks),
                        )

    def checks(self) -> Iterator[tuple[CheckDecl, Places]]:
        """The checks of every object, in file order."""
        for decl, at in self._every:
            yield from ((check, at.under("checks", i)) for i, check in enumerate(decl.checks))

    def options(self) -> Iterator[tuple[OptionDecl, Places]]:
        """The recovery options of every object, in file order."""
        for decl, at in self._every:
            yield from ((option, at.under("recovery", i)) for i, option in enumerate(decl.recovery))

    def dispositions(self) -> Iterator[tuple[DispositionDecl, Places]]:
        """The disposition rules of every object, in file order."""
        for decl, at in self._every:
            yield from ((one, at.under("disposition", i)) for i, one in enumerate(decl.disposition))

    def effect(self, name: str, where: Position, rule: str) -> tuple[EffectDecl, Places]:
        """A shared effect by its name.

        Raises:
            ReferenceNameError: There is none.
        """
        if name not in self._effects:
            raise ReferenceNameError(
                f"'{name}' is no shared effect",
                where=where,
                rule=rule,
                got=name,
                hint=suggest(name, self._effects),
            )
        return self._effects[name]
