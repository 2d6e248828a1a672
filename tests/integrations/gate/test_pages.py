"""Pages that come back from slower storage: only those that the rules accept are opened."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hitproof.engine import Engine
from hitproof.integrations.gate import PageOpened, PageRefused, PageSeal
from hitproof.integrations.gate.page_record import HEAD
from hitproof.spec.errors import UsageError
from tests.integrations.gate.frames import CONTRACT, GEMMA, IDENTITY, QWEN, TOKENS, gate, gemma, qwen

PAYLOAD = bytes(range(256)) * 8
ASKED: dict[str, Any] = {"start": 32, "end": 48, "digest": b"d" * 32}


@pytest.fixture(scope="module")
def engine() -> Engine:
    """The engine of the tiny Gemma."""
    return gate(gemma(), GEMMA).engine


def seal(engine: Engine, **options: Any) -> PageSeal:
    """Pages of its full layer, 2,048 bytes for sixteen tokens."""
    stated = {"identity": IDENTITY, "contract": CONTRACT, **options}
    return PageSeal(engine, "full_full", **stated)


def failed(answer: PageOpened | PageRefused | None) -> tuple[str, ...]:
    """Checks that failed, without the group's name."""
    return () if not isinstance(answer, PageRefused) else tuple(one.partition("/")[2] for one in answer.failed)


def test_what_was_sealed_is_opened(engine: Engine) -> None:
    """Record and bytes, apart or in one, come back as they were put, for who asks for the same tokens."""
    pages = seal(engine)
    record = pages.seal(PAYLOAD, **ASKED)
    assert pages.peek(record, **ASKED) is None
    answer = pages.open(record, PAYLOAD, **ASKED)
    assert answer == PageOpened(PAYLOAD) and answer
    whole = pages.unwrap(pages.wrap(PAYLOAD, **ASKED), **ASKED)
    assert isinstance(whole, PageOpened) and bytes(whole.payload) == PAYLOAD
    assert pages.span(record) == (32, 48)
    assert seal(engine).open(record, bytearray(PAYLOAD), **ASKED)


@pytest.mark.parametrize("fact", sorted(IDENTITY))
def test_pages_of_another_identity_are_refused(engine: Engine, fact: str) -> None:
    """Rows of other weights, another adapter, tenant, configuration or picture fail the check of that name."""
    pages = seal(engine)
    record = pages.seal(PAYLOAD, **ASKED, identity={fact: "another", "media_from": 0})
    asker = {"media_from": 0}
    assert failed(pages.open(record, PAYLOAD, **ASKED, identity=asker)) == (f"same_{fact}",)
    assert failed(pages.peek(record, **ASKED, identity=asker)) == (f"same_{fact}",)
    assert pages.open(record, PAYLOAD, **ASKED, identity={fact: "another", "media_from": 0})


@pytest.mark.parametrize(
    ("fact", "check"),
    [
        ("layout", "layout_matches"),
        ("version", "kernel_version_matches"),
        ("encoding", "encoding_matches"),
        ("v_layout", "v_layout_matches"),
        ("shard", "same_shard"),
    ],
)
def test_pages_that_the_kernel_reads_otherwise_are_refused(engine: Engine, fact: str, check: str) -> None:
    """Bytes of another layout, format, version or rank are refused, whether the writer's contract or ours changed."""
    pages = seal(engine)
    record = pages.seal(PAYLOAD, **ASKED, contract={fact: "another"})
    assert failed(pages.open(record, PAYLOAD, **ASKED)) == (check,)
    changed = seal(engine, contract={**CONTRACT, fact: "another"})
    assert failed(changed.open(pages.seal(PAYLOAD, **ASKED), PAYLOAD, **ASKED)) == (check,)


@pytest.mark.parametrize(
    "asked", [{"digest": b"e" * 32}, {"digest": "d" * 32}, {"start": 16}, {"start": 48, "end": 64}]
)
def test_pages_of_other_tokens_are_refused(engine: Engine, asked: dict[str, Any]) -> None:
    """A page under a stale or foreign name is not of the tokens that are asked for."""
    pages = seal(engine)
    record = pages.seal(PAYLOAD, **ASKED)
    assert failed(pages.open(record, PAYLOAD, **{**ASKED, **asked})) == ("tokens_match",)


@settings(max_examples=60)
@given(place=st.integers(0, len(PAYLOAD) - 1), bit=st.integers(0, 7))
def test_any_flipped_bit_of_the_bytes_is_noticed(place: int, bit: int) -> None:
    """Whichever bit of a page changes, the fingerprint differs."""
    pages = seal(gate(gemma(), GEMMA).engine)
    torn = bytearray(PAYLOAD)
    torn[place] ^= 1 << bit
    assert failed(pages.open(pages.seal(PAYLOAD, **ASKED), torn, **ASKED)) == ("fingerprint_matches",)


