"""Decisions: named claims about lengths, verdicts, plans and prices."""

from __future__ import annotations

import pytest

from hitproof.engine.decide import Engine
from hitproof.engine.plain import plain_decide
from hitproof.rules.bind import bind_rulebook
from hitproof.rules.resolve import resolve
from hitproof.rules.source import read_source
from hitproof.spec.decision import Decision
from tests.engine.state_cases import SHIPPED, Build, build_of, small_profile


def decide(build: Build, matched: int | None = None) -> Decision:
    """The engine's decision."""
    return build.engine.decide(build.state(matched))


def options(decision: Decision) -> list[str]:
    """`group/option` of each step."""
    return [f"{step.group}/{step.option}" for step in decision.plan]


def pieces(build: Build, group: str, *edges: tuple[int, int]) -> Build:
    """Add segments over these spans."""
    for start, end in edges:
        build.segment(group, start=start, end=end, matched=build.length - 1)
    return build


@pytest.mark.parametrize("name", SHIPPED)
def test_a_faultless_prefix_is_reused_whole(name: str) -> None:
    """Everything but the last token, without a plan, at the price of one token's prefill."""
    decision = decide(build_of(name, 1025, 128).all())
    assert ("reuse", 1024, 1024) == (decision.verdict, decision.logical, decision.usable)
    assert ((), 0.0, 40.0, (), {}) == (
        decision.plan,
        decision.cost_us,
        decision.total_us,
        decision.failed,
        decision.dispositions,
    )
    assert not decision.clamped


def test_pieces_that_meet_are_one_prefix() -> None:
    """A chain without a gap is as good as one segment."""
    build = pieces(build_of("homogeneous", 97, 32), "kv", (0, 32), (32, 64), (64, 96))
    assert ("reuse", 96) == (decide(build).verdict, decide(build).usable)


def test_pieces_with_a_gap_end_before_it() -> None:
    """The piece behind the gap fails, and what lies before it is reused."""
    decision = decide(pieces(build_of("homogeneous", 97, 32), "kv", (0, 32), (40, 96)))
    assert ("reuse", 32, 96) == (decision.verdict, decision.usable, decision.logical)
    assert ("kv/covers_prefix",) == decision.failed
    assert decision.clamped


def test_a_missing_beginning_leaves_nothing() -> None:
    """Attention reads from the first position on."""
    decision = decide(pieces(build_of("homogeneous", 97, 32), "kv", (32, 96)))
    assert ("recompute", 0, 96) == (decision.verdict, decision.usable, decision.logical)


def test_a_state_is_resumed_at_its_own_length_only() -> None:
    """Of two checkpoints the one that spans the length is asked, and the joint length is one that was stored."""
    build = build_of("stored", 97, 16)
    build.segment("kv", marks=frozenset({16, 32, 48, 64, 80, 96}))
    for name in ("rec", "other"):
        build.segment(name, end=32, matched=96)
        build.segment(name, end=80, matched=96)
    decision = decide(build)
    assert ("reuse", 80, 96) == (decision.verdict, decision.usable, decision.logical)
    build.pieces["other"].pop()
    assert 32 == decide(build).usable


def test_an_index_piece_over_two_entry_pieces_has_no_peer() -> None:
    """A piece whose peers are cut elsewhere is made for no single one of them."""
    build = pieces(build_of("pooled", 65, 64), "entries", (0, 32), (32, 64))
    pieces(build, "index", (0, 64))
    build.segment("state")
    decision = decide(build)
    assert ("recompute", {"index/same_kv", "index/rows_mapped"}) == (
        decision.verdict,
        set(decision.failed),
    )


def test_index_pieces_beside_their_entries_are_reused() -> None:
    """Cut alike, each piece finds the one that answers for its tokens."""
    build = pieces(build_of("pooled", 65, 64), "entries", (0, 32), (32, 64))
    pieces(build, "index", (0, 32), (32, 64))
    build.segment("state", matched=64)
    build.pieces["entries"][1].recorded = build.pieces["index"][1].kv_content = "second"
    build.pieces["entries"][1].measured = "second"
    assert ("reuse", 64, ()) == (decide(build).verdict, decide(build).usable, decide(build).failed)
    build.pieces["index"][0].kv_content = "second"
    assert ("index/same_kv",) == decide(build).failed


