"""The shipped profiles say what the public facts say, and a profile survives being written and read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hitproof.rules.profiles import dump_profile, load_profile, shipped_profiles
from hitproof.spec.errors import HitproofError, MissingFileError, ProfileError, SchemaError
from hitproof.spec.profile import MAX_LAYERS, OBJECTS, Group, Profile

SHEETS = Path(__file__).parents[2].parent / "shared" / "data" / "models"
SHIPPED = [
    "deepseek-v3.2",
    "deepseek-v4-flash",
    "deepseek-v4-pro",
    "gemma-3-1b",
    "gemma-3-27b",
    "gemma-3-4b",
    "gemma-4-12b",
    "gemma-4-26b-a4b",
    "gemma-4-e2b",
    "gpt-oss-120b",
    "gpt-oss-20b",
    "kimi-linear-48b-a3b",
    "llama-4-scout",
    "minimax-text-01",
    "nsa-reference",
    "qwen3-next-80b-a3b",
]

# One of these groups holds what a layer's attention reads of single tokens; other objects stand beside it.
OF_EACH_LAYER = ("full_kv", "uncompressed_tail", "recurrent_state")

WITHOUT_BYTES = ("window_boundary", "demoted_prefix")

# Hand-made from the published layouts, apart from the code that derives profiles.
V4_FLASH_BYTES = {
    "window": (584 * 43, 37_440),
    "csa_entries": (584 * 21, 37_440),
    "csa_index": (132 * 21, 8_640),
    "csa_state": (2_048 * 4 * 21, 32_832),
    "csa_index_state": (512 * 4 * 21, 8_640),
    "hca_entries": (584 * 20, 1_728),
    "hca_state": (1_024 * 4 * 20, 32_832),
    "layer_inputs": (2 * 4_096 * 43, 131_072),
}


def broken(text: str, old: str, new: str, folder: Path) -> Path:
    """A file with the profile's text, one place of it changed."""
    assert text.count(old) == 1
    path = folder / "broken.yaml"
    path.write_text(text.replace(old, new), "utf-8")
    return path


N = r"(\d{1,3}(?:,\d{3})*)"
"""A number with commas, as a pattern."""


def number(text: str) -> int:
    """A number with commas."""
    return int(text.replace(",", ""))


class TestShipped:
    """The profiles in the package."""

    def test_the_list_is_sorted_and_complete(self) -> None:
        """Sixteen models come with the package."""
        assert SHIPPED == shipped_profiles()

    @pytest.mark.parametrize("name", SHIPPED)
    def test_a_file_is_named_after_its_profile(self, name: str) -> None:
        """The name in the file is the name by which it is asked for."""
        assert name == load_profile(name).name

    @pytest.mark.parametrize("name", SHIPPED)
    def test_pages_are_multiples_of_the_alignment(self, name: str) -> None:
        """The stride of every group that owns bytes meets its own alignment."""
        profile = load_profile(name)
        for group in profile.groups:
            constants = profile.constants_of(group)
            if group.object not in WITHOUT_BYTES:
                assert constants["stride"] % constants["alignment"] == 0, group.id

    def test_one_object_has_the_same_constants_in_every_model(self) -> None:
        """Which constants an object has does not depend on the model, but for those with an absent meaning."""
        names: dict[str, set[frozenset[str]]] = {}
        for profile in map(load_profile, SHIPPED):
            for group in profile.groups:
                stated = frozenset(profile.constants_of(group)) - {"chunk", "media_ahead"}
                names.setdefault(group.object, set()).add(stated)
        assert all(len(each) == 1 for each in names.values()), names

    @pytest.mark.parametrize("name", SHIPPED)
    def test_every_layer_is_covered_once(self, name: str) -> None:
        """As owner or consumer of one group of rows or states; every group that owns bytes says how they add up."""
        profile = load_profile(name)
        covered = [
            layer
            for group in profile.groups
            if group.object in OF_EACH_LAYER
            for layer in (*group.layers, *group.consumers)
        ]
        assert list(range(profile.layers)) == sorted(covered)
        assert all(group.note for group in profile.groups)

    @pytest.mark.parametrize("name", SHIPPED)
    def test_notes_add_up(self, name: str) -> None:
        """Bytes of one layer, times layers, are the bytes of all; a page is a multiple of its rows."""
        for group in load_profile(name).groups:
            if group.object in WITHOUT_BYTES:
                continue
            size, layers, total = map(number, re.findall(rf"= {N} B, x {N} layers = {N}", group.note)[0])
            assert (len(group.layers), size * layers) == (layers, total), group.id
            assert total == group.constants.get("row_bytes", group.constants.get("state_bytes")), group.id
            for rows, row, raw, padded in re.findall(rf"page {N} x {N} = {N}(?:, padded to {N})?", group.note):
                assert (size, number(rows) * size) == (number(row), number(raw)), group.id
                assert number(padded or raw) == group.constants["stride"], group.id

    def test_v4_flash_bytes_are_those_of_the_published_layouts(self) -> None:
        """Row bytes and padded pages equal the sums made by hand."""
        profile = load_profile("deepseek-v4-flash")
        stated = {
            group.id: (group.constants["row_bytes"], group.constants["stride"])
            for group in profile.groups
            if group.object not in WITHOUT_BYTES
        }
        assert V4_FLASH_BYTES == stated

    def test_v4_flash_totals_are_those_of_the_report(self) -> None:
        """About 3,850 compressed bytes a token, and a window of 3.07 MiB."""
        constants = {group.id: group.constants for group in load_profile("deepseek-v4-flash").groups}
        per_token = sum(
            constants[name]["row_bytes"] / constants[name]["row_tokens"]
            for name in ("csa_entries", "csa_index", "hca_entries")
        )
        assert 3850 == round(per_token)
        assert 3.07 == round(constants["window"]["window"] * constants["window"]["row_bytes"] / 2**20, 2)

    def test_v4_flash_peers_are_wired(self) -> None:
        """The index reads its entries, each state the entries or index that it continues."""
        peers = {group.id: dict(group.peers) for group in load_profile("deepseek-v4-flash").groups if group.peers}
        assert {
            "window": {"boundary": "window_boundary"},
            "csa_index": {"kv": "csa_entries"},
            "csa_state": {"entries": "csa_entries"},
            "csa_index_state": {"entries": "csa_index"},
            "hca_state": {"entries": "hca_entries"},
        } == peers

    def test_gemma_and_qwen_bytes_follow_from_their_heads(self) -> None:
        """Keys and values in bfloat16; the recurrent state is 524,288 float32 and 24,576 bfloat16 a layer."""
        gemma, qwen = load_profile("gemma-3-27b"), load_profile("qwen3-next-80b-a3b")
        assert 4_096 * 2 * 52 == gemma.group("window").constants["row_bytes"]
        assert 4_096 * 2 * 10 == gemma.group("full").constants["row_bytes"]
        assert 1_024 * 2 * 12 == qwen.group("full").constants["row_bytes"]
        assert (524_288 * 4 + 24_576 * 2) * 36 == qwen.group("linear").constants["state_bytes"]


