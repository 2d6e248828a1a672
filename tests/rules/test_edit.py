"""One place of a rulebook is replaced, added or deleted, and everything else stays."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitproof.rules.edit import TreePath, edit, find, find_owner
from hitproof.rules.source import RuleSource
from hitproof.spec.errors import Position, ReferenceNameError
from hitproof.spec.yaml_tree import parse_tree, plain

TEXT = """\
objects:
  tail:
    form: windowed
    checks:
      - id: covers
        require: self.start <= 0
      - {id: whole, require: "true"}
    marks: [a, b]
"""
TREE = parse_tree(TEXT, "f.yaml")
VALUES = st.recursive(
    st.booleans() | st.integers(-(10**30), 10**30) | st.text(st.characters(categories=["L", "N", "P", "So", "Zs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", min_size=1), inner, max_size=3),
    max_leaves=6,
)


def value_at(source: RuleSource, path: TreePath) -> object:
    """The value that one of the files has at a path of plain keys and ids."""
    for tree in (*source.files.values(), *source.repairs.values()):
        if find(tree, path) is not None:
            value = plain(tree)
            for part in path:
                value = value[part] if isinstance(value, dict) else next(one for one in value if one["id"] == part)
            return value
    raise LookupError(path)


class TestFind:
    """Places in a tree."""

    @pytest.mark.parametrize(
        ("path", "line", "column"),
        [
            (("objects", "tail", "form"), 3, 5),
            (("objects", "tail", "checks", "covers"), 5, 9),
            (("objects", "tail", "checks", "covers", "require"), 6, 9),
            (("objects", "tail", "checks", 1, "require"), 7, 21),
            (("objects", "tail", "marks", "b"), 8, 16),
        ],
    )
    def test_a_place_is_that_of_the_key_or_the_item(self, path: TreePath, line: int, column: int) -> None:
        """Items are named by id, by text or by index."""
        assert Position("f.yaml", line, column) == find(TREE, path)

    @pytest.mark.parametrize(
        "path",
        [
            ("object",),
            ("objects", "tail", "form", "windowed"),
            ("objects", "tail", "checks", "cover"),
            ("objects", "tail", "checks", 2),
            ("objects", "tail", "checks", -1),
            ("objects", "tail", "marks", "c"),
        ],
    )
    def test_what_is_not_there_is_not_found(self, path: TreePath) -> None:
        """Wrong keys, ids and indices, and paths into a single value."""
        assert find(TREE, path) is None
        with pytest.raises(ReferenceNameError):
            edit(TREE, path, None)

    def test_an_owner_is_a_mapping_below_the_top(self) -> None:
        """A key can be added to a mapping, and to no list, no value and no file's top level."""
        assert Position("f.yaml", 2, 3) == find_owner(TREE, ("objects", "tail", "title"))
        assert find_owner(TREE, ("title",)) is None
        assert find_owner(TREE, ("objects", "tail", "checks", "new")) is None
        assert find_owner(TREE, ("objects", "tail", "form", "new")) is None


