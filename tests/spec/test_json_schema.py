"""The published schemas are those of the models, and every shipped file fits its schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from hitproof.cli.schema import SchemaKind, schema_text
from hitproof.spec.json_schema import SCHEMA_KINDS, json_schema
from hitproof.spec.yaml_tree import parse_tree, plain, read_tree
from tests.architecture.source_tree import ROOT

FOLDERS = {"repairs": "repair", "profiles": "profile", "scenarios": "scenario"}
SHIPPED = sorted((ROOT / "rules").rglob("*.yaml"))


def errors(kind: str, document: Any) -> list[str]:
    """Why a document does not fit the schema of its kind."""
    return [error.message for error in Draft7Validator(json_schema(kind)).iter_errors(document)]


@pytest.mark.parametrize("kind", SCHEMA_KINDS)
def test_the_published_schema_is_up_to_date(kind: str) -> None:
    """`docs/schema/` holds what the models say; `make schema` writes it."""
    published = (ROOT / "docs" / "schema" / f"{kind}.schema.json").read_text("utf-8")
    assert published == schema_text(kind), "run `make schema`"


def test_every_kind_can_be_asked_for() -> None:
    """The command knows the kinds that have a schema."""
    assert list(SCHEMA_KINDS) == [kind.value for kind in SchemaKind]


@pytest.mark.parametrize("kind", SCHEMA_KINDS)
def test_the_schema_is_draft_07(kind: str) -> None:
    """The meta-schema accepts it, and no word of a later draft is left."""
    schema = json_schema(kind)
    Draft7Validator.check_schema(schema)
    text = json.dumps(schema)
    assert "http://json-schema.org/draft-07/schema#" == schema["$schema"]
    assert not [word for word in ("$defs", "prefixItems", "unevaluated", "dependentRequired") if word in text]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_shipped_file_fits_its_schema(path: Path) -> None:
    """Rule files, repairs, profiles and scenarios are all accepted."""
    assert [] == errors(FOLDERS.get(path.parent.name, "rulefile"), plain(read_tree(path)))


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("rulefile", "objekts: {}"),
        ("rulefile", "include: [a.yaml]"),
        ("rulefile", "rulebook: mine\nlanguage: 2\ntitle: Mine"),
        ("rulefile", "enums: {Form: [a]}"),
        ("rulefile", "segment: {x: {type: tokens, domain: [0, 1, 2]}}"),
        ("rulefile", "transitions: [{id: move}]"),
        ("repair", "repair: x"),
        ("profile", "profile: x\ntitle: X\nlayers: 1\ngroups: []"),
        ("profile", "profile: x\ntitle: X\nlayers: 1\ngroups: [{id: g, object: full_kv, layers: []}]"),
        ("profile", "profile: x\ntitle: X\nlayers: 1\nconstants: {Window: 1}\n"
         "groups: [{id: g, object: full_kv, layers: [0]}]"),
        ("scenario", "scenario: a\ntitle: A\nprofile: p\nrequest: {length: {}}"),
    ],
)  # fmt: skip
def test_a_wrong_file_does_not_fit(kind: str, text: str) -> None:
    """Unknown keys, wrong values and missing keys are seen by an editor too."""
    assert errors(kind, plain(parse_tree(text)))