# What each kind of a sheet's layers becomes: groups by object, and constants by the sheet's name for them.
KINDS: dict[str, list[tuple[str, dict[str, str]]]] = {
    "full": [("full_kv", {})],
    "full_latent": [("full_kv", {})],
    "sliding_window": [("uncompressed_tail", {"window": "window"}), ("window_boundary", {"window": "window"})],
    "chunked_local": [("uncompressed_tail", {"chunk": "chunk", "window": "chunk"})],
    "compressed_sparse": [
        ("compressed_global", {"ratio": "compress_ratio"}),
        ("routing_index", {"ratio": "compress_ratio", "top_k": "index_topk"}),
        ("compressor_state", {"ratio": "compress_ratio"}),
    ],
    "compressed_dense": [
        ("compressed_global", {"ratio": "compress_ratio"}),
        ("compressor_state", {"ratio": "compress_ratio"}),
    ],
    "compressed_sparse_window": [("full_kv", {}), ("compressed_global", {"ratio": "compress_ratio"})],
    "recurrent_state": [("recurrent_state", {})],
}


def same(told: list[int], held: set[int], object_name: str) -> bool:
    """The layers agree; windows of several kinds of layers may be in one group."""
    return set(told) <= held if object_name in ("uncompressed_tail", "window_boundary") else set(told) == held


def sheet_of(name: str) -> dict[str, Any]:
    """The facts of a model."""
    sheet: dict[str, Any] = yaml.safe_load((SHEETS / f"{name}.yaml").read_text("utf-8"))
    return sheet


