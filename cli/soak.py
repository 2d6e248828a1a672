"""`hitproof soak`: the cache manager under load, faults and deaths, with every used row compared with the truth."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from hitproof.cli.options import DebugOption, Format, FormatOption

__all__ = ["soak"]

MODELS = ("gemma-3-27b", "qwen3-next-80b-a3b", "deepseek-v4-flash")


class _Verify(StrEnum):
    """When the manager measures bytes."""

    use = "use"
    sampled = "sampled"
    tier_crossing = "tier_crossing"


def soak(
    minutes: Annotated[float, typer.Option("--minutes", min=0.01, max=10_000, help="How long, with threads.")] = 1.0,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of everything that is drawn.")] = 1,
    threads: Annotated[int, typer.Option("--threads", min=5, max=256, help="Actors, each in a thread.")] = 16,
    processes: Annotated[
        int | None,
        typer.Option(
            "--processes",
            min=1,
            max=51,
            help="Processes that share the threads out, 5 or more each. (default: one a core, 8 threads or more each)",
        ),
    ] = None,
    verify: Annotated[_Verify, typer.Option("--verify", help="When bytes are measured.")] = _Verify.use,
    model: Annotated[
        list[str] | None,
        typer.Option("--model", help="A shipped profile's name; again for more. (default: three, in turn)"),
    ] = None,
    fault: Annotated[
        list[str] | None,
        typer.Option("--fault", metavar="KIND", help="Inject this kind; again for more. (default: all)"),
    ] = None,
    switch_off: Annotated[
        list[str] | None,
        typer.Option(
            "--switch-off",
            metavar="PROTECTION",
            help="Show that wrong bytes are used without it: a layer, lease, postcondition, or all; again for more.",
        ),
    ] = None,
    simulate: Annotated[bool, typer.Option("--simulate", help="Play one seed step by step, always the same.")] = False,
    steps: Annotated[int, typer.Option("--steps", min=1, max=10**9, help="Steps of --simulate.")] = 100_000,
    kills: Annotated[int, typer.Option("--kills", min=0, max=10**6, help="Kill so many writers of the disk tier.")] = 0,
    format: FormatOption = Format.text,
    debug: DebugOption = False,
) -> int:
    """Run the cache manager under random requests, moves, faults and deaths; a plain model judges every use."""
    from hitproof.cli.soaking import run_simulation, run_switched, run_threads

    if kills:
        from hitproof.cli.kills import run_kills

        return run_kills(kills, seed, format)
    if switch_off:
        return run_switched(switch_off, seed, format)
    models = tuple(dict.fromkeys(model or MODELS))
    if simulate:
        return run_simulation(models, fault, verify.value, seed, steps, format)
    return run_threads(models, fault, verify.value, seed, minutes, threads, processes, format)