class TestEdit:
    """Edits of one tree."""

    def test_a_value_is_replaced_where_it_stands(self) -> None:
        """The new value claims the place of the old one, text positions included."""
        changed = edit(TREE, ("objects", "tail", "checks", "covers", "require"), "length <= 0")
        assert plain(changed)["objects"]["tail"]["checks"][0]["require"] == "length <= 0"
        assert find(changed, ("objects", "tail", "checks", "covers", "require")) == Position("f.yaml", 6, 9)

    def test_an_item_is_deleted_by_its_id(self) -> None:
        """The other items stay, in their order."""
        changed = plain(edit(TREE, ("objects", "tail", "checks", "covers"), None))
        assert ["whole"] == [check["id"] for check in changed["objects"]["tail"]["checks"]]

    def test_a_key_is_deleted(self) -> None:
        """Nothing is left of it."""
        assert "form" not in plain(edit(TREE, ("objects", "tail", "form"), None))["objects"]["tail"]

    def test_a_key_is_added(self) -> None:
        """The mapping grows by one."""
        changed = plain(edit(TREE, ("objects", "tail", "needs"), {"first": "0", "to": "length"}))
        assert {"first": "0", "to": "length"} == changed["objects"]["tail"]["needs"]

    def test_every_node_of_a_new_value_claims_the_old_place(self) -> None:
        """Errors about it lead to the line that was edited."""
        changed = edit(TREE, ("objects", "tail", "marks"), {"list": [{"a": 1}]})
        assert find(TREE, ("objects", "tail", "marks")) == find(changed, ("objects", "tail", "marks"))
        inside = [("objects", "tail", "marks", "list", *more) for more in ((), (0,), (0, "a"))]
        assert {Position("f.yaml", 8, 12)} == {find(changed, path) for path in inside}

    def test_the_old_tree_stays(self) -> None:
        """An edit makes a new tree."""
        edit(TREE, ("objects",), None)
        assert parse_tree(TEXT, "f.yaml") == TREE

    @given(VALUES)
    def test_any_value_comes_back(self, value: object) -> None:
        """What is put in is what stands there."""
        assert value == plain(edit(TREE, ("objects", "tail", "form"), value))["objects"]["tail"]["form"]


class TestRuleSource:
    """Edits of a whole rulebook."""

    def test_the_place_of_the_edit_is_told(self, source: RuleSource) -> None:
        """File, line and column of the key that was edited."""
        path = ("every_object", "checks", "resident", "require")
        changed, where = source.edited(path, "self.tier == device")
        assert "self.tier == device" == value_at(changed, path)
        line = Path(where.file).read_text("utf-8").splitlines()[where.line - 1]
        assert line[where.column - 1 :].startswith("require: self.form == home")

    def test_other_files_stay(self, source: RuleSource) -> None:
        """One tree differs, and the source that was edited is as before."""
        digest = source.digest
        changed, where = source.edited(("transitions", "spill"), None)
        assert [where.file] == [name for name in source.files if source.files[name] != changed.files[name]]
        assert source.repairs == changed.repairs
        assert digest == source.digest != changed.digest

    def test_a_repair_is_edited_like_a_rule(self, source: RuleSource) -> None:
        """Keys that only a repair has are found there."""
        changed, where = source.edited(("dtypes",), ["fp8"])
        assert source.files == changed.files
        assert 1 == sum(source.repairs[name] != changed.repairs[name] for name in source.repairs)
        assert where.file.endswith("boundary_record.yaml")

    @pytest.mark.parametrize("name", ["routing_index", "layer_inputs", "full_kv"])
    def test_an_existing_place_goes_before_a_new_one(self, source: RuleSource, name: str) -> None:
        """Several files have objects; the one that has this object is edited."""
        changed, where = source.edited(("objects", name), {"form": "full"})
        assert where.file.endswith(f"{name}.yaml")
        assert {"form": "full"} == value_at(changed, ("objects", name))

    def test_a_new_key_is_added_to_the_mapping_that_can_have_it(self, source: RuleSource) -> None:
        """The place is that of the mapping which grows."""
        changed, where = source.edited(("objects", "full_kv", "mandatory"), False)
        assert value_at(changed, ("objects", "full_kv", "mandatory")) is False
        assert where.file.endswith("full_kv.yaml")

    @pytest.mark.parametrize(
        ("path", "value"),
        [
            (("objects", "no_such", "form"), "full"),
            (("objects", "full_kv", "mandatory"), None),
            (("transitions", "no_such"), None),
            (("transitions", "no_such"), {"id": "no_such"}),
            (("no_section",), []),
        ],
    )
    def test_a_place_that_no_file_has_is_refused(self, source: RuleSource, path: TreePath, value: object) -> None:
        """Neither deleted nor added; the path is told."""
        with pytest.raises(ReferenceNameError, match="no rule file has this place") as caught:
            source.edited(path, value)
        assert "/".join(path for path in path if isinstance(path, str)) == caught.value.got
