"""The plugin in the real LMCache on a CPU: what it refuses, and what LMCache's own disk serves of the same."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lmcache", reason="lmcache is not installed; make integration-lmcache")
torch = pytest.importorskip("torch", reason="torch is not installed")

from tests.integrations.lmcache import server as toy  # noqa: E402

CLOSE = 1e-5
"""Logits that differ by less are equal: rows come back as they were stored."""

Make = Callable[..., Any]


@pytest.fixture
def make() -> Iterator[Make]:
    """Makes servers, and stops them."""
    made: list[Any] = []

    def one(extra: dict[str, Any], **options: Any) -> Any:
        made.append(toy.Server(f"server-{len(made)}-{id(made)}", extra, **options))
        return made[-1]

    yield one
    for server in made:
        server.close()


def pages(folder: Path) -> list[Path]:
    """Files of the pages, the eldest first."""
    return sorted((folder / "0-of-1").glob("*.page"), key=lambda path: path.stat().st_mtime_ns)


def differ(one: Any, other: Any) -> bool:
    """Whether two vectors of logits differ."""
    return bool((one - other).abs().max() > CLOSE)


def test_a_prompt_is_served_alike_from_the_pages(make: Make, tmp_path: Path) -> None:
    """Every whole chunk comes back, and the logits are those of a server without a cache."""
    server = make(toy.extra(tmp_path))
    expected = server.fill(toy.prompt(1))
    cached, logits = server.ask(toy.prompt(1))
    assert cached == 4 * toy.CHUNK
    assert not differ(logits, expected)


def test_pages_outlive_the_process(make: Make, tmp_path: Path) -> None:
    """A second server over the same folder is served what the first one wrote."""
    expected = make(toy.extra(tmp_path)).fill(toy.prompt(1))
    cached, logits = make(toy.extra(tmp_path)).ask(toy.prompt(1))
    assert cached == 4 * toy.CHUNK and not differ(logits, expected)


def flipped(path: Path) -> None:
    """One bit of the last row changes."""
    content = bytearray(path.read_bytes())
    content[-2] ^= 0x40
    path.write_bytes(content)


def truncated(path: Path) -> None:
    """The second half of the bytes is lost."""
    content = path.read_bytes()
    path.write_bytes(content[: len(content) - toy.CHUNK * toy.HIDDEN * 8])


def zeroed(path: Path) -> None:
    """A write that was not carried out left zeros."""
    content = path.read_bytes()
    size = 2 * toy.LAYERS * toy.CHUNK * toy.HIDDEN * 4
    path.write_bytes(content[:-size] + bytes(size))


@pytest.mark.parametrize(
    ("spoil", "failed"),
    [(flipped, "fingerprint_matches"), (truncated, "bytes_whole"), (zeroed, "fingerprint_matches")],
)
def test_torn_pages_are_refused_and_computed_anew(
    make: Make, tmp_path: Path, spoil: Callable[[Path], None], failed: str
) -> None:
    """Bytes that are not what was sealed are a miss: fewer tokens come back, and the logits stay right."""
    server = make(toy.extra(tmp_path))
    expected = server.fill(toy.prompt(1))
    spoil(pages(tmp_path)[2])
    cached, logits = server.ask(toy.prompt(1))
    assert cached == 2 * toy.CHUNK
    assert not differ(logits, expected)
    series = server.plugin.tally.counters.series("failed_checks")
    assert series["block_integrity", failed, "full_kv"] == 1
    assert len(pages(tmp_path)) == 3, "a bad page is found no more"
    assert list((tmp_path / "0-of-1" / "refused").iterdir())


def test_torn_bytes_on_lmcaches_own_disk_are_served(make: Make, tmp_path: Path) -> None:
    """Without the plugin flipped bits, here the signs, come back as a full hit and change the logits."""
    server = make({}, local_disk=str(tmp_path), max_local_disk_size=0.1)
    expected = server.fill(toy.prompt(1))
    server.wait_for_files(tmp_path, 4)
    cached, logits = server.ask(toy.prompt(1))
    assert cached == 4 * toy.CHUNK and not differ(logits, expected)
    for path in tmp_path.glob("*.pt"):
        content = bytearray(path.read_bytes())
        content[3::4] = bytes(byte ^ 0x80 for byte in content[3::4])
        path.write_bytes(content)
    cached, logits = server.ask(toy.prompt(1))
    assert cached == 4 * toy.CHUNK
    assert differ(logits, expected)


def test_a_page_under_another_pages_name_is_refused(make: Make, tmp_path: Path) -> None:
    """A stale name that leads to another prompt's rows is refused by the digest in the record."""
    server = make(toy.extra(tmp_path))
    expected = server.fill(toy.prompt(1))
    mine = pages(tmp_path)
    server.fill(toy.prompt(2))
    other = [path for path in pages(tmp_path) if path not in mine]
    shutil.copyfile(other[1], mine[1])
    cached, logits = server.ask(toy.prompt(1))
    assert cached == toy.CHUNK and not differ(logits, expected)
    assert server.plugin.tally.counters.series("failed_checks")["identity", "tokens_match", "full_kv"] == 1