@settings(max_examples=100)
@given(data=st.data())
def test_any_changed_record_is_refused(data: st.DataObject) -> None:
    """Flipped bits, cut and longer records and plain noise are refused, and never an exception."""
    pages = seal(gate(gemma(), GEMMA).engine)
    record = pages.seal(PAYLOAD, **ASKED)
    place = data.draw(st.integers(0, len(record) - 1))
    flipped = bytearray(record)
    flipped[place] ^= 1 << data.draw(st.integers(0, 7))
    noise = data.draw(st.binary(max_size=200))
    for bad in (bytes(flipped), record[:place], record + b"x", noise, record[: HEAD.size] + noise):
        assert isinstance(pages.open(bad, PAYLOAD, **ASKED), PageRefused)
        assert isinstance(pages.peek(bad, **ASKED), PageRefused)
        assert isinstance(pages.span(bad), PageRefused)
    assert isinstance(pages.unwrap(noise, **ASKED), PageRefused)


def test_half_a_page_is_refused(engine: Engine) -> None:
    """Bytes that stop half-way fail by their length too, as does a page that was sealed short."""
    pages = seal(engine)
    record = pages.seal(PAYLOAD, **ASKED)
    assert set(failed(pages.open(record, PAYLOAD[:1024], **ASKED))) == {"bytes_whole", "fingerprint_matches"}
    short = pages.seal(PAYLOAD[:1024], **ASKED)
    assert failed(pages.open(short, PAYLOAD[:1024], **ASKED)) == ("bytes_whole",)
    assert failed(pages.peek(short, **ASKED)) == ("bytes_whole",)


def test_only_who_has_the_secret_writes_what_is_opened(engine: Engine) -> None:
    """Records without a code, of another secret, or with a code where none is expected are refused."""
    with_secret, other, without = seal(engine, secret=b"k"), seal(engine, secret=b"l"), seal(engine)
    record = with_secret.seal(PAYLOAD, **ASKED)
    assert with_secret.open(record, PAYLOAD, **ASKED)
    for reader, written in ((other, record), (with_secret, without.seal(PAYLOAD, **ASKED)), (without, record)):
        assert failed(reader.open(written, PAYLOAD, **ASKED)) == ("unauthenticated",)
    with pytest.raises(UsageError):
        seal(engine, secret=b"")
    with pytest.raises(UsageError):
        seal(engine, secret=bytes(65))


def test_pages_of_another_group_are_refused(engine: Engine) -> None:
    """A page of the windows is no page of the full layers."""
    window = PageSeal(engine, "window_near", identity=IDENTITY, contract=CONTRACT)
    assert failed(seal(engine).open(window.seal(PAYLOAD, **ASKED), PAYLOAD, **ASKED)) == ("other_group",)
    with pytest.raises(UsageError):
        PageSeal(engine, "sliding", identity=IDENTITY, contract=CONTRACT)


def test_an_unknown_identity_opens_nothing(engine: Engine) -> None:
    """Where a request does not tell its adapter no page is its own, and no name leads to one."""
    unstated = {name: value for name, value in IDENTITY.items() if name != "adapter"}
    pages = seal(engine, identity=unstated)
    assert failed(pages.open(seal(engine).seal(PAYLOAD, **ASKED), PAYLOAD, **ASKED)) == ("adapter",)
    assert pages.key(b"d", end=48) is None
    record = pages.seal(PAYLOAD, **ASKED)
    assert failed(seal(engine).open(record, PAYLOAD, **ASKED)) == ("same_adapter",)


@pytest.mark.parametrize("fact", ["weights", "attention_config", "adapter", "salt"])
def test_names_carry_what_the_rulebooks_keys_carry(engine: Engine, fact: str) -> None:
    """Pages of another identity, prompt, length or tier have other names; text before a picture has one for all."""
    pages = seal(engine)
    name = pages.key(b"d", end=48)
    assert name == seal(engine).key(b"d", end=48)
    others = {
        pages.key(b"d", end=48, identity={fact: "another"}),
        pages.key("d", end=48),
        pages.key(b"e", end=48),
        pages.key(b"d", end=64),
    }
    assert name not in others and len(others) == 4 and None not in others
    late, early = ({"media": "cat", "media_from": place} for place in (100, 10))
    assert pages.key(b"d", end=48, identity=late) == name
    assert pages.key(b"d", end=48, identity=early) != name


def test_states_are_pages_too() -> None:
    """A recurrent state is sealed whole, and half of one is refused."""
    one = gate(qwen(), QWEN)
    pages = one.pages("linear")
    size = int(one.engine.bound.group("linear_linear").constants["state_bytes"])
    asked: dict[str, Any] = {"start": 0, "end": 5 * TOKENS, "digest": "p5"}
    record = pages.seal(bytes(size), **asked)
    assert pages.open(record, bytes(size), **asked)
    assert failed(pages.open(pages.seal(bytes(size - 1), **asked), bytes(size - 1), **asked)) == ("bytes_whole",)


def test_a_gates_pages_are_judged_by_its_contract_of_now() -> None:
    """After the kernel has changed, pages of before are refused."""
    one = gate(gemma(), GEMMA)
    record = one.pages("full").seal(PAYLOAD, **ASKED)
    one.contract("full", encoding="fp8_e4m3")
    assert failed(one.pages("full").open(record, PAYLOAD, **ASKED)) == ("encoding_matches",)
