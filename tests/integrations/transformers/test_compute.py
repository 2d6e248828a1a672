"""Repairs of a plan really run: what they make is what a model would have written, and what cannot be made is not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers", minversion="5.24")

from hitproof.integrations.transformers import PrefixCache, compute  # noqa: E402
from hitproof.integrations.transformers.inputs import keeping_inputs  # noqa: E402
from hitproof.integrations.transformers.running import run  # noqa: E402
from hitproof.integrations.transformers.snapshot import Piece, Snapshots, written  # noqa: E402
from hitproof.integrations.transformers.tiny import NAMES  # noqa: E402
from hitproof.integrations.transformers.warming import reach, warmed  # noqa: E402
from tests.integrations.transformers.caches import PREFIX, TOKENS, cache_of, drop, of_object, same  # noqa: E402
from tests.integrations.transformers.live import made  # noqa: E402

LONGER = PREFIX + 24
WARMABLE = ("deepseek-v4", "gemma-3", "gpt-oss")
DEAR = {"prefill_us_per_token": 4000.0}
"""A run time in which computing is dear, so that every repair that applies is worth it."""


def options(served: Any) -> set[str]:
    """The options of a plan."""
    return {step.option for step in served.plan}


@pytest.mark.parametrize("name", WARMABLE)
class TestWarmUp:
    """The last tokens are run again, behind held history."""

    @pytest.mark.parametrize("length", [60, PREFIX, 200, 257])
    def test_windows_that_are_gone_are_made_anew(self, name: str, length: int) -> None:
        """Everything is reused, and the logits are those of a cold run."""
        prefix = cache_of(name)
        prefix.prefill(TOKENS[:length])
        assert drop(prefix, "uncompressed_tail")
        served = prefix.prefill(TOKENS[: length + 60])
        assert ("rebuild", length, {"warm_up"}) == (served.answer.verdict, served.usable, options(served))
        assert same(name, served)
        prefix.manager.check_integrity()

    def test_nothing_that_is_held_is_written_over(self, name: str) -> None:
        """The pass computes rows of the history too, and throws them away."""
        prefix = cache_of(name)
        prefix.prefill(TOKENS[:PREFIX])
        drop(prefix, "uncompressed_tail")
        held = of_object(prefix, "full_kv", "compressed_global", "routing_index")
        before = [(slot.extent, prefix.memory.read(slot.extent)) for slot in held]
        prefix.find(TOKENS[:LONGER]).release()
        assert before == [(slot.extent, prefix.memory.read(slot.extent)) for slot in held]

    def test_a_receptive_field_is_what_it_takes(self, name: str) -> None:
        """A pass that begins there restores the windows; one that begins a window before the end does not."""
        prefix, length = cache_of(name), 200
        past = prefix.prefill(TOKENS[:length]).past
        constants, errors = prefix.engine.bound.group("window").constants, []
        for start in (length - reach(constants, length, exact=True), length - int(constants["window"])):
            cache = _passed(prefix, start, length)
            errors.append(
                max(
                    float((ours.keys - theirs.keys).abs().max() / theirs.keys.std())
                    for ours, theirs in zip(cache.layers, past.layers, strict=True)
                    if theirs.is_sliding
                )
            )
        assert errors[0] < 1e-4
        assert errors[1] > 1e-2

    def test_an_approximate_window_says_so(self, name: str) -> None:
        """Where the request allows it one window alone is run again; nothing that follows from it is stored."""
        prefix = cache_of(name)
        prefix.prefill(TOKENS[:PREFIX])
        drop(prefix, "uncompressed_tail")
        served = prefix.prefill(TOKENS[:LONGER], facts={"allows_approximate": True})
        assert {"replay_window"} == options(served)
        assert "approximate state is never published under an exact key" == served.kept
        assert not same(name, served)
        assert not of_object(prefix, "uncompressed_tail")


def _passed(prefix: PrefixCache, start: int, length: int) -> Any:
    parts: dict[str, list[Any]] = {
        group.id: [(slot.facts.start, slot.facts.end, slot.extent) for slot in prefix.manager.slots(group.id)]
        for group in prefix.engine.bound.groups
    }
    groups = prefix.engine.judge.groups
    return warmed(prefix.model, prefix.state, prefix.memory, groups, parts, TOKENS, (start, length))


def test_one_pass_serves_all_groups_of_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """A joint repair is paid once, and runs once."""
    spans: list[tuple[int, int]] = []

    def counted(*given: Any) -> Any:
        spans.append(given[-1])
        return warmed(*given)

    monkeypatch.setattr(compute, "warmed", counted)
    prefix = cache_of("deepseek-v4", runtime=DEAR)
    prefix.prefill(TOKENS[:300])
    assert 4 == drop(prefix, "uncompressed_tail", "compressor_state")
    served = prefix.prefill(TOKENS)
    # At 256 the state of ratio 128 is empty, and the others take one pass.
    assert 256 == served.usable
    assert [("csa_index_state", "warm_up"), ("csa_state", "warm_up"), ("window", "warm_up")] == sorted(
        (step.group, step.option) for step in served.plan
    )
    assert same("deepseek-v4", served)
    assert [(256 - 52, 256)] == spans


class TestKeptInputs:
    """What is made from the layers' inputs."""

    @pytest.mark.parametrize("length", [PREFIX, 300])
    @pytest.mark.parametrize(
        ("name", "gone", "option"),
        [
            ("deepseek-v3.2", "routing_index", "rebuild_keys"),
            ("deepseek-v4", "compressed_global", "rebuild_entries"),
            ("deepseek-v4", "compressor_state", "rebuild_state"),
            ("deepseek-v4", "routing_index", "rebuild_keys"),
        ],
    )
    def test_what_is_gone_is_made_anew(self, name: str, gone: str, option: str, length: int) -> None:
        """Entries, states and index keys; the logits are those of a cold run, and of another than without them."""
        prefix = cache_of(name, layer_inputs=True)
        prefix.prefill(TOKENS[:length])
        assert drop(prefix, gone)
        served = prefix.prefill(TOKENS)
        assert length == served.usable
        assert option in options(served)
        assert same(name, served)
        prefix.manager.check_integrity()

    @pytest.mark.parametrize("missing", [1, 5])
    @pytest.mark.parametrize("name", NAMES)
    def test_a_young_end_is_filled(self, name: str, missing: int) -> None:
        """Rows of windows and of full layers that are missing at the end are made from the inputs of their tokens."""
        prefix = cache_of(name, layer_inputs=True, runtime=DEAR)
        _store_without_end(prefix, PREFIX, missing)
        served = prefix.prefill(TOKENS[:LONGER])
        assert PREFIX == served.usable
        # Index keys that were made for other rows than there are now are made again, for those.
        assert options(served) - {"rebuild_keys"} == {"fill_young_end"}
        assert same(name, served)
        prefix.manager.check_integrity()

    @pytest.mark.parametrize("gone", ["compressed_global", "compressor_state", "routing_index"])
    def test_without_inputs_nothing_is_made_of_them(self, gone: str) -> None:
        """There is no source then: less is reused, or the model runs again."""
        prefix = cache_of("deepseek-v4")
        prefix.prefill(TOKENS[:PREFIX])
        drop(prefix, gone)
        served = prefix.prefill(TOKENS[:LONGER])
        assert options(served) <= {"warm_up"}
        assert served.usable < PREFIX
        assert same("deepseek-v4", served)

    @pytest.mark.parametrize(
        ("name", "fact"),
        [
            ("deepseek-v3.2", "index_config"),
            ("deepseek-v4", "compressor_version"),
            ("deepseek-v4", "index_config"),
        ],
    )
    def test_inputs_that_ran_behind_another_version_are_no_source(self, name: str, fact: str) -> None:
        """Those of later layers are what earlier ones made of the other version's choice; the prompt is computed."""
        prefix = cache_of(name, layer_inputs=True)
        prefix.prefill(TOKENS[:PREFIX], facts={fact: "another"})
        served = prefix.prefill(TOKENS[:LONGER])
        assert 0 == served.usable
        assert not any(step.repair in ("recompress", "index_rebuild") for step in served.plan)
        assert same(name, served)
        prefix.manager.check_integrity()

    def test_inputs_that_nobody_remembers_are_no_source(self, tmp_path: Path) -> None:
        """After a restart nothing says behind what they ran."""
        settings: dict[str, Any] = {"disk": str(tmp_path / "store"), "identity": {"salt": "tenant"}, "runtime": DEAR}
        first = cache_of("deepseek-v4", layer_inputs=True, **settings)
        first.prefill(TOKENS[:PREFIX])
        drop(first, "routing_index")
        for slot in of_object(first, *{group.object for group in first.engine.bound.groups}):
            first.manager.demote(slot, "disk")
        first.close()
        again = cache_of("deepseek-v4", layer_inputs=True, **settings)
        served = again.prefill(TOKENS[:LONGER])
        assert 0 == served.usable
        assert same("deepseek-v4", served)
        again.close()

    @pytest.mark.parametrize("name", NAMES)
    def test_hooks_are_gone_afterwards(self, name: str) -> None:
        """A model that ran with kept inputs runs on without them."""
        tiny, state = made(name)
        with keeping_inputs(tiny.model, 0) as kept:
            run(tiny.model, TOKENS[:20], state.fresh())
        run(tiny.model, TOKENS[:20], state.fresh())
        assert (0, 20) == (kept.start, kept.end)
        assert len(kept.payload()) == 20 * len(tiny.model.model.layers) * tiny.model.config.hidden_size * 4


