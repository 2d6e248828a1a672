"""What a framework's hit is worth after each fault that a framework can have."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from hitproof.engine.load import proof_beside
from hitproof.engine.observe import Counters
from hitproof.integrations.gate import BlockGate, Gated, GroupBlocks
from hitproof.spec.errors import ProofError, UsageError
from tests.integrations.gate.frames import GEMMA, IDENTITY, QWEN, TOKENS, asked, digests, filled, gate, gemma, qwen

COUNT = 12
WHOLE = COUNT * TOKENS


def judged(one: BlockGate, blocks: dict[str, list[int]], **stated: str) -> Gated:
    """The answer about a prompt of which all blocks are claimed."""
    return one.judge(length=WHOLE + 7, matched=WHOLE, blocks=blocks, digests=asked(blocks), identity=stated)


def test_a_hit_without_faults_is_used_whole() -> None:
    """All that the framework claimed is usable, nothing is refused, and it still stands right before the use."""
    one = gate(gemma(), GEMMA)
    answer = judged(one, filled(one, COUNT))
    assert (answer.usable, answer.logical, answer.decision.verdict) == (WHOLE, WHOLE, "reuse")
    assert not answer.refused and not answer.failed
    assert one.confirm(answer)


def test_the_last_token_is_always_computed() -> None:
    """A prompt of which every token is cached reuses one block less, for a step computes at least one token."""
    one = gate(gemma(), GEMMA)
    blocks = filled(one, COUNT)
    answer = one.judge(length=WHOLE, matched=WHOLE, blocks=blocks, digests=asked(blocks))
    assert answer.usable == WHOLE - TOKENS


def test_a_block_given_to_another_ends_the_hit_before_it() -> None:
    """An index that still leads to a block which was given out loses the tokens from that block on."""
    one = gate(gemma(), GEMMA)
    blocks = filled(one, COUNT)
    one.freed("full", [blocks["full"][8]])
    answer = judged(one, blocks)
    assert answer.usable == 8 * TOKENS
    assert answer.refused == {"full": (blocks["full"][8],)}
    assert answer.failed == ("full_full/generation_current",)
    assert answer.reasons[0].values["self.generation"] == 2


def test_a_block_of_another_prompt_under_this_key_is_refused() -> None:
    """A block that was written anew for other tokens, whose old index entry was left, is not this request's."""
    one = gate(gemma(), GEMMA)
    blocks = filled(one, COUNT)
    one.written("near", [blocks["near"][11]], first=11 * TOKENS, digests=["q11"])
    answer = judged(one, blocks)
    assert answer.refused == {"near": (blocks["near"][11],)}
    assert answer.usable == 11 * TOKENS
    assert answer.failed == ("window_near/tokens_match",)


def test_a_block_at_another_place_of_the_prompt_is_refused() -> None:
    """Rows are turned by their position, so a block serves no other place, whatever the index says."""
    one = gate(gemma(), GEMMA)
    blocks = filled(one, COUNT)
    one.written("full", [50], first=0, digests=["p5"])
    blocks["full"][5] = 50
    assert judged(one, blocks).refused == {"full": (50,)}


@pytest.mark.parametrize("fact", ["weights", "attention_config", "adapter", "media", "salt"])
def test_blocks_of_another_identity_are_worth_nothing(fact: str) -> None:
    """A request of another adapter, tenant, picture or model reuses nothing, though the index claims all of it."""
    one = gate(gemma(), GEMMA)
    blocks = filled(one, COUNT)
    asker: dict[str, str | int] = {fact: "another", "media_from": 0}
    answer = one.judge(length=WHOLE + 7, matched=WHOLE, blocks=blocks, digests=asked(blocks), identity=asker)
    assert answer.usable == 0
    assert set(answer.refused) == set(GEMMA)
    assert judged(one, blocks).usable == WHOLE


def test_text_before_the_first_picture_is_anybodys() -> None:
    """Blocks of a prompt with a picture serve a text prompt up to where the picture begins."""
    one = gate(gemma(), GEMMA)
    blocks = filled(one, COUNT, identity={"media": "cat", "media_from": 5 * TOKENS})
    assert judged(one, blocks).usable == 5 * TOKENS


