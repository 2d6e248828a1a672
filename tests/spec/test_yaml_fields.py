"""Typed access to a YAML tree: single values, the keys of a mapping, and whole models."""

from __future__ import annotations

from typing import Any, Literal

import pydantic
import pytest

from hitproof.spec import yaml_fields
from hitproof.spec.errors import Position, ProfileError, SchemaError
from hitproof.spec.yaml_fields import Fields, suggest, validate
from hitproof.spec.yaml_tree import Mapping, Node, Scalar, parse_tree, plain


def entry(text: str, key: str) -> tuple[Position, Node]:
    """The place of a key of the top mapping, and its value node."""
    tree = parse_tree(text, "f.yaml")
    assert isinstance(tree, Mapping)
    return tree.entries[key]


class TestExpectations:
    """Typed access to a single node."""

    @pytest.mark.parametrize(
        ("ask", "good", "value"),
        [
            (yaml_fields.expect_text, "word", "word"),
            (yaml_fields.expect_text, "'7'", "7"),
            (yaml_fields.expect_text_list, "[a, no]", ("a", "no")),
        ],
    )
    def test_a_fitting_value_is_returned(self, ask: Any, good: str, value: object) -> None:
        """Each function gives the Python value."""
        assert value == ask(entry(f"k: {good}", "k")[1], "k")

    @pytest.mark.parametrize(
        ("ask", "bad", "got", "expected"),
        [
            (yaml_fields.expect_text, "7", "7", "text"),
            (yaml_fields.expect_text, "", "nothing", "text"),
            (yaml_fields.expect_text, "' '", '" "', "text"),
            (yaml_fields.expect_text, "[a]", "a list", "text"),
            (yaml_fields.expect_list, "a", "a", "a list"),
            (yaml_fields.expect_mapping, "[a]", "a list", "a mapping"),
        ],
    )
    def test_another_value_is_refused_with_all_that_helps(self, ask: Any, bad: str, got: str, expected: str) -> None:
        """The error carries the place, the rule, what stood there and what should have."""
        with pytest.raises(SchemaError) as caught:
            ask(entry(f"k: {bad}", "k")[1], "the window", "tail/covers")
        assert "the window has the wrong shape" == caught.value.message
        assert (got, expected, "tail/covers") == (caught.value.got, caught.value.expected, caught.value.rule)
        assert 1 == caught.value.where.line

    def test_an_item_of_a_text_list_is_pointed_at(self) -> None:
        """The place is the item's, not the list's."""
        with pytest.raises(SchemaError, match="an item of mends") as caught:
            yaml_fields.expect_text_list(entry("k: [a, 7]", "k")[1], "mends")
        assert Position("f.yaml", 1, 8) == caught.value.where

    def test_a_suggestion_lists_what_is_known_when_nothing_is_close(self) -> None:
        """Also for a name that is too long to compare, and for no known names at all."""
        assert "known: alpha, beta" == suggest("zzz", ["beta", "alpha"])
        assert "known: alpha" == suggest("alpha" * 1000, ["alpha"])
        assert suggest("x", []) is None


class TestFields:
    """Typed access to the keys of a mapping."""

    def test_fields_give_the_nodes_that_were_asked_for(self) -> None:
        """Present keys give nodes, an absent optional key gives None, and nothing is left over."""
        fields = Fields(parse_tree("id: a\nwhen:\n", "f.yaml"), "a check")
        assert "a" == plain(fields.required("id"))
        assert isinstance(fields.optional("when"), Scalar)
        assert fields.optional("cost") is None
        assert Position("f.yaml", 2, 1) == fields.position("when")
        assert Position("f.yaml", 1, 1) == fields.position("cost")
        fields.finish()

    def test_an_unknown_key_is_named_with_its_place_and_the_closest_key(self) -> None:
        """The place is the key's, not the mapping's."""
        fields = Fields(parse_tree("id: a\nbecuase: x", "f.yaml"), "a check", "tail/covers")
        fields.required("id")
        fields.optional("because")
        with pytest.raises(SchemaError, match="unknown key `becuase`") as caught:
            fields.finish()
        assert Position("f.yaml", 2, 1) == caught.value.where
        assert ("becuase", "tail/covers") == (caught.value.got, caught.value.rule)
        assert "did you mean `because`?" == caught.value.hint

    def test_a_missing_key_is_named_with_the_place_of_the_mapping(self) -> None:
        """A key that looks like a misspelling of it is pointed out."""
        tree = parse_tree("checks:\n  - {id: a, requires: b}", "f.yaml")
        check = tree.entries["checks"][1].items[0]  # type: ignore[attr-defined]
        with pytest.raises(SchemaError, match="a check lacks the key `require`") as caught:
            Fields(check, "a check").required("require")
        assert Position("f.yaml", 2, 5) == caught.value.where
        assert "is `requires` meant to be it?" == caught.value.hint

    def test_only_a_mapping_has_fields(self) -> None:
        """A list in its place is a SchemaError at once."""
        with pytest.raises(SchemaError, match="a check has the wrong shape"):
            Fields(parse_tree("[a]", "f.yaml"), "a check")

    def test_the_rule_may_be_set_late(self) -> None:
        """The id of a rule is itself read from its fields."""
        fields = Fields(parse_tree("id: a\nx: 1", "f.yaml"), "a check")
        fields.rule = f"tail/{plain(fields.required('id'))}"
        with pytest.raises(SchemaError) as caught:
            fields.finish()
        assert "tail/a" == caught.value.rule


