"""A profile is refused when its groups contradict each other, and answers for the constants of each group."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from hitproof.spec.errors import ProfileError
from hitproof.spec.profile import MAX_LAYERS, OBJECTS, Group, Profile, expand_layers


def group(group_id: str, **fields: Any) -> dict[str, Any]:
    """A small valid group, with other fields on top."""
    return {"id": group_id, "object": "full_kv", "layers": [0, 1], **fields}


def profile(*groups: dict[str, Any], **fields: Any) -> Profile:
    """A profile of two layers with these groups."""
    return Profile.model_validate({"profile": "tiny", "title": "Tiny", "layers": 2, "groups": list(groups), **fields})


class TestExpandLayers:
    """Layer numbers and ranges."""

    def test_numbers_and_ranges_become_sorted_layers(self) -> None:
        """Ranges include both ends, and the order in the file does not matter."""
        assert (0, 1, 2, 5, 7, 8) == expand_layers(["7-8", 5, "0-2"])

    @pytest.mark.parametrize(
        "entries",
        [
            "0-2",
            5,
            None,
            [True],
            [1.0],
            [None],
            ["a-b"],
            ["1-"],
            ["-1"],
            [-1],
            ["3-1"],
            [" 0-1"],
            ["0-1\n"],
            [[0]],
            [0, 0],
            ["0-4", 4],
            [MAX_LAYERS],
            ["0-9999"],
            ["0-99999999999999"],
            [2**70],
            [10**6000],
            ["\u0661-\u0662"],
            list(range(MAX_LAYERS + 1)),
        ],
    )
    def test_everything_else_is_refused(self, entries: object) -> None:
        """Wrong types, reversed ranges, doubles and numbers past the cap raise a typed error."""
        with pytest.raises(ProfileError):
            expand_layers(entries)

    @given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=9), st.lists, max_leaves=9))
    def test_no_input_raises_anything_else(self, entries: object) -> None:
        """Whatever is given, the answer is sorted layers without doubles, or a typed error."""
        try:
            layers = expand_layers(entries)
        except ProfileError:
            return
        assert sorted(set(layers)) == list(layers)


class TestGroup:
    """One group's own shape."""

    @pytest.mark.parametrize("object_name", OBJECTS)
    def test_every_object_of_the_vocabulary_is_accepted(self, object_name: str) -> None:
        """The nine objects are the closed list of what a group can hold."""
        assert object_name == Group.model_validate(group("g", object=object_name)).object

    @pytest.mark.parametrize(
        "fields",
        [
            {"object": "kv"},
            {"id": "Window"},
            {"id": "csa-entries"},
            {"id": "from"},
            {"id": "9lives"},
            {"id": "d\u00e9j\u00e0"},
            {"id": ""},
            {"id": "a" * 65},
            {"layers": []},
            {"consumers": [0, 0]},
            {"consumers": 1},
            {"peers": {"self": "g"}},
            {"peers": {"length": "g"}},
            {"peers": {"is": "g"}},
            {"constants": {"window": "128"}},
            {"constants": {"window": 1.5}},
            {"constants": {"window": None}},
            {"constants": {"window": -1}},
            {"constants": {"window": 2**62 + 1}},
            {"constants": {"window": 10**6000}},
            {"constants": {"Window": 1}},
            {"constants": {"lambda": 1}},
            {"constants": {"layer_count": 2}},
            {"note": "n" * 1001},
            {"widow": 128},
        ],
        ids=lambda fields: next(iter(fields)),
    )
    def test_a_field_of_the_wrong_shape_is_refused(self, fields: dict[str, Any]) -> None:
        """Unknown keys and objects, names no condition can read, and constants that are no counts."""
        with pytest.raises(ValidationError):
            Group.model_validate(group("g") | fields)

    def test_a_boolean_constant_stays_a_boolean(self) -> None:
        """`true` and `1` are different constants."""
        constants = Group.model_validate(group("g", constants={"has_v": True, "ratio": 1})).constants
        assert (True, 1) == (constants["has_v"], constants["ratio"])
        assert isinstance(constants["has_v"], bool) and not isinstance(constants["ratio"], bool)

    def test_a_group_cannot_be_changed(self) -> None:
        """Profiles are values."""
        with pytest.raises(ValidationError):
            Group.model_validate(group("g")).id = "other"