def _store_without_end(prefix: PrefixCache, length: int, missing: int) -> None:
    """Store a prompt whose rows of full layers and windows end some tokens early; states and inputs are whole."""
    found = prefix.find(TOKENS[:length])
    taken = Snapshots(prefix.state, prefix.engine.judge.groups, 0)
    with keeping_inputs(prefix.model, 0) as kept:
        run(prefix.model, TOKENS[: length - missing], found.past)
        taken.take(found.past, length - missing, last=True)
        short = [piece for piece in taken.pieces() if _grows(prefix, piece)]
        run(prefix.model, TOKENS[length - missing : length], found.past)
    whole = Snapshots(prefix.state, prefix.engine.judge.groups, 0)
    whole.take(found.past, length, last=True)
    pieces: Sequence[Piece] = [*short, *(piece for piece in whole.pieces() if not _grows(prefix, piece))]
    order = {group.id: place for place, group in enumerate(prefix.engine.judge.groups)}
    inputs = Piece("layer_inputs", 0, length, kept.payload())
    assert found.hold is not None
    pieces = sorted([*pieces, inputs], key=lambda piece: order[piece.group])
    prefix.compute.ran.note(prefix.memory.digest("layer_inputs", inputs.payload), found.prompt.request.as_dict())
    assert "" == written(prefix.manager, found.prompt, found.hold, pieces)
    found.release()