class Part(pydantic.BaseModel):
    """A nested model."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)
    id: str
    window: int = 0

    @pydantic.field_validator("id")
    @classmethod
    def check(cls, value: str) -> str:
        """Refuse two ids, in the two ways a validator may."""
        if value == "plain":
            raise ValueError("this id is taken")
        if value == "ours":
            raise ProfileError("this id is taken", hint="take another")
        return value


class Whole(pydantic.BaseModel):
    """A model with the shapes that rule files use."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)
    name: str
    warm: bool = False
    kind: Literal["a", "b"] = "a"
    parts: tuple[Part, ...] = ()
    roles: dict[str, int] = {}
    choice: int | Part = 0


class Choice(pydantic.BaseModel):
    """A field of two shapes."""

    other: str | Part


class TestValidate:
    """A tree becomes a pydantic model."""

    def test_a_fitting_tree_becomes_the_model(self) -> None:
        """Lists become tuples, nested mappings nested models."""
        tree = parse_tree("name: x\nparts: [{id: p, window: 128}]\nroles: {kv: 1}", "f.yaml")
        assert Whole(name="x", parts=(Part(id="p", window=128),), roles={"kv": 1}) == validate(Whole, tree)

    @pytest.mark.parametrize(
        ("text", "line", "column", "words"),
        [
            ("name: x\nwarm: yes", 2, 7, "`warm`"),
            ("name: x\nwarm: 1", 2, 7, "got: 1"),
            ("name: 7", 1, 7, "valid string"),
            ("name: x\nkind: c", 2, 7, "'a' or 'b'"),
            ("name: x\nparts:\n  - {id: p}\n  - {id: p, window: '5'}", 4, 21, "`parts[1].window`"),
            ("name: x\nparts:\n  - {window: 5}", 3, 5, "the key `parts[0].id` is missing"),
            ("name: x\nparts: 3", 2, 8, "`parts`"),
            ("name: x\nroles: {kv: 1.5}", 2, 13, "`roles.kv`"),
            ("name: x\nchoice: {id: 3}", 2, 14, "`choice.id`"),
            ("name: x\nparts: [{id: plain}]", 2, 14, "this id is taken"),
            ("warm: true", 1, 1, "the key `name` is missing"),
            ("- name: x", 1, 1, "the value does not fit"),
        ],
    )
    def test_a_mismatch_is_told_with_the_place_of_the_value(
        self, text: str, line: int, column: int, words: str
    ) -> None:
        """The place is found by walking the tree; the rule is passed on."""
        with pytest.raises(SchemaError) as caught:
            validate(Whole, parse_tree(text, "f.yaml"), "some/rule")
        assert Position("f.yaml", line, column) == caught.value.where
        assert words in str(caught.value)
        assert "some/rule" == caught.value.rule

    @pytest.mark.parametrize(
        ("text", "line", "column", "hint"),
        [
            ("nmae: x", 1, 1, "did you mean `name`?"),
            ("name: x\nparts: [{id: p, windw: 3}]", 2, 17, "did you mean `window`?"),
            ("name: x\nparts: [{id: p, zzz: 3}]", 2, 17, "known: id, window"),
        ],
    )
    def test_an_unknown_key_comes_first_and_knows_its_neighbours(
        self, text: str, line: int, column: int, hint: str
    ) -> None:
        """A misspelt key explains the missing one; the hint names keys of the same model."""
        with pytest.raises(SchemaError, match="unknown key") as caught:
            validate(Whole, parse_tree(text, "f.yaml"))
        assert Position("f.yaml", line, column) == caught.value.where
        assert hint == caught.value.hint

    def test_an_error_of_ours_keeps_its_class_and_gains_a_place(self) -> None:
        """What a validator raised is not flattened into a SchemaError."""
        with pytest.raises(ProfileError, match="this id is taken") as caught:
            validate(Whole, parse_tree("name: x\nparts: [{id: ours}]", "f.yaml"))
        assert Position("f.yaml", 2, 14) == caught.value.where
        assert "take another" == caught.value.hint

    def test_of_several_shapes_the_one_that_fits_best_is_told(self) -> None:
        """What is wrong inside a mapping says more than that a text could have stood there."""
        with pytest.raises(SchemaError, match=r"`other\.window`") as caught:
            validate(Choice, parse_tree("other: {id: a, window: x}", "f.yaml"))
        assert Position("f.yaml", 1, 24) == caught.value.where
        with pytest.raises(ProfileError, match="this id is taken"):
            validate(Choice, parse_tree("other: {id: ours}", "f.yaml"))

    def test_of_two_mistakes_the_first_is_told(self) -> None:
        """However deep the second one lies."""
        with pytest.raises(SchemaError, match="`name`"):
            validate(Whole, parse_tree("name: [x]\nparts: [{id: p, window: x}]", "f.yaml"))
