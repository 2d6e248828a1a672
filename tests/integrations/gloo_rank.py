"""One rank as a process of its own: plays a part over gloo and tells what came of it, a line of JSON a turn."""

from __future__ import annotations

import json
import sys
import time
from datetime import timedelta

import torch.distributed as distributed

from hitproof.engine.ranks import Joint, Ranks
from hitproof.integrations.torch_distributed import GlooTransport
from tests.engine.ranks.cases import Cache, pooled, stored

WAIT = 60.0
SHORT = 1.0


def tell(**said: object) -> None:
    """Say something to the parent."""
    print(json.dumps(said), flush=True)


def ranks_of(cache: Cache, transport: GlooTransport, message_s: float, prepare_s: float) -> Ranks[str]:
    """This rank's side of the group."""
    return Ranks(cache.member(), transport, cache.build.engine.judge.order, message_s, prepare_s)


def told(joint: Joint, cache: Cache, transport: GlooTransport, **more: object) -> None:
    """Say what a turn ended with."""
    pins = sorted(cache.pins)
    tell(
        go=joint.go, length=joint.length, record=joint.record, why=joint.why, ranks=joint.ranks, pins=pins,
        alive=transport.alive, **more,
    )  # fmt: skip


def agreeing(transport: GlooTransport) -> None:
    """Different evictions; then a rank whose repair raises; then another turn."""
    cache = stored(32, 48, 96) if transport.rank == 0 else stored(32, 48, 80)
    ranks = ranks_of(cache, transport, WAIT, WAIT)
    joint = ranks.agree("prompt", 1)
    told(joint, cache, transport, finished=ranks.finish(joint, used=True))

    other = pooled(kv_generation=7)
    ranks = ranks_of(other, transport, WAIT, WAIT)
    if transport.rank == 1:
        other.meanwhile = _fail
    try:
        told(ranks.agree("prompt", 2), other, transport)
    except MemoryError:
        tell(raised=True, pins=sorted(other.pins), alive=transport.alive)
    other.meanwhile = lambda: None
    joint = ranks.agree("prompt", 3)
    told(joint, other, transport, finished=ranks.finish(joint, used=transport.rank == 0))


def dying(transport: GlooTransport) -> None:
    """Rank 1 waits in its repair for being killed."""
    cache = pooled(kv_generation=7) if transport.rank == 1 else pooled()
    cache.meanwhile = _wait
    ranks = ranks_of(cache, transport, WAIT, WAIT)
    told(ranks.agree("prompt", 1), cache, transport)
    told(ranks.agree("prompt", 2, at_most=0), cache, transport)


def late(transport: GlooTransport) -> None:
    """Rank 1 repairs for longer than rank 0 waits."""
    cache = pooled(kv_generation=7) if transport.rank == 1 else pooled()
    cache.meanwhile = lambda: time.sleep(3 * SHORT)
    ranks = ranks_of(cache, transport, WAIT if transport.rank == 0 else SHORT, SHORT)
    told(ranks.agree("prompt", 1), cache, transport)


def _fail() -> None:
    raise MemoryError


def _wait() -> None:
    tell(preparing=True)
    time.sleep(WAIT)


if __name__ == "__main__":
    part, rank, store = sys.argv[1:]
    distributed.init_process_group(
        "gloo", init_method=f"file://{store}", rank=int(rank), world_size=2, timeout=timedelta(seconds=WAIT)
    )
    tell(ready=True)
    {"agreeing": agreeing, "dying": dying, "late": late}[part](GlooTransport())
    if part == "agreeing":
        distributed.destroy_process_group()
