"""JSON Schema, draft-07, of the files that people write: an editor completes and checks them from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from hitproof.spec.profile import Profile
from hitproof.spec.rates import Rates
from hitproof.spec.rulefile import RepairFile, RulebookFile, RuleFile
from hitproof.spec.scenario import Scenario

__all__ = ["SCHEMA_KINDS", "json_schema"]

DRAFT = "http://json-schema.org/draft-07/schema#"

_TITLES: Mapping[str, str] = {
    "rulefile": "A rule file of hitproof: the root of a rulebook, or one of the files that it includes",
    "repair": "The declaration of a repair",
    "profile": "A model as a list of cache groups",
    "scenario": "A scenario: segments, events, a request, and what must come out",
    "rates": "What a byte, a token and a launch cost on one machine",
}
SCHEMA_KINDS: tuple[str, ...] = tuple(_TITLES)
"""Kinds of files that have a schema."""

_MODELS: Mapping[str, type[BaseModel]] = {
    "repair": RepairFile,
    "profile": Profile,
    "scenario": Scenario,
    "rates": Rates,
}


def json_schema(kind: str) -> dict[str, Any]:
    """The schema of one kind of file, as plain data; it says nothing about what stands inside an expression.

    Args:
        kind: One of `SCHEMA_KINDS`.

    Raises:
        KeyError: There is no such kind.
    """
    head = {"$schema": DRAFT, "title": _TITLES[kind]}
    if kind != "rulefile":
        body = _draft_07(_MODELS[kind].model_json_schema(by_alias=True))
        return {**body, **head}
    # Only the root names the rulebook and includes; an editor shows the errors of the fitting half.
    definitions: dict[str, Any] = {}
    for model in (RulebookFile, RuleFile):
        body = _draft_07(model.model_json_schema(by_alias=True))
        definitions.update(body.pop("definitions"))
        definitions[model.__name__] = body
    return {
        **head,
        "if": {"required": ["rulebook"]},
        "then": {"$ref": "#/definitions/RulebookFile"},
        "else": {"$ref": "#/definitions/RuleFile"},
        "definitions": dict(sorted(definitions.items())),
    }


def _draft_07(node: Any) -> Any:
    """The same schema in the words of draft-07; pydantic writes those of 2020-12."""
    if isinstance(node, list):
        return [_draft_07(item) for item in node]
    if not isinstance(node, dict):
        return node
    made: dict[str, Any] = {}
    for key, value in node.items():
        if key == "prefixItems":
            made.update(items=_draft_07(value), additionalItems=False)
        elif key == "$ref":
            made[key] = str(value).replace("#/$defs/", "#/definitions/")
        elif key in ("$defs", "properties", "patternProperties"):
            # Their keys are names, not words of the schema language.
            name = "definitions" if key == "$defs" else key
            made[name] = {inner: _draft_07(child) for inner, child in value.items()}
        elif key in ("default", "enum", "const"):
            made[key] = value
        elif key != "title":
            made[_words_of_lists(key) if node.get("type") == "array" else key] = _draft_07(value)
    if "patternProperties" in made:
        made.setdefault("additionalProperties", False)
    return made


def _words_of_lists(key: str) -> str:
    """pydantic counts a list that a validator makes as if it were text."""
    return {"minLength": "minItems", "maxLength": "maxItems"}.get(key, key)