class TestProfile:
    """What must hold between the groups."""

    @pytest.mark.parametrize(
        ("groups", "message"),
        [
            ([group("a"), group("a")], "group 'a' stands twice"),
            ([group("a", layers=["0-2"])], "group 'a' names a layer that the model does not have"),
            ([group("a", consumers=[2])], "group 'a' names a layer that the model does not have"),
            ([group("a", consumers=[1])], "layer 1 is a consumer of group 'a' and belongs to group 'a' too"),
            (
                [group("a", layers=[0], consumers=[1]), group("b", layers=[1])],
                "layer 1 is a consumer of group 'a' and belongs to group 'b' too",
            ),
            (
                [group("a", layers=[0], consumers=[1]), group("b", layers=[0], consumers=[1])],
                "layer 1 is a consumer of group 'a' and belongs to group 'b' too",
            ),
            ([group("a", peers={"kv": "b"})], "peer 'kv' of group 'a' refers to no group"),
            ([group("a", peers={"kv": "a"})], "peers form a circle: a -> a"),
            (
                [group("a", peers={"kv": "b"}), group("b", peers={"kv": "c"}), group("c", peers={"kv": "a"})],
                "peers form a circle",
            ),
        ],
    )
    def test_contradictions_are_named(self, groups: list[dict[str, Any]], message: str) -> None:
        """The message names the groups and what is wrong with them."""
        with pytest.raises(ValidationError, match=message):
            profile(*groups)

    @pytest.mark.parametrize(
        "fields",
        [
            {"profile": "Tiny"},
            {"profile": "tiny_one"},
            {"profile": "../tiny"},
            {"profile": "-tiny"},
            {"profile": "tiny.yaml"},
            {"profile": "tiny..2"},
            {"layers": 0},
            {"layers": True},
            {"layers": "2"},
            {"layers": MAX_LAYERS + 1},
            {"groups": []},
            {"groups": [group(f"g{i}") for i in range(257)]},
            {"verified_against_checkpoint": "no"},
            {"verified": False},
        ],
        ids=lambda fields: next(iter(fields)),
    )
    def test_a_field_of_the_wrong_shape_is_refused(self, fields: dict[str, Any]) -> None:
        """Names, counts and keys outside the declared shape raise."""
        with pytest.raises(ValidationError):
            profile(group("g"), **fields)

    def test_a_groups_constants_win_over_the_models(self) -> None:
        """Model-wide constants are inherited, a group's own replace them, layers are counted."""
        tiny = profile(
            group("a", constants={"ranks": 2}),
            group("b", layers=[1]),
            constants={"ranks": 1, "warmable": True},
        )
        assert {"ranks": 2, "warmable": True, "layer_count": 2} == tiny.constants_of("a")
        assert {"ranks": 1, "warmable": True, "layer_count": 1} == tiny.constants_of(tiny.group("b"))

    def test_consumers_own_no_bytes(self) -> None:
        """They are not counted as layers, and may own or read another object's data."""
        tiny = profile(
            group("a", layers=[0], consumers=[1]),
            group("b", object="routing_index", layers=[1], consumers=[0]),
        )
        assert (1, 1) == tuple(tiny.constants_of(name)["layer_count"] for name in ("a", "b"))
        assert ((1,), (0,)) == tuple(member.consumers for member in tiny.groups)

    def test_a_name_may_carry_a_version(self) -> None:
        """A point stands before a number and nowhere else, so that no name looks like that of a file."""
        assert "tiny-3.2" == profile(group("a"), profile="tiny-3.2").name

    def test_peers_come_before_those_who_read_them(self) -> None:
        """The order of evaluation puts each group after its peers."""
        tiny = profile(group("a", peers={"kv": "b"}), group("b", peers={"kv": "c"}), group("c"), group("d"))
        order = [member.id for member in tiny.in_peer_order()]
        assert order.index("c") < order.index("b") < order.index("a")
        assert {"a", "b", "c", "d"} == set(order)

    def test_an_unknown_group_is_a_key_error(self) -> None:
        """Asking for a group that is not there is the caller's mistake."""
        with pytest.raises(KeyError):
            profile(group("a")).group("b")

    def test_the_published_schema_shows_what_a_file_may_say(self) -> None:
        """The JSON Schema lists layers as numbers or texts and constants as numbers or Booleans."""
        schema = Profile.model_json_schema()
        fields = schema["$defs"]["Group"]["properties"]
        assert {"anyOf": [{"type": "integer"}, {"type": "string"}]} == fields["layers"]["items"]
        values = next(iter(fields["constants"].get("patternProperties", {"": fields["constants"]}).values()))
        assert {"integer", "boolean"} == {each["type"] for each in values.get("anyOf", [])}