def test_lmcaches_keys_do_not_name_adapters(make: Make, tmp_path: Path) -> None:
    """Without the plugin, rows of one adapter are served to another: LMCache hashes tokens alone."""
    server = make({}, local_disk=str(tmp_path), max_local_disk_size=0.1)
    server.fill(toy.prompt(1))
    server.wait_for_files(tmp_path, 4)
    server.model = toy.Model(adapter=1)
    cached, logits = server.ask(toy.prompt(1))
    expected = server.model.serve(toy.prompt(1), torch.zeros(2, toy.LAYERS, 69, toy.HIDDEN), 0)
    assert cached == 4 * toy.CHUNK
    assert differ(logits, expected)


def test_rows_of_another_adapter_are_not_found(make: Make, tmp_path: Path) -> None:
    """With the adapter stated, a restart under another one starts from nothing, and both are served their own."""
    first = make(toy.extra(tmp_path, adapter="digest of a"))
    of_first = first.fill(toy.prompt(1))
    second = make(toy.extra(tmp_path, adapter="digest of b"), model=toy.Model(adapter=1))
    cached, logits = second.ask(toy.prompt(1))
    assert cached == 0
    assert not differ(logits, second.fill(toy.prompt(1)))
    assert not differ(first.ask(toy.prompt(1))[1], of_first)


def test_rows_of_another_adapter_under_this_ones_name_are_refused(make: Make, tmp_path: Path) -> None:
    """Where a file of another adapter got the name of this one's page, the record refuses it."""
    first = make(toy.extra(tmp_path / "a", adapter="digest of a"))
    second = make(toy.extra(tmp_path / "b", adapter="digest of b"), model=toy.Model(adapter=1))
    first.fill(toy.prompt(1))
    expected = second.fill(toy.prompt(1))
    for foreign, own in zip(pages(tmp_path / "a"), pages(tmp_path / "b"), strict=True):
        shutil.copyfile(foreign, own)
    cached, logits = second.ask(toy.prompt(1))
    assert cached == 0 and not differ(logits, expected)
    assert second.plugin.tally.counters.series("failed_checks")["identity", "same_adapter", "full_kv"] >= 1


def test_tags_of_a_request_state_its_adapter_and_salt(make: Make, tmp_path: Path) -> None:
    """Requests with tags are told apart by them; one that leaves out what only a tag can state reuses nothing."""
    settings = toy.extra(tmp_path, tags={"adapter": "lora", "salt": "tenant"})
    del settings["hitproof.adapter"]
    server = make(settings)
    server.fill(toy.prompt(1), {"lora": "a", "tenant": "x"})
    assert server.ask(toy.prompt(1), {"lora": "a", "tenant": "x"})[0] == 4 * toy.CHUNK
    assert server.ask(toy.prompt(1), {"lora": "b", "tenant": "x"})[0] == 0
    assert server.ask(toy.prompt(1), {"lora": "a", "tenant": "y"})[0] == 0
    server.fill(toy.prompt(3))
    assert server.ask(toy.prompt(3))[0] == 0, "the adapter of this request is unknown"