@pytest.mark.skipif(not SHEETS.is_dir(), reason="the model sheets are not beside this repository")
class TestAgainstSheets:
    """Layers, geometry and sizes, read independently from the model sheets."""

    def test_every_sheet_has_its_profile(self) -> None:
        """And no profile goes without a sheet."""
        assert SHIPPED == sorted(path.stem for path in SHEETS.glob("*.yaml"))

    @pytest.mark.parametrize("name", SHIPPED)
    def test_layers_and_geometry_agree(self, name: str) -> None:
        """Each kind of layer has its groups, over the sheet's layers, with its window, chunk, ratio and top-k."""
        sheet, profile = sheet_of(name), load_profile(name)
        assert sheet["num_layers"] == profile.layers
        for told in sheet["cache_groups"]:
            for object_name, constants in KINDS[told["kind"]]:
                found = [
                    group
                    for group in profile.groups
                    if group.object == object_name
                    and same(told["layers"], {*group.layers, *group.consumers}, object_name)
                ]
                assert found, (told["id"], object_name)
                for group in found:
                    stated = {ours: group.constants[ours] for ours in constants}
                    assert {ours: told[theirs] for ours, theirs in constants.items()} == stated, group.id

    @pytest.mark.parametrize("name", SHIPPED)
    def test_layers_that_share_are_consumers(self, name: str) -> None:
        """The last layers, as many as the sheet says; everywhere else there are none."""
        sheet, profile = sheet_of(name), load_profile(name)
        first = sheet["num_layers"] - sheet.get("num_kv_shared_layers", 0)
        rows = [group for group in profile.groups if group.object in OF_EACH_LAYER]
        assert list(range(first, sheet["num_layers"])) == sorted(one for group in rows for one in group.consumers)

    @pytest.mark.parametrize("name", SHIPPED)
    def test_warm_up_is_bounded_by_stacked_windows(self, name: str) -> None:
        """W - 1 tokens a windowed layer, one token less than a chunk, nothing else; no state can be warmed up."""
        kinds = sheet_of(name)["cache_groups"]
        windows = sum(
            (told["window"] - 1) * told["layer_count"]
            for told in kinds
            if told["kind"] in ("sliding_window", "compressed_sparse", "compressed_dense")
        )
        chunks = max((told["chunk"] - 1 for told in kinds if told["kind"] == "chunked_local"), default=0)
        recurrent = any(told["kind"] == "recurrent_state" for told in kinds)
        constants = load_profile(name).constants
        assert (windows or chunks, not recurrent) == (constants["receptive_field"], constants["warmable"])

    @pytest.mark.parametrize("name", SHIPPED)
    def test_element_counts_agree(self, name: str) -> None:
        """Rows are the sheet's elements in two bytes each; states in four, their convolutions in two."""
        sheet, profile = sheet_of(name), load_profile(name)
        for told in sheet["cache_groups"]:
            owners: dict[tuple[str, str], float] = {
                (group.object, size): group.constants[size] / len(group.layers)
                for group in profile.groups
                for size in ("row_bytes", "state_bytes")
                if set(group.layers) <= set(told["layers"]) and size in group.constants
            }
            rows = told.get("elements_per_token_per_layer", told.get("raw_elements_per_token_per_layer"))
            object_name = KINDS[told["kind"]][0][0]
            if rows is not None:
                assert 2 * rows == owners[object_name, "row_bytes"], told["id"]
            if "compressed_elements_per_block" in told:
                assert 2 * told["compressed_elements_per_block"] == owners["compressed_global", "row_bytes"]
            if "state_elements_per_layer" in told:
                convolution = 2 * told.get("conv_state_elements_per_layer", 0)
                assert 4 * told["state_elements_per_layer"] + convolution == owners[object_name, "state_bytes"]
            if "index_elements_per_compressed_entry" in told:
                # One byte an element, and a scale of 4 bytes for 128 of them.
                elements = told["index_elements_per_compressed_entry"]
                assert elements + elements // 32 == owners["routing_index", "row_bytes"]
        for side in sheet.get("side_caches", ()):
            index = profile.group("index")
            assert (side["topk"], sheet["num_layers"]) == (index.constants["top_k"], len(index.layers))
            elements = side["elements_per_token_per_layer"]
            assert (elements + elements // 32) * len(index.layers) == index.constants["row_bytes"]

    @pytest.mark.parametrize("name", ["deepseek-v4-flash", "deepseek-v4-pro"])
    def test_every_v4_layer_keeps_the_window(self, name: str) -> None:
        """The sheet gives each kind of layer the same window; ours is one group over all of them."""
        sheet, window = sheet_of(name), load_profile(name).group("window")
        assert sorted(layer for each in sheet["cache_groups"] for layer in each["layers"]) == list(window.layers)
        assert {each["window"] for each in sheet["cache_groups"]} == {window.constants["window"]}


class TestLoad:
    """Finding and refusing files."""

    def test_an_unknown_name_lists_the_known_ones(self) -> None:
        """The error says which profiles there are and which is closest."""
        with pytest.raises(ProfileError) as caught:
            load_profile("deepseek-v4-flsh")
        assert ", ".join(SHIPPED) == caught.value.expected
        assert "did you mean deepseek-v4-flash?" == caught.value.hint

    @pytest.mark.parametrize("name", ["", "..", "deepseek-v4-flash\0", "x" * 100_000])
    def test_odd_names_are_unknown_names(self, name: str) -> None:
        """No name reaches a file outside the folder of profiles."""
        with pytest.raises(ProfileError, match="no shipped profile"):
            load_profile(name)

    @pytest.mark.parametrize("path", ["absent.yaml", "./absent", "../rules", "/dev/zero", "a\0b.yaml"])
    def test_a_path_without_a_file_is_a_missing_file(self, path: str) -> None:
        """What looks like a path is read as one."""
        with pytest.raises(MissingFileError):
            load_profile(path)

    @pytest.mark.parametrize(
        ("old", "new", "error", "message"),
        [
            ("kv: csa_entries", "kv: csa_entry", ProfileError, "peer 'kv' of group 'csa_index'"),
            ("id: csa_state", "id: csa_index  # twice", ProfileError, "group 'csa_index' stands twice"),
            (
                "[0-42]\n    constants: {window: 128, row",
                "[0-43]\n    constants: {window: 128, row",
                ProfileError,
                "names a layer",
            ),
            ("{kv: csa_entries}", "{kv: csa_index}", ProfileError, "circle: csa_index -> csa_index"),
            ("top_k: 512", "top_k: -1", ProfileError, "between 0 and 2\\*\\*62"),
            ("top_k: 512", "layer_count: 512", ProfileError, "layer_count is counted"),
            ("{kv: csa_entries}", "{self: csa_entries}", ProfileError, "scope of the condition language"),
            ("object: routing_index", "object: index", SchemaError, "object"),
            ("top_k: 512", "TopK: 512", SchemaError, "TopK"),
            ("title:", "titel:", SchemaError, "titel"),
        ],
    )
    def test_a_fault_is_told_with_its_line(
        self, old: str, new: str, error: type[HitproofError], message: str, tmp_path: Path
    ) -> None:
        """File, line and a plain sentence, also for what contradicts between groups."""
        text = (Path(__file__).parents[2] / "rules" / "profiles" / "deepseek-v4-flash.yaml").read_text("utf-8")
        path = broken(text, old, new, tmp_path)
        with pytest.raises(error, match=message) as caught:
            load_profile(path)
        line = text[: text.index(old)].count("\n") + 1
        assert (str(path), line) == (caught.value.where.file, caught.value.where.line)


_NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,8}x", fullmatch=True)
_CONSTANTS = st.dictionaries(_NAMES, st.booleans() | st.integers(0, 2**62), max_size=4)
# What a YAML file cannot hold at all is not asked of the writer.
_PROSE = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Zl", "Zp")), max_size=60)


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    """Any profile whose groups read earlier groups."""
    groups: list[Group] = []
    for group_id in draw(st.lists(_NAMES, min_size=1, max_size=4, unique=True)):
        earlier = [group.id for group in groups]
        fields = {
            "id": group_id,
            "object": draw(st.sampled_from(OBJECTS)),
            "layers": draw(st.lists(st.integers(0, 99), min_size=1, max_size=9, unique=True)),
            "consumers": [100 + 10 * len(groups) + one for one in draw(st.sets(st.integers(0, 9), max_size=4))],
            "constants": draw(_CONSTANTS),
            "peers": draw(st.dictionaries(_NAMES, st.sampled_from(earlier), max_size=2)) if earlier else {},
            "note": draw(_PROSE),
        }
        groups.append(Group.model_validate(fields))
    return Profile(
        profile=draw(st.from_regex(r"[a-z][a-z0-9]{0,5}(-[a-z0-9]{1,5}){0,2}", fullmatch=True)),
        title=draw(_PROSE),
        layers=draw(st.integers(140, MAX_LAYERS)),
        sources=tuple(draw(st.lists(_PROSE, max_size=3))),
        verified_against_checkpoint=draw(st.booleans()),
        constants=draw(_CONSTANTS),
        groups=tuple(groups),
    )