def test_a_hit_may_be_made_of_blocks_of_several_writers() -> None:
    """Blocks of prompts with and without a picture serve a text prompt together, as long as no picture has begun."""
    one = gate(gemma(), GEMMA)
    blocks = filled(one, COUNT)
    for group in GEMMA:
        late: dict[str, str | int] = {"media": "cat", "media_from": 10 * TOKENS}
        one.written(group, blocks[group][4:7], first=4 * TOKENS, digests=digests(7)[4:], identity=late)
    assert judged(one, blocks).usable == WHOLE
    one.freed("full", [blocks["full"][9]])
    assert judged(one, blocks).usable == 9 * TOKENS


@pytest.mark.parametrize("fact", ["layout", "version", "encoding", "v_layout", "shard"])
def test_bytes_that_the_kernel_reads_otherwise_are_refused(fact: str) -> None:
    """Blocks that came in under another layout, number format, kernel version or rank are refused as they are."""
    one = gate(gemma(), GEMMA)
    blocks = filled(one, COUNT)
    one.written("far", [blocks["far"][-1]], first=11 * TOKENS, digests=["p11"], contract={fact: "another"})
    answer = judged(one, blocks)
    assert answer.refused == {"far": (blocks["far"][-1],)}
    one.written("far", [blocks["far"][-1]], first=11 * TOKENS, digests=["p11"])
    assert judged(one, blocks).usable == WHOLE


def test_a_kernel_that_reads_something_else_from_now_on_refuses_what_is_there() -> None:
    """What was written under the contract of before is refused under the new one."""
    one = gate(gemma(), GEMMA)
    blocks = filled(one, COUNT)
    one.contract("full", encoding="fp8_e4m3")
    assert judged(one, blocks).failed == ("full_full/encoding_matches",)


def test_a_moved_pool_leads_nowhere() -> None:
    """After the pool was resized no old block is used."""
    one = gate(gemma(), GEMMA)
    blocks = filled(one, COUNT)
    one.resized()
    assert judged(one, blocks).usable == 0
    assert judged(one, filled(one, COUNT)).usable == WHOLE


def test_everything_forgotten_is_refused() -> None:
    """After a reset of the cache an index that was kept leads to nothing."""
    one = gate(gemma(), GEMMA)
    blocks = filled(one, COUNT)
    one.forget("near")
    assert judged(one, blocks).refused == {"near": tuple(blocks["near"])}
    one.forget()
    assert judged(one, blocks).usable == 0


def test_blocks_that_nobody_wrote_are_refused() -> None:
    """A block that no writer told of holds nothing that anybody knows."""
    one = gate(gemma(), GEMMA)
    blocks = filled(one, COUNT)
    blocks["full"][3] = 900
    answer = judged(one, blocks)
    assert (answer.usable, answer.refused) == (3 * TOKENS, {"full": (900,)})


def test_an_unknown_identity_misses_at_the_door() -> None:
    """A framework that does not tell the adapter reuses nothing, and the answer names the fact."""
    one = gate(gemma(), GEMMA, identity={name: value for name, value in IDENTITY.items() if name != "adapter"})
    answer = judged(one, filled(one, COUNT))
    assert (answer.usable, answer.failed, answer.decision.verdict) == (0, ("door/adapter",), "miss")


class Bytes:
    """Fingerprints of blocks that a test may spoil."""

    def __init__(self) -> None:
        self.torn: set[tuple[str, int]] = set()
        self.calls: list[int] = []

    def __call__(self, group: str, blocks: Sequence[int]) -> list[str | None]:
        self.calls += blocks
        return [f"{group}{block}{'!' * ((group, block) in self.torn)}" for block in blocks]


def test_torn_bytes_are_found_where_every_use_is_measured() -> None:
    """A block whose bytes changed behind everybody's back is refused; without measuring nobody could know."""
    content = Bytes()
    one = gate(gemma(), GEMMA, measure=content, verify="use")
    trusting = gate(gemma(), GEMMA)
    blocks = filled(one, COUNT)
    filled(trusting, COUNT)
    for group in GEMMA:
        one.seal(group, blocks[group])
    content.torn.add(("full", blocks["full"][6]))
    answer = judged(one, blocks)
    assert (answer.usable, answer.failed) == (6 * TOKENS, ("full_full/fingerprint_matches",))
    assert judged(trusting, blocks).usable == WHOLE
    content.torn.clear()
    assert judged(one, blocks).usable == WHOLE


