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
from hitproof.spec.yaml_fields import suggest

__all__ = ["EffectReader", "check_against_repair"]

_At = Callable[..., Position]
NEVER_SET = ("weights", "attention_config", "adapter", "media", "salt", "matched", "recorded")


class EffectReader:
    """Reads effects in the scope of an object."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        scopes: Scopes,
        shared: Callable[[str, Position, str], tuple[EffectDecl, _At]],
        *,
        lenient: bool,
    ) -> None:
        self.vocabulary, self.scopes, self.shared, self.lenient = vocabulary, scopes, shared, lenient

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
        if not self.lenient:
            self._check_established({*sets, *adds, *resets, *chooses}, repair, at, rule)
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

    def _check_established(self, changed: set[str], repair: Repair, at: _At, rule: str) -> None:
        """An option changes only what its repair says that it writes."""
        strange = sorted(changed - repair.clobbers - set(repair.establishes))
        if strange:
            raise SchemaError(
                f"the repair '{repair.id}' does not establish '{strange[0]}'",
                where=at("id"),
                rule=rule,
                got=strange[0],
                expected="a fact that the repair's declaration establishes or clobbers",
            )


def check_against_repair(
    decl: OptionDecl, repair: Repair, name: str, peers: Mapping[str, tuple[str, ...]], at: _At, rule: str
) -> None:
    """An option consumes what its repair's declaration consumes, and the repair can make this object.

    Raises:
        SchemaError: It names less, more or something else.
    """

    def same(source: str, declared: str) -> bool:
        return source == declared or declared in peers.get(source, ())

    def fits(alternative: tuple[str, ...]) -> bool:
        return len(alternative) == len(decl.consumes) and all(
            any(same(source, declared) for source in decl.consumes) for declared in alternative
        )

    if not any(map(fits, repair.consumes)):
        raise SchemaError(
            f"the option does not consume what the repair '{repair.id}' needs",
            where=at("consumes"),
            rule=rule,
            got=decl.consumes,
            expected=" or ".join("[" + ", ".join(one) + "]" for one in repair.consumes),
        )
    if decl.level != "full_recompute" and not {"self", name} & set(repair.produces):
        raise SchemaError(
            f"the repair '{repair.id}' does not produce {name}",
            where=at("repair"),
            rule=rule,
            got=repair.id,
            expected=", ".join(repair.produces),
        )
