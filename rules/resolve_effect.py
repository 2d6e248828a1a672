"""The effect of a recovery option: its own assignments, shared ones, and what its repair keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from hitproof.rules.scopes import Scopes
from hitproof.rules.vocabulary import Vocabulary
from hitproof.spec.condition import Node, Scope, parse_condition
from hitproof.spec.errors import Position, ReferenceNameError, SchemaError
from hitproof.spec.facts import TOKENS
from hitproof.spec.rulebook import Effect, Repair
from hitproof.spec.rulefile import EffectDecl, OptionDecl
from hitproof.spec.yaml_tree import suggest

__all__ = ["EffectReader"]

_At = Callable[..., Position]
NEVER_SET = ("weights", "attention_config", "adapter", "media", "salt", "matched", "recorded")


class EffectReader:
    """Reads effects in the scope of an object."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        scopes: Scopes,
        shared: Callable[[str, Position, str], tuple[EffectDecl, _At]],
    ) -> None:
        self.vocabulary, self.scopes, self.shared = vocabulary, scopes, shared

    def read(self, name: str, decl: OptionDecl, repair: Repair, scope: Scope, at: _At, rule: str) -> Effect:
        """The whole effect of an option of object `name`.

        Raises:
            SchemaError: A repair would set identity, a fingerprint, or a fact that it does not establish.
            ReferenceNameError: A fact is not the object's.
        """
        facts = self.scopes.objects[name]
        sets: dict[str, Node] = {}
        adds: dict[str, Node] = {}
        resets: dict[str, Node] = {}
        chooses: dict[str, Node] = {}
        renews = decl.renews
        for effect, place, is_shared in self._layers(decl, at, rule):
            renews = renews or effect.renews
            for key, target in (("sets", sets), ("adds", adds), ("resets", resets), ("chooses", chooses)):
                values: Mapping[str, object] = getattr(effect, key)
                for fact, text in values.items():
                    if fact not in facts:
                        if is_shared or self._anywhere(fact):
                            continue
                        raise ReferenceNameError(
                            f"'{fact}' is no fact of {name}",
                            where=place(key, fact),
                            rule=rule,
                            got=fact,
                            hint=suggest(fact, facts),
                        )
                    self._refuse(fact, place(key, fact), rule)
                    expect = {"sets": facts[fact].type, "adds": TOKENS, "resets": TOKENS}.get(key, "bool")
                    target[fact] = parse_condition(str(text), scope, expect=expect, where=place(key, fact), rule=rule)
        if renews and "self" in decl.consumes:
            raise SchemaError(
                "a repair that reads its own bytes cannot record a new fingerprint of them",
                where=at("id"),
                rule=rule,
                expected="no `renews` where `consumes` names self",
            )
        return Effect(sets, adds, resets, chooses, renews, repair.keeps & set(facts))

    def _layers(self, decl: OptionDecl, at: _At, rule: str) -> Iterator[tuple[EffectDecl, _At, bool]]:
        for i, name in enumerate(decl.effects):
            effect, place = self.shared(name, at("effects", i), rule)
            yield effect, place, True
        yield decl, at, False

    def _anywhere(self, fact: str) -> bool:
        return any(fact in facts for facts in self.scopes.objects.values())

    def _refuse(self, fact: str, where: Position, rule: str) -> None:
        if fact in NEVER_SET:
            raise SchemaError(
                "a repair sets neither identity nor a recorded fingerprint",
                where=where,
                rule=rule,
                got=fact,
                expected="other facts, or `renews: true` for newly made bytes",
            )
