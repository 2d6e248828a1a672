"""Behind a prefix cache a model answers as a cold run does, whatever was stored, changed, lost or damaged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers", minversion="5.24")

from hitproof.integrations.transformers import PrefixCache, tiny_model  # noqa: E402
from hitproof.integrations.transformers.running import run  # noqa: E402
from hitproof.integrations.transformers.tiny import NAMES, random_tokens  # noqa: E402
from hitproof.spec.errors import UsageError  # noqa: E402
from tests.integrations.transformers.caches import PREFIX, TOKENS, cache_of, cold, drop, of_object, same  # noqa: E402
from tests.integrations.transformers.live import SAME, error, made  # noqa: E402

LONGER = PREFIX + 24
OTHER: list[int] = random_tokens(60, 99)[0].tolist()
"""Tokens of another continuation."""
IDENTITY = ("weights", "attention_config", "adapter", "media", "salt")
RECURRENT = ("nemotron-h", "qwen3-next")
WINDOWED = ("deepseek-v4", "gemma-3", "gpt-oss")


@pytest.mark.parametrize("name", NAMES)
class TestEveryModel:
    """What holds whatever state a model's layers keep."""

    @pytest.mark.parametrize("length", [5, 64, 127, 129, 200])
    def test_a_longer_prompt_goes_on_where_the_stored_one_ended(self, name: str, length: int) -> None:
        """All of the shorter one is reused, without a repair, on both sides of every ratio and window."""
        prefix = cache_of(name)
        assert "" == prefix.prefill(TOKENS[:length]).kept
        served = prefix.prefill(TOKENS[: length + 24])
        assert ("reuse", length, ()) == (served.answer.verdict, served.usable, served.plan)
        assert same(name, served)
        prefix.manager.check_integrity()

    def test_a_prompt_that_branches_off_goes_on_at_a_boundary(self, name: str) -> None:
        """A state is there at the boundary that was asked for; what has every length is cut to what is shared."""
        prefix = cache_of(name)
        prefix.prefill(TOKENS[:PREFIX], boundaries=(64,))
        branched = [*TOKENS[:100], *OTHER]
        served = prefix.prefill(branched)
        assert served.usable >= 64
        wanted = run(prefix.model, branched, prefix.state.fresh())
        assert error(served.logits, wanted[served.usable :]) < SAME[name]
        # Afterwards both continuations are there, and neither has become the other.
        assert same(name, prefix.prefill(TOKENS[:LONGER]))
        prefix.manager.check_integrity()

    def test_nothing_is_found_under_another_identity(self, name: str) -> None:
        """Of other weights, configuration, adapter, pictures or tenant nothing is reused."""
        prefix = cache_of(name)
        prefix.prefill(TOKENS[:PREFIX])
        for fact in IDENTITY:
            found = prefix.find(TOKENS[:LONGER], facts={fact: "another"})
            assert ("miss", 0) == (found.answer.verdict, found.usable), fact
            found.release()
        assert PREFIX == prefix.find(TOKENS[:LONGER]).usable

    def test_damaged_rows_of_any_group_are_not_used(self, name: str) -> None:
        """With a byte of one group changed the prefix is repaired or computed, and nobody can tell by the logits."""
        for group in cache_of(name).state.groups:
            prefix = cache_of(name)
            prefix.prefill(TOKENS[:PREFIX])
            slot = prefix.manager.slots(group)[-1]
            payload = bytearray(prefix.memory.read(slot.extent))
            payload[len(payload) // 2] ^= 0x40
            prefix.memory.write(slot.extent, 0, payload)
            served = prefix.prefill(TOKENS[:LONGER])
            assert same(name, served), group
            assert served.usable < PREFIX or served.plan, group
            prefix.manager.check_integrity()

    @pytest.mark.parametrize("tier", ["host", "disk"])
    def test_a_prefix_that_left_the_device_comes_back(self, name: str, tier: str, tmp_path: Path) -> None:
        """Demoted whole, it is promoted by plan, and the logits are those of a cold run."""
        prefix = cache_of(name, disk=str(tmp_path / "store"), runtime={"prefill_us_per_token": 4000.0})
        prefix.prefill(TOKENS[:PREFIX])
        for slot in of_object(prefix, *{group.object for group in prefix.engine.bound.groups} - {"window_boundary"}):
            assert prefix.manager.demote(slot, "host")
            assert tier == "host" or prefix.manager.spill(slot)
        served = prefix.prefill(TOKENS[:LONGER])
        assert ("repair", PREFIX) == (served.answer.verdict, served.usable)
        assert "promote" in {step.repair for step in served.plan}
        assert same(name, served)
        prefix.manager.check_integrity()

    def test_a_stored_prefix_outlives_its_process(self, name: str, tmp_path: Path) -> None:
        """Another cache over the same folder finds it, under the same salt and no other."""
        settings: dict[str, Any] = {"disk": str(tmp_path / "store"), "runtime": {"prefill_us_per_token": 4000.0}}
        first = cache_of(name, identity={"salt": "tenant"}, **settings)
        first.prefill(TOKENS[:PREFIX])
        for slot in of_object(first, *{group.object for group in first.engine.bound.groups}):
            first.manager.demote(slot, "disk")
        first.close()
        again = cache_of(name, identity={"salt": "tenant"}, **settings)
        served = again.prefill(TOKENS[:LONGER])
        assert PREFIX == served.usable
        assert same(name, served)
        again.close()
        stranger = cache_of(name, **settings)
        assert not stranger.find(TOKENS[:LONGER]).usable
        stranger.close()

    def test_a_full_pool_only_means_that_nothing_is_stored(self, name: str) -> None:
        """A prompt that finds no room is computed all the same."""
        served = cache_of(name, blocks=1).prefill(TOKENS)
        assert "there is no room" == served.kept
        assert same(name, served)

    def test_a_live_cache_can_be_stored(self, name: str) -> None:
        """What somebody else computed is kept as it lies, and continued from."""
        prefix = cache_of(name)
        past = prefix.state.fresh()
        run(prefix.model, TOKENS[:PREFIX], past)
        assert "" == prefix.keep(TOKENS[:PREFIX], past)
        served = prefix.prefill(TOKENS[:LONGER])
        assert PREFIX == served.usable
        assert same(name, served)

    def test_a_cache_that_went_on_is_stored_only_in_part(self, name: str) -> None:
        """Kept under its first tokens alone, it lacks their windows and states: no one continues from later ones."""
        prefix = cache_of(name)
        past = prefix.state.fresh()
        run(prefix.model, [*TOKENS[:PREFIX], *OTHER], past)
        prefix.keep(TOKENS[:PREFIX], past)
        served = prefix.prefill(TOKENS[:LONGER])
        assert same(name, served)
        whole = name == "deepseek-v3.2"
        assert whole == (served.usable == PREFIX and not served.plan)
        prefix.manager.check_integrity()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", NAMES)
def test_what_was_copied_is_the_live_cache_bit_for_bit(name: str, dtype: Any) -> None:
    """Out of the pools comes what went in: both caches continue with the very same logits."""
    tiny = made(name, dtype)[0]
    prefix = PrefixCache(tiny.model, tiny.profile)
    live = prefix.prefill(TOKENS[:PREFIX]).past
    found = prefix.find(TOKENS[:LONGER])
    assert PREFIX == found.usable
    ours, theirs = (run(tiny.model, TOKENS[PREFIX:LONGER], past) for past in (found.past, live))
    assert torch.equal(ours, theirs)
    found.release()


@pytest.mark.parametrize("name", RECURRENT)
def test_a_recurrent_state_that_was_not_rolled_back_is_not_stored(name: str) -> None:
    """The library cuts keys and values back and leaves the state where it was; so it is of no cut length."""
    prefix = cache_of(name)
    past = prefix.state.fresh()
    past.activate_past_recording()
    run(prefix.model, [*TOKENS[:PREFIX], *OTHER[:10]], past)
    past.crop(-10)
    prefix.keep(TOKENS[:PREFIX], past)
    served = prefix.prefill(TOKENS[:LONGER])
    assert not served.usable
    assert same(name, served)


def test_a_crop_inside_the_window_leaves_a_hole() -> None:
    """DeepSeek-V4's caches can be cut, and what is behind the window is not: what they lack then is not stored."""
    prefix = cache_of("deepseek-v4")
    past = prefix.state.fresh()
    past.activate_past_recording()
    run(prefix.model, TOKENS[:PREFIX], past)
    past.crop(-6)
    prefix.keep(TOKENS[: PREFIX - 6], past)
    assert not of_object(prefix, "compressor_state")
    served = prefix.prefill(TOKENS[:LONGER])
    assert same("deepseek-v4", served)
    assert served.usable < PREFIX - 6 or served.plan


@pytest.mark.parametrize("name", WINDOWED)
def test_windows_between_boundaries_are_not_stored(name: str) -> None:
    """Between two boundaries the windows are missing, and what branches off there resumes at an earlier length."""
    prefix = cache_of(name)
    prefix.prefill(TOKENS[:200], boundaries=(64,))
    spans = sorted((slot.facts.start, slot.facts.end) for slot in of_object(prefix, "uncompressed_tail"))
    window = prefix.engine.bound.group("window").constants["window"]
    assert [(64 - window + 1, 64), (200 - window + 1, 200)] == spans


@pytest.mark.parametrize("name", NAMES)
def test_weights_that_were_changed_find_nothing(name: str) -> None:
    """After the weights were changed and read anew, state of the earlier ones is found by nobody."""
    tiny = tiny_model(name, seed=1)
    prefix = PrefixCache(tiny.model, tiny.profile)
    prefix.prefill(TOKENS[:PREFIX])
    with torch.no_grad():
        next(iter(tiny.model.parameters())).mul_(1.01)
    before = prefix.identity["weights"]
    assert before != prefix.identify()
    served = prefix.prefill(TOKENS[:LONGER])
    assert 0 == served.usable
    wanted = run(tiny.model, TOKENS[:LONGER], prefix.state.fresh())
    assert error(served.logits, wanted) < SAME[name]


def test_nothing_is_pinned_afterwards() -> None:
    """Leases are given back, also of what was only looked up."""
    prefix = cache_of("gemma-3")
    prefix.prefill(TOKENS[:PREFIX])
    found = prefix.find(TOKENS[:LONGER])
    slots = of_object(prefix, "full_kv", "uncompressed_tail")
    assert all(slot.facts.pins for slot in slots)
    assert not any(prefix.manager.evict(slot) for slot in slots)
    found.release()
    assert not any(slot.facts.pins for slot in slots)


def test_logits_stop_where_the_caller_says() -> None:
    """`until` ends the pass earlier, and is what is stored."""
    prefix = cache_of("gemma-3")
    served = prefix.prefill(TOKENS[:PREFIX], until=90)
    assert (90, 90) == (served.logits.shape[0], prefix.find(TOKENS[:PREFIX]).usable)
    assert error(served.logits, cold("gemma-3")[:90]) < SAME["gemma-3"]
    again = prefix.prefill(TOKENS[:PREFIX], until=90)
    assert (None, "everything is stored") == (again.logits, again.kept)


def test_a_private_salt_is_nobody_elses() -> None:
    """Two caches that state none have different ones."""
    assert cache_of("gemma-3").identity["salt"] != cache_of("gemma-3").identity["salt"]


@pytest.mark.parametrize("until", [0, -1, PREFIX + 1])
def test_a_prompt_is_computed_up_to_one_of_its_tokens(until: int) -> None:
    """Anything else is refused, of `prefill` and of `keep`."""
    prefix = cache_of("gemma-3")
    with pytest.raises(UsageError):
        prefix.prefill(TOKENS[:PREFIX], until=until)
    with pytest.raises(UsageError):
        prefix.keep(TOKENS[:PREFIX], prefix.state.fresh(), at=until)


def test_a_model_in_training_mode_is_refused() -> None:
    """Its rows are other ones each time."""
    tiny = tiny_model("gemma-3")
    tiny.model.train()
    with pytest.raises(UsageError):
        PrefixCache(tiny.model, tiny.profile)


def test_dropping_everything_is_a_miss() -> None:
    """What was evicted is not found, and nothing of it is left behind."""
    prefix = cache_of("deepseek-v4")
    prefix.prefill(TOKENS[:PREFIX])
    assert drop(prefix, *{group.object for group in prefix.engine.bound.groups})
    assert "miss" == prefix.prefill(TOKENS[:LONGER]).answer.verdict
    prefix.manager.check_integrity()