def test_one_block_in_so_many_is_measured_and_each_in_its_turn() -> None:
    """Sampling measures the stated share of blocks, and comes round to every one of them."""
    content = Bytes()
    one = gate(gemma(), GEMMA, measure=content, verify="sampled", every=5)
    blocks = filled(one, COUNT)
    for group in GEMMA:
        one.seal(group, blocks[group])
    content.calls.clear()
    for _ in range(5):
        judged(one, blocks)
    assert len(content.calls) == 3 * COUNT
    content.torn = {(group, block) for group in GEMMA for block in blocks[group]}
    for _ in range(5):
        answer = judged(one, blocks)
    assert answer.refused == {group: tuple(listed) for group, listed in blocks.items()}


def test_a_block_is_shared_only_once_its_writer_is_done() -> None:
    """Where bytes are measured a block is open until it was measured, and an unreadable one stays open."""
    one = gate(gemma(), GEMMA, measure=lambda group, blocks: [None] * len(blocks), verify="use")
    blocks = filled(one, COUNT)
    assert judged(one, blocks).failed[0] == "full_full/fingerprint_matches"
    for group in GEMMA:
        one.seal(group, blocks[group])
    assert judged(one, blocks).usable == 0
    for group in GEMMA:
        one.seal(group, blocks[group], ["f"] * COUNT)
    assert judged(one, blocks).usable == 0, "what cannot be measured at its use is not used"


def test_a_seal_that_comes_too_late_changes_nothing() -> None:
    """A block that was given away before its writer was done does not become anybody's by the late seal."""
    one = gate(gemma(), GEMMA, measure=Bytes(), verify="use")
    blocks = filled(one, COUNT)
    one.freed("full", blocks["full"][:1])
    for group in GEMMA:
        one.seal(group, blocks[group])
    assert judged(one, blocks).refused == {"full": (1,)}


def test_a_window_asks_only_for_what_it_reads() -> None:
    """Past blocks of a window may be absent or bad; one within it cuts the hit back to where the window was whole."""
    one = gate(gemma(), GEMMA, absent=0)
    blocks = filled(one, COUNT)
    for group in ("near", "far"):
        blocks[group][:8] = [0] * 8
    assert judged(one, blocks).usable == WHOLE
    one.freed("near", [blocks["near"][8]])
    answer = judged(one, blocks)
    assert (answer.usable, answer.refused) == (0, {"near": (9,)})


def test_a_hit_is_cut_where_all_groups_have_what_they_read() -> None:
    """Of a bad block in a window group, lengths that do not read it are found on both sides of it."""
    one = gate(gemma(), GEMMA)
    blocks = filled(one, COUNT)
    one.freed("near", [blocks["near"][4]])
    assert judged(one, blocks).usable == WHOLE, "block 4 has left the window"
    one.freed("full", [blocks["full"][9]])
    assert judged(one, blocks).usable == 9 * TOKENS
    one.freed("full", [blocks["full"][7]])
    assert judged(one, blocks).usable == 4 * TOKENS, "lengths of 5 to 8 blocks read block 4"


def test_a_recurrent_state_serves_its_own_length_alone() -> None:
    """The hit is cut to the longest length at which a state was kept that is still good."""
    one = gate(qwen(), QWEN)
    blocks = filled(one, COUNT)
    blocks["linear"] = [-1] * COUNT
    for index in (3, 7, 11):
        blocks["linear"][index] = index + 1
    assert judged(one, blocks).usable == WHOLE
    one.freed("linear", [12])
    assert judged(one, blocks).usable == 8 * TOKENS
    one.freed("full", [6])
    assert judged(one, blocks).usable == 4 * TOKENS


@pytest.mark.parametrize("change", ["freed", "written", "forget"])
def test_a_change_between_judgement_and_use_is_noticed(change: str) -> None:
    """A block that was freed, written anew or forgotten after it was judged is not confirmed."""
    one = gate(gemma(), GEMMA)
    blocks = filled(one, COUNT)
    answer = judged(one, blocks)
    if change == "freed":
        one.freed("near", [COUNT])
    elif change == "written":
        one.written("near", [COUNT], first=11 * TOKENS, digests=["p11"])
    else:
        one.forget()
    assert not one.confirm(answer)


