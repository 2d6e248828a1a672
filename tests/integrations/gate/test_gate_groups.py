"""The model's profile cut into the groups of a framework."""

from __future__ import annotations

import pytest

from hitproof.engine import load
from hitproof.integrations.gate import GroupBlocks, gate_profile
from hitproof.rules.profiles import load_profile
from hitproof.spec.errors import ProfileError
from hitproof.spec.profile import Group
from tests.integrations.gate.frames import GEMMA, QWEN, gemma, qwen


def test_each_group_of_the_framework_is_one_of_the_profile() -> None:
    """Groups of one kind of attention share its bytes by their layers, and keep its rules and constants."""
    whole, cut = gemma(), gate_profile(gemma(), GEMMA)
    near, far = cut.group("window_near"), cut.group("window_far")
    total = whole.group("window").constants["row_bytes"]
    assert near.constants["row_bytes"] + far.constants["row_bytes"] == total
    assert (near.layers, far.layers) == ((0, 2), (1, 3, 4))
    assert near.constants["window"] == 64 and near.constants["stride"] == 2048 and near.constants["alignment"] == 64
    assert near.peers == {"boundary": "window_boundary"}
    assert load(cut).bound.group("window_far").object == "uncompressed_tail"


def test_states_are_shared_by_layers_too() -> None:
    """A recurrent group keeps the bytes of its states."""
    cut = gate_profile(qwen(), QWEN)
    assert cut.group("linear_linear").constants["state_bytes"] == qwen().group("linear").constants["state_bytes"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"full": GroupBlocks((5, 0), 16, 2048)}, "one kind of attention"),
        ({"full": GroupBlocks((), 16, 2048)}, "no layers"),
        ({"near": GroupBlocks((0,), 16, 2048)}, "every layer"),
        ({"near": GroupBlocks((0, 2, 3), 16, 2048)}, "every layer"),
        ({"full": GroupBlocks((5,), 16, 2047)}, "fewer bytes"),
        ({"Near": GroupBlocks((0, 2), 16, 2048)}, "one name"),
    ],
)
def test_groups_that_are_not_the_models_are_refused(change: dict[str, GroupBlocks], message: str) -> None:
    """Mixed kinds, missing or doubled layers, and blocks too small for their rows are errors at the start."""
    with pytest.raises(ProfileError, match=message):
        gate_profile(gemma(), {**GEMMA, **change})


def test_peers_follow_their_layers() -> None:
    """Of a group that was cut apart, a reader's peer is the part with the reader's layers, or it is refused."""
    profile = load_profile("deepseek-v4-flash")
    layers = profile.group("csa_entries").layers
    index = Group(id="one", object="routing_index", layers=layers[:10], peers={"kv": "csa_entries"})
    halves = [index, index.model_copy(update={"id": "two", "layers": layers[10:]})]
    groups = tuple(group for group in profile.groups if "csa" not in group.id)
    groups += (profile.group("csa_entries"), *halves)
    halved = {"a": layers[:10], "b": layers[10:]}
    cut = {name: GroupBlocks(half, 256, 37440, part_of="csa_entries") for name, half in halved.items()}
    made = gate_profile(profile.model_copy(update={"groups": groups}), cut)
    assert made.group("one").peers == {"kv": "csa_entries_a"}
    assert made.group("two").peers == {"kv": "csa_entries_b"}
    with pytest.raises(ProfileError, match="cut apart"):
        gate_profile(profile, cut)
    with pytest.raises(ProfileError, match="one kind of attention"):
        gate_profile(profile, {"a": GroupBlocks(layers, 256, 37440)})
