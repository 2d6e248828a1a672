"""The parts of the adapter that need no vLLM."""

from __future__ import annotations

import random
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hitproof.integrations.gate import BlockGate, GroupBlocks
from hitproof.integrations.vllm.adapters import files_digest, note_loads
from hitproof.integrations.vllm.identity import Identities
from hitproof.integrations.vllm.layout import CacheGroup
from hitproof.integrations.vllm.page_files import PageFiles
from hitproof.integrations.vllm.plugin import register
from hitproof.integrations.vllm.settings import verify_mode
from hitproof.integrations.vllm.versions import require_supported
from hitproof.rules.from_config import profile_from_config
from hitproof.spec.errors import UsageError

needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")

TOKENS = 16
MODEL = {
    "model_type": "llama",
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "hidden_size": 16,
}


@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, None), ("", None), ("0", None), ("1", "use"), ("use", "use"), (" Sampled ", "sampled"), ("never", "never")],
)
def test_the_flag_says_when_blocks_are_measured(value: str | None, expected: str | None) -> None:
    """Unset and 0 are off; 1 measures at every use."""
    assert expected == verify_mode({} if value is None else {"HITPROOF_VLLM": value})


def test_a_flag_without_meaning_is_an_error() -> None:
    """Whoever writes yes did not get what they think."""
    with pytest.raises(UsageError, match="HITPROOF_VLLM"):
        verify_mode({"HITPROOF_VLLM": "yes"})


@pytest.mark.parametrize("found", [None, "0.31.2", "0.33.0", "1.0.0", "0.320.0"])
def test_an_untested_version_is_refused_by_name(found: str | None) -> None:
    """The error names what was found and what is supported."""
    with pytest.raises(UsageError, match=r"0\.32\.\*"):
        require_supported(found)


def test_the_tested_version_is_accepted() -> None:
    """With any local suffix."""
    require_supported("0.32.0")
    require_supported("0.32.1+cpu")