def test_usable_lengths_are_whole_units() -> None:
    """Where groups have blocks of several sizes, a hit ends where all of them have a block's end."""
    wide = {**GEMMA, "full": GroupBlocks((5,), 2 * TOKENS, 4096, 4096, 64)}
    one = gate(gemma(), wide)
    for name in wide:
        count = COUNT if name != "full" else COUNT // 2
        one.written(name, range(1, count + 1), first=0, digests=digests(count))
    blocks = {name: list(range(1, (COUNT if name != "full" else COUNT // 2) + 1)) for name in wide}
    one.freed("near", [12])
    answer = judged(one, blocks)
    assert one.unit == 2 * TOKENS
    assert answer.usable == 10 * TOKENS, "block 11 ends within one of the wide blocks"


def test_writers_that_are_gone_are_forgotten() -> None:
    """A gate that has seen many writers keeps the facts of those alone that some block is of."""
    one = gate(gemma(), GEMMA)
    for number in range(5000):
        one.written("full", [number % 7], first=0, digests=["d"], identity={"salt": str(number)})
    blocks = filled(one, COUNT, identity={"salt": "last"})
    assert judged(one, blocks, salt="last").usable == WHOLE
    assert judged(one, blocks, salt="4999").usable == 0
    kept = one._groups["full"]
    assert len(kept.templates) < 2000 and len(kept.kinds) < 2000


def test_a_change_behind_the_usable_tokens_does_not_matter() -> None:
    """Only blocks of the tokens that are used are confirmed."""
    one = gate(gemma(), GEMMA)
    blocks = filled(one, COUNT)
    one.freed("full", [7])
    answer = judged(one, blocks)
    one.freed("full", [9])
    one.freed("near", [1])
    assert answer.usable == 6 * TOKENS and one.confirm(answer), "nor does one that the window has left behind"


def test_logical_and_effective_rates_are_told_apart() -> None:
    """Counters and observer have what was claimed beside what was used, once a request."""
    watched = gate(gemma(), GEMMA)
    counters = Counters(watched.engine.bound)
    one = gate(gemma(), GEMMA, observer=counters)
    blocks = filled(one, COUNT)
    first = judged(one, blocks)
    one.count(first, first.usable, WHOLE + 7)
    one.freed("full", [7])
    second = judged(one, blocks)
    one.count(second, second.usable, WHOLE + 7)
    one.counters.check_integrity()
    assert (one.counters.logical, one.counters.effective) == (2 * WHOLE, WHOLE + 6 * TOKENS)
    assert one.counters.requests == {"reuse": 2}
    tokens = counters.series("tokens")
    assert (tokens["logical",], tokens["effective",]) == (2 * WHOLE, WHOLE + 6 * TOKENS)
    assert counters.series("failed_checks")["block_integrity", "generation_current", "full_kv"] == 1


def test_rules_that_must_be_proved_are_refused_without_a_proof_of_this_model(tmp_path: Path) -> None:
    """A proof of other models, or none, does not vouch for the model as the framework groups it."""
    shipped = proof_beside("mixed_attention")
    for proof in (shipped, tmp_path / "none.json"):
        with pytest.raises(ProofError):
            gate(gemma(), GEMMA, proof=proof)


def test_what_a_caller_gets_wrong_is_told() -> None:
    """Unknown groups and facts, lists of different lengths and impossible places are errors with what was expected."""
    one = gate(gemma(), GEMMA)
    blocks = filled(one, COUNT)
    for call in (
        lambda: one.freed("sliding", [1]),
        lambda: one.written("full", [1], first=3, digests=["p0"]),
        lambda: one.written("full", [-1], first=0, digests=["p0"]),
        lambda: one.written("full", [1, 2], first=0, digests=["p0"]),
        lambda: one.written("full", [1], first=0, digests=["p0"], identity={"lora": "x"}),
        lambda: one.contract("full", page_size=3),
        lambda: one.judge(length=20, matched=16, blocks=blocks, digests={"full": digests(1)}),
        lambda: gate(gemma(), GEMMA, verify="use"),
        lambda: gate(gemma(), GEMMA, verify="always", measure=Bytes()),
        lambda: gate(gemma(), GEMMA, contract={"page": "x"}),
    ):
        with pytest.raises(UsageError):
            call()