@pytest.mark.parametrize("fact", ["length", "granularity", "weights", "attention_config", "adapter", "media", "salt"])
def test_an_unknown_door_fact_misses_before_any_rule(fact: str) -> None:
    """A request that does not say who it is, or how long, finds nothing, whatever is held."""
    build = build_of("homogeneous", 65).all()
    setattr(build.request, fact, None)
    decision = decide(build, 64)
    assert ("miss", 0, 0, (f"door/{fact}",)) == (decision.verdict, decision.logical, decision.usable, decision.failed)


@pytest.mark.parametrize("fact", ["weights", "attention_config", "adapter", "media", "salt"])
def test_another_identity_is_a_miss(fact: str) -> None:
    """The entry stays for whom it belongs to; this request sees nothing of it."""
    build = build_of("homogeneous", 65).all()
    setattr(build.request, fact, "of this request")
    decision = decide(build)
    assert ("miss", 0, 0) == (decision.verdict, decision.logical, decision.usable)
    assert (f"kv/same_{fact}",) == decision.failed
    assert {"kv": "keep"} == decision.dispositions


def test_the_shortest_match_of_all_groups_is_logical() -> None:
    """A group whose key agrees up to 48 tokens lets nobody resume behind them."""
    build = build_of("two-ranks", 65, 16)
    build.segment("kv@0", matched=64)
    build.segment("kv@1", matched=48)
    assert (48, 48) == (decide(build).logical, decide(build).usable)


def test_a_match_that_no_rule_can_save_is_recomputed() -> None:
    """Logical, yet not usable: bytes of an older generation with no source."""
    build = build_of("homogeneous", 65).all()
    build.pieces["kv"][0].written_generation = 0
    decision = decide(build)
    assert ("recompute", 64, 0, 65 * 40.0) == (decision.verdict, decision.logical, decision.usable, decision.total_us)


@pytest.mark.parametrize("source", ["has_tokens", "has_media"])
@pytest.mark.parametrize("at_hand", [False, None])
def test_what_can_be_neither_reused_nor_recomputed_is_refused(source: str, at_hand: bool | None) -> None:
    """Without its tokens and media a prompt cannot be computed anew; nor is it surely at hand where unknown."""
    build = build_of("homogeneous", 65).all()
    setattr(build.request, source, at_hand)
    assert "reuse" == decide(build).verdict
    build.pieces["kv"][0].written_generation = 0
    assert "refuse" == decide(build).verdict
    build.request.adapter = "another"
    assert "refuse" == decide(build).verdict


def test_a_repair_is_chosen_where_it_costs_less_than_prefill() -> None:
    """A copy through an aligned buffer for ten microseconds saves 64 tokens of prefill."""
    build = build_of("homogeneous", 65, 64).all()
    build.pieces["kv"][0].address = 4097
    decision = decide(build)
    assert ("repair", 64, ["kv/bounce"]) == (decision.verdict, decision.usable, options(decision))
    assert pytest.approx([10.004096, 50.004096]) == [decision.cost_us, decision.total_us]


def test_a_repair_that_costs_more_than_prefill_is_not_made() -> None:
    """Computing everything anew is a plan too, and the cheaper one here."""
    build = build_of("homogeneous", 65, 64).all()
    build.pieces["kv"][0].address = 4097
    build.runtime.prefill_us_per_token = 0.1
    decision = decide(build)
    assert ("recompute", 0, ()) == (decision.verdict, decision.usable, decision.plan)
    assert pytest.approx(6.5) == decision.total_us


