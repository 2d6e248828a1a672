"""Why a hit was refused, and what becomes of its entries."""

from __future__ import annotations

from random import Random

from hitproof.engine.candidates import proposed_lengths
from hitproof.engine.decide import Engine
from hitproof.engine.reasons import environment_of
from hitproof.engine.state import Resolved
from hitproof.spec.condition import conjuncts, interpret, reads, text
from hitproof.spec.decision import Decision
from hitproof.spec.facts import Value
from tests.engine.state_cases import SHIPPED, SMALL, Build, build_of, engine_of, random_build


def decide(build: Build, matched: int | None = None) -> Decision:
    """The engine's decision."""
    return build.engine.decide(build.state(matched))


def test_a_reason_names_the_part_that_failed_and_its_values() -> None:
    """Of `start <= first and to <= end` the second part is false, and only what it reads is told."""
    build = build_of("homogeneous", 65, 64)
    build.segment("kv", end=40, matched=64)
    (reason,) = decide(build).reasons
    assert ("kv/covers_prefix", "group_intersection") == (reason.rule, reason.layer)
    assert "self.end" in reason.conjunct and "self.start" not in reason.conjunct
    assert {"length": 64, "self.end": 40, "share.to": 2**40} == dict(reason.values)
    assert "every later query" in reason.because
    assert "full_kv.yaml:" in reason.place


def test_unknown_values_are_told_as_such() -> None:
    """A check that nobody could decide says which fact is missing."""
    build = build_of("homogeneous", 65, 64).all()
    build.pieces["kv"][0].measured = None
    build.runtime.prefill_us_per_token = 0.0
    (reason,) = decide(build).reasons
    assert ("kv/fingerprint_matches", None, "content") == (
        reason.rule,
        reason.values["self.measured"],
        reason.values["self.recorded"],
    )


def test_reasons_stand_in_the_order_of_failed() -> None:
    """One reason for each id, however many pieces failed it."""
    build = build_of("homogeneous", 97, 32)
    for start in (0, 32, 64):
        build.segment("kv", start=start, end=start + 32, matched=96, address=start + 1, encoding="other")
    decision = decide(build)
    assert ("kv/encoding_matches", "kv/base_aligned") == decision.failed
    assert decision.failed == tuple(reason.rule for reason in decision.reasons)


def test_a_miss_is_explained_at_the_length_that_was_looked_at() -> None:
    """Where no length matches, the values are those of the longest proposed one, not of zero tokens."""
    build = build_of("homogeneous", 65, 32)
    build.segment("kv", matched=8)
    decision = decide(build, 64)
    assert ("miss", ("kv/tokens_match",)) == (decision.verdict, decision.failed)
    assert {"length": 64, "self.matched": 8} == dict(decision.reasons[0].values)


def test_values_are_those_before_any_repair() -> None:
    """What a plan will have mended is told as it was found."""
    build = build_of("homogeneous", 65, 64).all()
    build.pieces["kv"][0].address = 4097
    decision = decide(build)
    assert "repair" == decision.verdict
    assert 4097 == decision.reasons[0].values["self.address"]


def test_a_piece_is_disposed_of_by_its_own_peer() -> None:
    """An index piece that fails for another reason is not purged because a neighbour's entries are others."""
    build = build_of("pooled", 65, 64)
    for start in (0, 32):
        build.segment("entries", start=start, end=start + 32, matched=64, recorded=f"entries {start}")
    for start in (0, 32):
        build.segment("index", start=start, end=start + 32, matched=64)
    build.segment("state")
    build.pieces["index"][1].kv_generation = 77
    decision = decide(build)
    assert (("index/rows_mapped",), {"index": "keep"}) == (decision.failed, decision.dispositions)
    build.pieces["index"][1].kv_content = "entries 0"
    assert {"index": "purge"} == decide(build).dispositions


def test_what_is_discarded_needs_no_disposition() -> None:
    """There is nothing left to keep, purge or look at."""
    build = build_of("homogeneous", 65, 64).all()
    build.runtime.pool_epoch = 2
    build.pieces["kv"][0].form = "discarded"
    assert {"kv": "keep"} == decide(build).dispositions