def test_chunks_of_another_number_format_are_refused(make: Make, tmp_path: Path) -> None:
    """Bytes that another configuration wrote as another number format are not read as this one's."""
    half = make(toy.extra(tmp_path / "half"), dtype=torch.float16)
    server = make(toy.extra(tmp_path / "own"))
    half.fill(toy.prompt(1))
    expected = server.fill(toy.prompt(1))
    for foreign, own in zip(pages(tmp_path / "half"), pages(tmp_path / "own"), strict=True):
        shutil.copyfile(foreign, own)
    cached, logits = server.ask(toy.prompt(1))
    assert cached == 0 and not differ(logits, expected)
    series = server.plugin.tally.counters.series("failed_checks")
    assert series["kernel_interface", "encoding_matches", "full_kv"] >= 1


def test_a_secret_keeps_out_what_others_wrote(make: Make, tmp_path: Path) -> None:
    """With a secret, records without its code are refused, also where everything else agrees."""
    make(toy.extra(tmp_path)).fill(toy.prompt(1))
    (tmp_path / "key").write_bytes(b"only we know")
    server = make(toy.extra(tmp_path, secret_file=str(tmp_path / "key")))
    assert server.ask(toy.prompt(1))[0] == 0
    server.fill(toy.prompt(1))
    assert server.ask(toy.prompt(1))[0] == 4 * toy.CHUNK


def test_logical_and_effective_tokens_stand_among_lmcaches_metrics(make: Make, tmp_path: Path) -> None:
    """The registry that LMCache exports tells what was found beside what was used."""
    client = pytest.importorskip("prometheus_client")
    server = make(toy.extra(tmp_path))
    server.fill(toy.prompt(1))
    server.ask(toy.prompt(1))
    flipped(pages(tmp_path)[3])
    server.ask(toy.prompt(1))
    tokens = server.plugin.tally.counters.series("tokens")
    assert (tokens["logical",], tokens["effective",]) == (8 * toy.CHUNK, 7 * toy.CHUNK)
    assert b"hitproof_tokens_total" in client.generate_latest()


def test_asynchronous_loading_stops_at_what_is_refused(make: Make, tmp_path: Path) -> None:
    """What LMCache prefetches ends before the first bad chunk, and is pinned as LMCache expects."""
    server = make(toy.extra(tmp_path))
    server.fill(toy.prompt(1))
    flipped(pages(tmp_path)[2])
    keys = [key for _, _, key in server.engine.token_database.process_tokens(toy.prompt(1)[: 4 * toy.CHUNK])]

    async def load() -> tuple[int, list[Any]]:
        contained = await server.plugin.batched_async_contains("one", keys)
        return contained, await server.plugin.batched_get_non_blocking("one", keys)

    contained, found = asyncio.run(load())
    assert (contained, len(found)) == (4, 2), "a record tells nothing of torn bytes"
    assert all(obj.is_pinned for obj in found)
    for obj in found:
        obj.unpin()
        obj.ref_count_down()
    assert asyncio.run(load())[0] == 2


def test_pages_are_evicted_but_for_pinned_ones(make: Make, tmp_path: Path) -> None:
    """The folder stays within its capacity, and what a look-up has pinned stays until it is unpinned."""
    size = 2 * toy.LAYERS * toy.CHUNK * toy.HIDDEN * 4 + 2048
    server = make(toy.extra(tmp_path, capacity_gb=6 * size / 2**30))
    server.fill(toy.prompt(1))
    assert server.engine.lookup(toy.prompt(1)[:64], lookup_id="one", pin=True) == 64
    server.fill(toy.prompt(2))
    assert len(pages(tmp_path)) <= 6
    assert server.ask(toy.prompt(1))[0] == 4 * toy.CHUNK
    server.engine.lookup_unpin("one")
    server.fill(toy.prompt(3))
    assert server.ask(toy.prompt(3))[0] == 4 * toy.CHUNK


def test_wrong_settings_leave_lmcache_without_the_plugin(make: Make, tmp_path: Path) -> None:
    """LMCache logs the error and runs on; nothing comes from a folder that could not be judged."""
    settings = toy.extra(tmp_path)
    del settings["hitproof.weights"]
    assert make(settings).plugin is None
    server = make(toy.extra(tmp_path))
    server.fill(toy.prompt(1))
    assert make(settings).ask(toy.prompt(1))[0] == 0