def test_a_shorter_clean_length_may_beat_a_longer_repaired_one() -> None:
    """The sum of recovery and prefill decides, not the length."""
    build = pieces(build_of("homogeneous", 97, 32), "kv", (0, 64), (64, 96))
    build.pieces["kv"][1].address = 4097
    assert ("repair", 96) == (decide(build).verdict, decide(build).usable)
    build.runtime.prefill_us_per_token = 0.3
    assert ("reuse", 64, 96) == (decide(build).verdict, decide(build).usable, decide(build).logical)


def test_at_equal_price_the_longer_length_is_used() -> None:
    """Free prefill makes all clean lengths equal; only a repair is still worth avoiding."""
    build = pieces(build_of("homogeneous", 97, 32), "kv", (0, 64), (64, 96))
    build.runtime.prefill_us_per_token = 0.0
    assert ("reuse", 96, 0.0) == (decide(build).verdict, decide(build).usable, decide(build).total_us)
    build.pieces["kv"][1].address = 4097
    assert ("reuse", 64, 0.0) == (decide(build).verdict, decide(build).usable, decide(build).total_us)


def test_an_unknown_prefill_price_takes_the_longest_clean_length() -> None:
    """What is not known is not cheaper than what is held."""
    build = pieces(build_of("homogeneous", 97, 32), "kv", (0, 64), (64, 96))
    build.runtime.prefill_us_per_token = None
    build.pieces["kv"][1].address = 4097
    decision = decide(build)
    assert ("repair", 96, float("inf")) == (decision.verdict, decision.usable, decision.total_us)


def test_an_unknown_price_sorts_last() -> None:
    """With the host's rate unknown the dearer rebuild is chosen; a plan of unknown price loses to known prefill."""
    build = build_of("pooled", 65, 64).all()
    build.pieces["state"][0].form, build.pieces["state"][0].tier = "demoted", "host"
    assert ["state/promote_from_host"] == options(decide(build))
    build.runtime.host_us_per_byte = None
    assert ["state/rebuild_state"] == options(decide(build))
    build = build_of("homogeneous", 65, 64).all()
    build.pieces["kv"][0].address, build.runtime.device_us_per_byte = 4097, None
    assert ("recompute", ()) == (decide(build).verdict, decide(build).plan)


def test_a_joint_repair_is_paid_once_at_its_dearest() -> None:
    """The warm-up that one group needs for 48 tokens serves the other, which needs it for 56."""
    build = build_of("deepseek-v4-flash", 16385, 16384)
    build.all(but=["layer_inputs", "window", "csa_state"])
    decision = decide(build)
    prices = {step.group: step.cost_us for step in decision.plan}
    assert {"window": 5461 * 40.0, "csa_state": 5469 * 40.0} == prices
    assert ("rebuild", 5469 * 40.0) == (decision.verdict, decision.cost_us)
    assert {"warm_up"} == {step.joint for step in decision.plan}


def test_what_no_query_reads_may_fail() -> None:
    """Damaged layer inputs are no source any more, and no obstacle either."""
    build = build_of("windowed", 65, 64).all()
    build.pieces["inputs"][0].generation = 99
    assert ("reuse", ()) == (decide(build).verdict, decide(build).failed)
    build.pieces["tail"][0].end = 60
    build.pieces["tail"][0].position = 60
    assert "tail/fill_young_end" not in options(decide(build))


def test_bytes_that_are_in_doubt_are_not_read_by_a_repair() -> None:
    """A block of another generation is not copied to a better address."""
    build = build_of("homogeneous", 65, 64).all()
    build.pieces["kv"][0].address, build.pieces["kv"][0].measured = 4097, "torn"
    decision = decide(build)
    assert ("recompute", ()) == (decision.verdict, decision.plan)
    assert {"kv": "quarantine"} == decision.dispositions


def edited(profile: str, *edits: tuple[tuple[str | int, ...], object]) -> Build:
    """A faultless prefix of 64 tokens under an edited rulebook."""
    source = read_source("mixed_attention")
    for path, value in edits:
        source, _ = source.edited(path, value)
    model = small_profile(profile)
    assert model is not None
    return Build(Engine(bind_rulebook(resolve(source), model)), 65, 64).all()


