"""One rank as a process of its own: plays a part over gloo and tells what came of it, a line of JSON a turn."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict
from datetime import timedelta

import torch.distributed as distributed

from hitproof.engine.cache import CacheMember, Prompt
from hitproof.engine.ranks import Joint, Ranks
from hitproof.integrations.torch_distributed import GlooTransport
from tests.engine.cache.cases import Machine, prompt_tokens
from tests.engine.ranks.cases import Cache, pooled

TOKENS = prompt_tokens(512)
OTHER = [*TOKENS[:450], *prompt_tokens(88, seed=3)]
WAIT = 60.0
SHORT = 1.0


def tell(**said: object) -> None:
    """Say something to the parent."""
    print(json.dumps(said), flush=True)


def ranks_of(cache: Cache, transport: GlooTransport, message_s: float, prepare_s: float) -> Ranks[str]:
    """This rank's side of the group, over a small cache."""
    return Ranks(cache.member(), transport, cache.build.engine.judge.order, message_s, prepare_s)


def managed(machine: Machine, transport: GlooTransport) -> tuple[CacheMember, Ranks[Prompt]]:
    """The same over a cache manager."""
    member = machine.manager.member()
    return member, Ranks(member, transport, machine.engine.judge.order, WAIT, WAIT)


def told(joint: Joint, pins: Iterable[int], transport: GlooTransport, **more: object) -> None:
    """Say what a turn ended with."""
    tell(**{**asdict(joint), "pins": sorted(set(pins)), "alive": transport.alive, **more})


def pins_of(machine: Machine) -> list[int]:
    """Pins of all segments of the shared prompt; everything adds up."""
    machine.check()
    return [slot.facts.pins for slot in machine.manager.find(machine.prompt(TOKENS))]


def agreeing(transport: GlooTransport) -> None:
    """Managers with different evictions; then a rank whose repair raises; then another turn."""
    machine = Machine()
    machine.fill(TOKENS, boundaries=(128, 384) if transport.rank == 0 else (128, 256))
    member, turns = managed(machine, transport)
    joint = turns.agree(machine.prompt(OTHER), 1)
    used = member.hold is not None and member.hold.confirm()
    finished = turns.finish(joint, used=used)
    if member.hold is not None:
        member.hold.release()
    told(joint, pins_of(machine), transport, finished=finished, used=used)

    cache = pooled(kv_generation=7)
    ranks = ranks_of(cache, transport, WAIT, WAIT)
    if transport.rank == 1:
        cache.meanwhile = _fail
    try:
        told(ranks.agree("prompt", 2), cache.pins, transport)
    except MemoryError:
        tell(raised=True, pins=sorted(cache.pins), alive=transport.alive)
    cache.meanwhile = lambda: None
    joint = ranks.agree("prompt", 3)
    told(joint, cache.pins, transport, finished=ranks.finish(joint, used=transport.rank == 0))


def dying(transport: GlooTransport) -> None:
    """Rank 1 has its prefix in host memory, and waits for being killed while it is brought back."""
    machine = Machine(at=lambda point: _wait() if point == "load" else None)
    machine.fill(TOKENS)
    if transport.rank == 1:
        machine.demote_all(TOKENS)
    _, turns = managed(machine, transport)
    for number, at_most in ((1, None), (2, 0)):
        joint = turns.agree(machine.prompt([*TOKENS, 1]), number, at_most)
        told(joint, pins_of(machine), transport)


def late(transport: GlooTransport) -> None:
    """Rank 1 repairs for longer than rank 0 waits."""
    cache = pooled(kv_generation=7) if transport.rank == 1 else pooled()
    cache.meanwhile = lambda: time.sleep(3 * SHORT)
    ranks = ranks_of(cache, transport, WAIT if transport.rank == 0 else SHORT, SHORT)
    told(ranks.agree("prompt", 1), cache.pins, transport)


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