def _grows(prefix: PrefixCache, piece: Piece) -> bool:
    return prefix.engine.bound.group(piece.group).object in ("full_kv", "uncompressed_tail")


class TestWhatCannotBeMade:
    """A repair that no model runs here fails with a reason, and the plan escalates."""

    @pytest.mark.parametrize("name", NAMES)
    def test_rows_of_another_kernel_version_are_computed_again(self, name: str) -> None:
        """Nobody knows how to write them as another version reads them."""
        prefix = cache_of(name)
        prefix.prefill(TOKENS[:PREFIX])
        for group in prefix.state.groups:
            prefix.manager.kernel(group, version="another")
        served = prefix.prefill(TOKENS[:LONGER])
        assert 0 == served.usable
        assert same(name, served)

    def test_another_number_format_is_computed_again(self) -> None:
        """Approximate or not, the model has one number format."""
        prefix = cache_of("gemma-3")
        prefix.prefill(TOKENS[:PREFIX])
        prefix.manager.kernel("full", encoding="another")
        served = prefix.prefill(TOKENS[:LONGER], facts={"allows_approximate": True})
        assert 0 == served.usable
        assert same("gemma-3", served)


class TestCopies:
    """Repairs after which rows say what they said before."""

    def test_an_index_whose_entries_moved_is_mapped_anew(self) -> None:
        """Entries that left the device and came back have another generation; the keys are right as they are."""
        prefix = cache_of("deepseek-v4", runtime=DEAR)
        prefix.prefill(TOKENS[:PREFIX])
        for slot in of_object(prefix, "compressed_global"):
            assert prefix.manager.demote(slot)
        served = prefix.prefill(TOKENS[:LONGER])
        assert {"promote_from_host", "remap"} == options(served)
        assert PREFIX == served.usable
        assert same("deepseek-v4", served)

    @pytest.mark.parametrize("name", WARMABLE)
    def test_a_window_under_another_boundary_is_rolled(self, name: str) -> None:
        """A request draws the window's edge anew: the record is written, and the rows are held as they were."""
        prefix = cache_of(name, runtime=DEAR)
        prefix.prefill(TOKENS[:PREFIX])
        served = prefix.prefill(TOKENS[:LONGER], facts={"window_version": "another"})
        assert {"redetermine", "roll"} == options(served)
        assert PREFIX == served.usable
        assert same(name, served)