def test_a_repair_that_spoils_what_held_is_not_taken() -> None:
    """A copy that forgets its layout mends the address and breaks another check, which the next repair would mend."""
    build = edited("homogeneous", (("every_object", "recovery", "bounce", "sets", "layout"), None))
    build.pieces["kv"][0].address = 4097
    assert ("recompute", ()) == (decide(build).verdict, decide(build).plan)


def test_at_equal_price_the_lower_level_is_chosen() -> None:
    """Rows rewritten in place come before a rebuild of one layer, though its name comes first."""
    build = edited(
        "pooled",
        (("every_object", "recovery", "relayout", "cost"), "runtime.launch_us"),
        (("objects", "routing_index", "recovery", "rebuild_keys", "cost"), "runtime.launch_us"),
    )
    build.pieces["index"][0].layout = "old"
    assert ["index/relayout"] == options(decide(build))


def test_without_its_manifest_nothing_comes_back() -> None:
    """A promoted segment needs the record of what the demoted prefix consists of."""
    build = build_of("windowed", 65, 64).all()
    for name in ("kv", "tail"):
        build.pieces[name][0].form, build.pieces[name][0].tier = "demoted", "host"
    assert ["kv/promote_from_host", "tail/promote_from_host"] == options(decide(build))
    build.pieces["manifest"][0].manifest_digest = "of other members"
    assert not any("promote" in option for option in options(decide(build)))


def test_a_captured_graph_of_another_pool_runs_eagerly() -> None:
    """The flag stands beside any verdict."""
    build = build_of("homogeneous", 65, 64).all()
    assert () == decide(build).flags
    build.request.captured, build.request.graph_epoch = True, 0
    assert ("reuse", ("eager",)) == (decide(build).verdict, decide(build).flags)
    build.request.captured = None
    assert ("eager",) == decide(build).flags


def test_an_extent_that_may_still_be_written_is_copied() -> None:
    """What is not surely sealed is copied before somebody else reads it, also where nobody has measured it yet."""
    build = build_of("homogeneous", 65, 64).all()
    for sealed in (False, None):
        build.pieces["kv"][0].sealed = sealed
        for measured in ("content", None):
            build.pieces["kv"][0].measured = measured
            assert ("repair", ("copy_on_write",)) == (decide(build).verdict, decide(build).flags)
            assert ["kv/copy_open_extent"] == options(decide(build))


def test_what_a_plan_makes_anew_is_not_copied() -> None:
    """An open state of another length is left to its owner, and the flag is not raised; rows that are filled up are."""
    build = build_of("pooled", 65, 64).all()
    state = build.pieces["state"][0]
    state.sealed, state.marks = False, frozenset({60})
    assert (["state/rebuild_state"], ()) == (options(decide(build)), decide(build).flags)
    build = build_of("windowed", 65, 64).all()
    build.pieces["kv"][0].sealed, build.pieces["kv"][0].end = False, 60
    assert (["kv/fill_young_end"], ("copy_on_write",)) == (options(decide(build)), decide(build).flags)


def test_what_cannot_be_computed_is_mended_at_any_price() -> None:
    """A repair dearer than all prefill is left out, unless reusing nothing is not possible at all."""
    build = build_of("homogeneous", 65, 64).all()
    build.pieces["kv"][0].layout, build.runtime.device_us_per_byte = "old", 1000.0
    assert "recompute" == decide(build).verdict
    build.request.has_media = False
    for decision in (decide(build), plain_decide(build.bound, build.state())):
        assert ("repair", 64, ["kv/relayout"]) == (decision.verdict, decision.usable, options(decision))
    build.pieces["kv"][0].weights = "other"
    assert ("refuse", 65 * 40.0) == (decide(build).verdict, decide(build).total_us)