def test_a_state_that_its_key_cannot_reach_is_purged() -> None:
    """One that was filed before the position that it encodes serves nobody; one of a longer prompt is kept."""
    for filed, fate in ((64, "purge"), (96, "keep")):
        build = build_of("stored", 65, 16).all(but=["rec"])
        build.segment("rec", end=96, matched=64, filed=filed)
        decision = decide(build)
        assert ("recompute", fate) == (decision.verdict, decision.dispositions["rec"])


def test_no_length_up_to_its_key_is_lost_with_a_purged_state() -> None:
    """For all small lengths: where the state is purged, no request that comes by its key could have used it."""
    purged = 0
    for end in range(1, 9):
        for filed in range(1, 9):
            build = build_of("stored", 10).all(but=["rec"])
            build.pieces["kv"][0].marks = build.pieces["other"][0].marks = frozenset(range(1, 10))
            build.segment("rec", end=end, matched=filed, filed=filed)
            decision = decide(build)
            served = (decision.verdict, decision.usable) == ("reuse", end)
            assert served == (end <= filed)
            if decision.dispositions.get("rec") == "purge":
                assert not served
                purged += 1
    assert 28 == purged


def test_what_the_answer_reads_is_kept() -> None:
    """An entry with one more checkpoint, within its key, is not purged while the request resumes there."""
    build = build_of("stored", 65, 16).all(but=["rec"])
    build.pieces["kv"][0].marks = build.pieces["other"][0].marks = frozenset({32, 64})
    build.segment("rec", end=96, matched=64, filed=64, marks=frozenset({32, 96}))
    decision = decide(build)
    assert ("reuse", 32, "keep") == (decision.verdict, decision.usable, decision.dispositions["rec"])


def test_an_entry_is_not_purged_for_what_a_repair_would_do_to_its_peer() -> None:
    """Entries in another format are converted, which changes their fingerprint; the index for the old ones stays."""
    build = build_of("pooled", 65, 64).all()
    build.request.allows_approximate = True
    build.pieces["entries"][0].encoding = "other"
    decision = decide(build)
    assert "index/same_kv" in decision.failed
    assert {"entries": "keep", "index": "keep"} == decision.dispositions
    build.pieces["index"][0].kv_content = "older entries"
    assert "purge" == decide(build).dispositions["index"]


def test_what_is_not_held_is_not_purged() -> None:
    """An index that a plan makes anew was not there, whatever entries it is made for."""
    build = build_of("pooled", 65, 64).all(but=["index"])
    build.pieces["entries"][0].end = 32
    decision = decide(build)
    assert {"entries/rebuild_entries", "index/rebuild_keys"} <= {f"{one.group}/{one.option}" for one in decision.plan}
    assert {"entries": "keep", "index": "keep"} == decision.dispositions


def test_reasons_are_those_of_all_facts_laid_out() -> None:
    """Parts and values that are looked up one by one are those of an environment that has every fact of the moment."""
    random, seen = Random(3), 0
    for name in (*SMALL, *SHIPPED):
        engine = engine_of(name)
        for _ in range(40):
            state = random_build(engine, random).state()
            decision = engine.decide(state)
            if any(rule.startswith("door/") for rule in decision.failed):
                continue
            told = {reason.rule: (reason.conjunct, dict(reason.values)) for reason in decision.reasons}
            assert told == laid_out(engine, state)
            seen += len(told)
    assert seen > 300


def laid_out(engine: Engine, state: Resolved) -> dict[str, tuple[str, dict[str, Value]]]:
    """By check that fails at the length that is looked at, in order: its first part that fails, and what that reads."""
    judge, lengths = engine.judge, proposed_lengths(state)
    if not lengths:
        return {}
    outcome = judge.outcome(state, judge.nothing(), engine.longest_match(state) or lengths[0])
    found: dict[str, tuple[str, dict[str, Value]]] = {}
    for group, masks in zip(judge.groups, outcome.masks, strict=True):
        for place, mask in enumerate(masks if group.mandatory else ()):
            env = environment_of(judge, state, outcome, group, place)
            for bit, check in enumerate(group.bound.checks):
                if mask & 1 << bit:
                    part = next(one for one in conjuncts(check.require) if interpret(one, env) is not True)
                    values = {path: env.get(path) for path in reads(part)}
                    found.setdefault(f"{group.id}/{check.id}", (text(part), values))
    return found