def test_the_plugin_does_nothing_without_the_flag(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is loaded in every vLLM beside which the package is installed, of whatever version."""
    monkeypatch.delenv("HITPROOF_VLLM", raising=False)
    monkeypatch.setattr("hitproof.integrations.vllm.plugin.installed_version", lambda: "0.1")
    register()


def test_the_plugin_ends_a_server_that_asks_for_it_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the flag, an untested version does not serve ungated."""
    monkeypatch.setenv("HITPROOF_VLLM", "1")
    monkeypatch.setattr("hitproof.integrations.vllm.plugin.installed_version", lambda: "0.33.0")
    with pytest.raises(UsageError, match="not supported"):
        register()


def test_pages_are_whole_or_not_there(tmp_path: Path) -> None:
    """What is written is read; what is refused is gone for whoever asks, and kept aside."""
    files = PageFiles(tmp_path / "pages")
    key = "ab" * 32
    assert not files.has(key)
    assert files.read(key) is None
    assert files.write(key, b"bytes")
    assert files.write(key, b"others")
    assert files.read(key) == b"bytes"
    files.refuse(key)
    assert not files.has(key)
    assert [b"bytes"] == [path.read_bytes() for path in (tmp_path / "pages").rglob("*") if path.is_file()]


@pytest.mark.parametrize("key", ["", "../../etc/passwd", "AB" * 32, "ab/cd" * 8, "0" * 500])
def test_only_digests_name_pages(tmp_path: Path, key: str) -> None:
    """A key never leads out of the folder."""
    with pytest.raises(UsageError, match="digest"):
        PageFiles(tmp_path).place(key)


def test_an_adapter_is_its_files_content(tmp_path: Path) -> None:
    """The same folder with other bytes is another adapter, another folder with the same bytes is the same one."""
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        folder.mkdir()
        (folder / "adapter_model.safetensors").write_bytes(b"weights")
    first = files_digest(str(one))
    assert first is not None
    assert first == files_digest(str(other))
    (one / "adapter_model.safetensors").write_bytes(b"tuned weights")
    assert files_digest(str(one)) not in (None, first)
    assert files_digest(str(tmp_path / "nowhere")) is None


@needs_torch
@pytest.mark.parametrize("width", [8, 24, 63, 100])
def test_blocks_have_the_fingerprint_of_their_bytes(width: int) -> None:
    """Measured many at once, and for layers that are views, the fingerprint is the repository's own of one row."""
    import torch

    from hitproof.integrations.vllm.fingerprints import of_blocks
    from hitproof.kernels.checksum import fingerprint

    draw = torch.Generator().manual_seed(width)
    layers = [torch.randint(0, 256, (7, 2, width), generator=draw, dtype=torch.uint8).transpose(1, 2) for _ in range(3)]
    found = of_blocks(layers, [4, 0, 6])
    for block, answer in zip((4, 0, 6), found, strict=True):
        row = torch.cat([layer[block].contiguous().reshape(-1) for layer in layers])
        assert answer == fingerprint(row.view(1, 1, -1))


@needs_torch
def test_weights_are_another_digest_once_one_bit_is_another() -> None:
    """Across the slabs in which large tensors are read, and for empty ones too."""
    import torch

    from hitproof.integrations.vllm import fingerprints

    named = {"a": torch.randn(3, 5), "b": torch.zeros(0), "c": torch.randn(1000)}
    whole = fingerprints.of_tensors(named.items())
    slab, fingerprints._SLAB_WORDS = fingerprints._SLAB_WORDS, 64
    try:
        assert whole == fingerprints.of_tensors(named.items())
    finally:
        fingerprints._SLAB_WORDS = slab
    named["c"][700] += 1
    assert whole != fingerprints.of_tensors(named.items())


class _Workers:
    """Workers that answer what a test says."""

    def __init__(self) -> None:
        self.digest, self.whole = "weights", True
        self.loaded: dict[int, str] = {}
        self.asked = 0

    def weights(self) -> tuple[str, bool]:
        self.asked += 1
        return self.digest, self.whole

    def adapter(self, number: int) -> str | None:
        return self.loaded.get(number)


def _identities(workers: Any) -> Identities:
    return Identities(workers, "attention", lambda: "files")


def test_weights_are_measured_again_only_after_something_ran() -> None:
    """A digest that stays the same keeps every block, another one none."""
    workers = _Workers()
    identities = _identities(workers)
    first = identities.weights
    assert (first, 1) == (identities.weights, workers.asked)
    identities.weights_may_have_changed()
    assert (first, 2) == (identities.weights, workers.asked)
    workers.digest = "others"
    identities.weights_may_have_changed()
    assert first != identities.weights


def test_weights_that_cannot_all_be_measured_change_with_whatever_ran() -> None:
    """On a CPU matrices are packed: a call that may have changed them counts as a change."""
    workers = _Workers()
    workers.whole = False
    identities, others = _identities(workers), _identities(workers)
    first = identities.weights
    assert first == others.weights
    identities.weights_may_have_changed()
    assert first != identities.weights
    others.weights_may_have_changed()
    assert identities.weights != others.weights


def test_another_name_of_the_weights_is_another_identity() -> None:
    """An operator's version counts beside the digest."""
    identities = _identities(_Workers())
    first = identities.weights
    identities.name_weights("step 2")
    assert first != identities.weights


def test_a_loader_notes_what_it_read(tmp_path: Path) -> None:
    """The digest is of the files at the moment of loading; files that change meanwhile leave none."""
    pytest.importorskip("vllm")
    (tmp_path / "adapter_model.safetensors").write_bytes(b"weights")

    class Manager:
        torn = False

        def _load_adapter(self, request: Any) -> Any:
            if self.torn:
                (tmp_path / "adapter_model.safetensors").write_bytes(b"other weights")
            return SimpleNamespace(id=request.lora_int_id)

    note_loads(Manager)
    note_loads(Manager)
    request = SimpleNamespace(lora_path=str(tmp_path), lora_int_id=1)
    expected = files_digest(str(tmp_path))
    assert expected == Manager()._load_adapter(request).hitproof_digest
    torn = Manager()
    torn.torn = True
    assert torn._load_adapter(request).hitproof_digest is None


class _Request:
    """A request as the ledger reads it."""

    def __init__(self, name: str, length: int) -> None:
        self.request_id, self.num_tokens = name, length
        self.num_computed_tokens = self.num_in_flight_tokens = 0
        self.lora_request: Any = None
        self.cache_salt: str | None = None


def _step(scheduled: dict[str, int], computed: dict[str, int] | None = None) -> Any:
    computed = computed or {}
    new = [SimpleNamespace(req_id=name, num_computed_tokens=computed.get(name, 0)) for name in scheduled]
    again = SimpleNamespace(req_ids=[], num_computed_tokens=[])
    return SimpleNamespace(scheduled_new_reqs=new, scheduled_cached_reqs=again, num_scheduled_tokens=scheduled)


@pytest.fixture
def ledger() -> Any:
    """The ledger of an engine with one group, over workers that a test changes."""
    from hitproof.integrations.vllm.ledger import Ledger

    workers = _Workers()
    identities = _identities(workers)
    blocks = GroupBlocks((0, 1), TOKENS, stride=2 * 2 * 8 * 2 * TOKENS, alignment=2)
    profile = profile_from_config(MODEL, file="config.json", kv_dtype="bfloat16")
    gate = BlockGate(
        profile,
        {"0": blocks},
        identity=identities.usual(),
        contract=dict.fromkeys(("layout", "version", "encoding", "scale_version", "v_layout", "shard"), "one"),
        absent=0,
    )
    made = Ledger(gate, [CacheGroup(0, "0", ("layer",), blocks, "one", "bfloat16")], identities)
    return made, workers


DIGESTS = [bytes([place]) * 4 for place in range(4)]


def _usable(ledger: Any, blocks: list[int], name: str = "next") -> int:
    usable: int = ledger.judge(_Request(name, 100), len(blocks) * TOKENS, [blocks], [DIGESTS]).usable
    return usable


def test_a_block_is_nobodys_until_its_step_has_come_back(ledger: Any) -> None:
    """It is hashed before it is written; what it holds is promised afterwards."""
    book, _ = ledger
    book.committed(_Request("a", 100), 0, [3, 4], 0, DIGESTS[:2])
    assert 0 == _usable(book, [3, 4])
    step = _step({"a": 32})
    book.scheduled(step)
    assert 0 == _usable(book, [3, 4])
    assert {3, 4} == book.pending
    book.finished(step)
    assert 32 == _usable(book, [3, 4])
    assert not book.pending


def test_a_request_that_was_pushed_out_writes_nothing(ledger: Any) -> None:
    """Blocks that were hashed for it in a step that does not compute its tokens are never promised."""
    book, _ = ledger
    book.committed(_Request("a", 100), 0, [3, 4], 0, DIGESTS[:2])
    step = _step({"b": 32})
    book.scheduled(step)
    book.finished(step)
    assert 0 == _usable(book, [3, 4])
    # Nobody is about to write them, so a look-up may take them out of the index.
    assert not book.pending


def test_a_block_that_was_given_away_is_not_promised_by_the_old_step(ledger: Any) -> None:
    """A step that comes back late says nothing of who holds the block by then."""
    book, _ = ledger
    book.committed(_Request("a", 100), 0, [3], 0, DIGESTS[:1])
    first = _step({"a": 16})
    book.scheduled(first)
    book.freed(3)
    book.committed(_Request("b", 100), 0, [3], 0, DIGESTS[:1])
    second = _step({"b": 16})
    book.scheduled(second)
    book.finished(first)
    assert 0 == _usable(book, [3])
    book.finished(second)
    assert 16 == _usable(book, [3])


def test_blocks_that_came_from_elsewhere_count_at_once(ledger: Any) -> None:
    """Tokens that a connector has loaded are written when they are hashed."""
    book, _ = ledger
    request = _Request("a", 100)
    request.num_computed_tokens = 32
    book.committed(request, 0, [3, 4], 0, DIGESTS[:2])
    assert 32 == _usable(book, [3, 4])


def test_weights_that_change_while_a_step_runs_spoil_what_it_writes(ledger: Any) -> None:
    """And whatever the request computes after that, since it is computed from rows of the old ones."""
    book, workers = ledger
    request = _Request("a", 100)
    book.committed(request, 0, [3], 0, DIGESTS[:1])
    step = _step({"a": 16})
    book.scheduled(step)
    workers.digest = "others"
    book.identities.weights_may_have_changed()
    book.finished(step)
    book.committed(request, 0, [4], 16, DIGESTS[1:2])
    later = _step({"a": 16}, {"a": 16})
    book.scheduled(later)
    book.finished(later)
    assert 0 == _usable(book, [3, 4])


def test_an_adapter_that_is_not_the_one_that_was_meant_spoils_what_it_writes(ledger: Any) -> None:
    """The worker says after the step which one it used."""
    book, workers = ledger
    request = _Request("a", 100)
    request.lora_request = SimpleNamespace(lora_int_id=7, load_inplace=False, lora_path="/nowhere")
    workers.loaded[7] = "meant"
    book.committed(request, 0, [3], 0, DIGESTS[:1])
    step = _step({"a": 16})
    book.scheduled(step)
    workers.loaded[7] = "another"
    book.finished(step)
    asked = _Request("next", 100)
    asked.lora_request = request.lora_request
    for held in ("meant", "another"):
        workers.loaded[7] = held
        assert 0 == book.judge(asked, 16, [[3]], [DIGESTS]).usable


def test_random_lives_never_promise_what_was_not_written(ledger: Any) -> None:
    """Whatever the order of hashing, steps, returns and evictions, a usable block is one whose own step came back."""
    book, _ = ledger
    draw = random.Random(5)
    truth: dict[int, bool] = {}
    running: list[tuple[Any, list[int]]] = []
    fresh: list[int] = []
    for turn in range(3000):
        act = draw.choice(["commit", "schedule", "finish", "free"])
        block = draw.randrange(1, 6)
        if act == "commit" and block not in truth:
            book.committed(_Request(f"r{turn}", 100), 0, [block], 0, DIGESTS[:1])
            truth[block] = False
            fresh.append(block)
            step = _step({f"r{turn}": 16})
            book.scheduled(step)
            running.append((step, [one for one in fresh if one in truth]))
            fresh = []
        elif act == "finish" and running:
            step, blocks = running.pop(0)
            book.finished(step)
            for one in blocks:
                if truth.get(one) is False:
                    truth[one] = True
        elif act == "free":
            book.freed(block)
            truth.pop(block, None)
            running = [(step, [one for one in blocks if one != block]) for step, blocks in running]
        for one in range(1, 6):
            assert (16 if truth.get(one) else 0) == _usable(book, [one], f"q{turn}")