def test_media_must_not_differ_in_what_rows_depend_on() -> None:
    """Text that repeats a picture's placeholders is no picture, and a look-ahead reaches into the next one."""
    build = build_of("homogeneous", 129, 64)
    build.segment("kv", end=128, matched=128, media="cat", media_from=64)
    for media, begins, usable in (("cat", 64, 128), ("dog", 64, 64), ("none", 2**30, 64), ("cat", 65, 64)):
        build.request.media, build.request.media_from = media, begins
        assert (media, begins, usable) == (media, begins, decide(build).usable)
    model = small_profile("homogeneous")
    assert model is not None
    group = model.groups[0].model_copy(update={"constants": {**model.groups[0].constants, "lookahead": 1}})
    drafts = Engine(bind_rulebook(build.bound.rulebook, model.model_copy(update={"groups": (group,)})))
    for begins, usable in ((64, 0), (65, 64)):
        build = Build(drafts, 129, 64)
        build.segment("kv", end=64, matched=128, media="cat", media_from=begins)
        build.request.media, build.request.media_from = "dog", begins
        assert (begins, usable) == (begins, decide(build, 128).usable)


def test_entries_of_an_old_pool_are_purged() -> None:
    """Their addresses lead nowhere."""
    build = build_of("homogeneous", 65, 64).all()
    build.runtime.pool_epoch = 2
    assert ("recompute", {"kv": "purge"}) == (decide(build).verdict, decide(build).dispositions)


def test_what_lies_in_slower_storage_outlives_the_pool() -> None:
    """A pool that was made anew has nothing to do with bytes of the host, which another request may bring back."""
    build = build_of("homogeneous", 65, 64).all()
    build.runtime.pool_epoch = 2
    build.pieces["kv"][0].form, build.pieces["kv"][0].tier = "demoted", "host"
    assert ("recompute", {"kv": "keep"}) == (decide(build).verdict, decide(build).dispositions)


def test_a_prompt_of_one_token_reuses_nothing() -> None:
    """The last token is always computed."""
    build = build_of("homogeneous", 1)
    build.segment("kv", end=8)
    assert ("miss", 0, 0) == (decide(build).verdict, decide(build).logical, decide(build).usable)


def test_nothing_held_is_a_match_without_use() -> None:
    """A group without any segment holds a discarded record; what matches elsewhere must be computed."""
    build = build_of("homogeneous", 65, 64)
    decision = decide(build, 64)
    assert ("recompute", 64, 0) == (decision.verdict, decision.logical, decision.usable)
    assert "kv/resident" in decision.failed
    assert {"kv": "keep"} == decision.dispositions


def test_a_huge_prompt_is_decided() -> None:
    """A thousand million tokens with a hash unit of one are no reason to look at every length."""
    build = build_of("homogeneous", 2**30).all()
    assert ("reuse", 2**30 - 1) == (decide(build).verdict, decide(build).usable)
    build.pieces["kv"][0].end = 5
    assert ("reuse", 5) == (decide(build).verdict, decide(build).usable)


def test_without_explanation_the_answer_is_the_same() -> None:
    """Reasons, dispositions and flags are left out, nothing else."""
    build = pieces(build_of("homogeneous", 97, 32), "kv", (0, 64), (64, 96))
    build.pieces["kv"][1].address = 4097
    full, short = decide(build), build.engine.decide(build.state(), explain=False)
    same = ("verdict", "logical", "usable", "plan", "cost_us", "total_us")
    assert [getattr(full, name) for name in same] == [getattr(short, name) for name in same]
    assert ((), (), {}) == (short.failed, short.reasons, short.dispositions)


def test_deciding_changes_nothing() -> None:
    """Plans are proposals: the segments of the state are as they were."""
    build = build_of("windowed", 65, 64).all()
    build.pieces["kv"][0].address = 4097
    before = [segment.as_dict() for held in build.pieces.values() for segment in held]
    assert decide(build).plan == decide(build).plan
    assert before == [segment.as_dict() for held in build.pieces.values() for segment in held]
