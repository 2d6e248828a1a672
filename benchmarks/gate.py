"""How long the gate takes for one hit of a framework, by how many blocks it has."""

from __future__ import annotations

from typing import Any

from benchmarks.timing import sample
from hitproof.integrations.gate import BlockGate, GroupBlocks
from hitproof.rules.profiles import load_profile

__all__ = ["COUNTS", "prepared", "run"]

COUNTS = (16, 256, 2_048)
TOKENS, CALLS = 16, 20


def prepared(count: int) -> tuple[BlockGate, dict[str, list[int]], dict[str, list[bytes]]]:
    """A gate over Gemma 3's full and window layers, with one prompt of so many blocks written in both groups."""
    profile = load_profile("gemma-3-27b")
    blocks = {
        name: GroupBlocks(profile.group(name).layers, TOKENS, int(profile.group(name).constants["stride"]))
        for name in ("full", "window")
    }
    names = ("weights", "attention_config", "adapter", "media", "salt")
    kernel = ("layout", "version", "encoding", "scale_version", "v_layout", "shard")
    gate = BlockGate(
        profile,
        blocks,
        identity={name: name for name in names},
        contract={name: name for name in kernel},
    )
    ids, digests = list(range(1, count + 1)), [index.to_bytes(32) for index in range(count)]
    for name in blocks:
        gate.written(name, ids, first=0, digests=digests)
    return gate, dict.fromkeys(blocks, ids), dict.fromkeys(blocks, digests)


def run(runs: int = 5) -> None:
    """Prints a line for each number of blocks, of a hit used whole and of one with a refused block; then pages."""
    print(f"one hit through the gate, two groups, blocks of {TOKENS} tokens, 32-byte digests")
    for count in COUNTS:
        gate, blocks, digests = prepared(count)
        length = count * TOKENS + 7

        def judged(
            gate: BlockGate = gate,
            blocks: dict[str, list[int]] = blocks,
            digests: dict[str, list[bytes]] = digests,
            length: int = length,
        ) -> int:
            usable = 0
            for _ in range(CALLS):
                usable = gate.judge(length=length, matched=length - 7, blocks=blocks, digests=digests).usable
            return usable

        for bad in (False, True):
            if bad:
                gate.freed("full", [blocks["full"][count // 2]])
            usable, timed = judged(), sample(judged, runs)
            print(f"  {count:5} blocks, {usable:6} of {length - 7:6} tokens usable: {timed.each(CALLS)}")
    _pages(runs)


def _pages(runs: int) -> None:
    """Prints what sealing and opening a page takes: its bytes are read once for the fingerprint."""
    gate, _, _ = prepared(16)
    pages = gate.pages("full")
    payload = bytes(int(gate.engine.bound.group(gate.groups["full"]).constants["row_bytes"]) * TOKENS)
    asked: dict[str, Any] = {"start": 0, "end": TOKENS, "digest": b"d" * 32}
    record = pages.seal(payload, **asked)
    megabytes = len(payload) / 2**20
    print(f"one page of {megabytes:.2f} MiB, 16 tokens of ten layers; a record has {len(record)} bytes")
    for name, work in {
        "seal": lambda: pages.seal(payload, **asked),
        "open": lambda: pages.open(record, payload, **asked),
        "judge the record alone": lambda: pages.peek(record, **asked),
    }.items():
        print(f"  {name:24} {sample(work, max(runs, 20)).each(1)}")