class TestDump:
    """Writing a profile."""

    @pytest.mark.parametrize("name", SHIPPED)
    def test_a_shipped_profile_survives(self, name: str, tmp_path: Path) -> None:
        """Written and read again, a profile is equal to what it was."""
        path = tmp_path / "again.yaml"
        path.write_text(dump_profile(load_profile(name)), "utf-8")
        assert load_profile(name) == load_profile(path)

    @given(profile=profiles())
    def test_any_profile_survives(self, profile: Profile, tmp_path_factory: pytest.TempPathFactory) -> None:
        """Words that look like numbers, Booleans or times come back as the texts they were."""
        path = tmp_path_factory.getbasetemp() / "any-profile.yaml"
        path.write_text(dump_profile(profile), "utf-8")
        assert profile == load_profile(path)

    @pytest.mark.parametrize(
        "prose", ["no", "12:30", "010", "0o17", "1e3", "null", "~", "{a: b}", "# x", "'", '"', " "]
    )
    def test_prose_stays_prose(self, prose: str, tmp_path: Path) -> None:
        """The two versions of YAML read these plain words differently; quoted they are texts."""
        profile = load_profile("gemma-3-27b").model_copy(update={"title": prose, "sources": (prose,)})
        path = tmp_path / "prose.yaml"
        path.write_text(dump_profile(profile), "utf-8")
        assert profile == load_profile(path)
