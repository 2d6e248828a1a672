"""Embeds the engine: three look-ups of one prompt, what may be reused of each, and why not more."""

from __future__ import annotations

from typing import Any

from hitproof.engine import Lease, Resolved, healthy_segment, load

engine = load("gemma-3-27b")
usual = engine.bound.rulebook.environment


def facts(scope: str, **stated: object) -> Any:
    """Facts of the request, the run time or a kernel; a server states its own instead of the usual ones."""
    known = {path.partition(".")[2]: value for path, value in usual.items() if path.startswith(f"{scope}.")}
    return engine.types.make(scope, {**known, **stated})


def look_up(title: str, cached: int, **window: object) -> None:
    """Decide a text prompt of 70,000 tokens, and hold what the decision rests on for as long as it is used."""
    # No picture stands before the end of the prompt.
    request = facts("request", length=70_000, media_from=70_000)
    runtime, kernel = facts("runtime"), facts("kernel")
    context, held = {"request": request, "runtime": runtime, "kernel": kernel}, {}
    for name in ("window_boundary", "full", "window"):
        given = {"end": cached, "matched": cached, **(window if name == "window" else {})}
        held[name] = healthy_segment(engine.types, engine.bound.group(name), given, context, {})
    kernels = {group.id: kernel for group in engine.bound.groups}
    pieces = {name: [segment] for name, segment in held.items()}
    decision = engine.decide(Resolved(request, runtime, kernels, pieces, matched=cached))
    with Lease.take(held.values(), engine.leasing) as lease:
        still = "still as checked" if lease.confirm() else "changed since"
        print(f"{title}: {decision.verdict}, {decision.usable} of {decision.logical} tokens, {still}")
    for reason in decision.reasons:
        print(f"  {reason.rule}: {reason.conjunct} with {dict(reason.values)}")
    for step in decision.plan:
        print(f"  {step.group}/{step.option} ({step.level}) for {step.cost_us:.0f} us")


look_up("long prefix, window kept", cached=65_536, start=64_513)
look_up("long prefix, window moved on", cached=65_536, start=65_000)
look_up("short prefix, window moved on", cached=4_096, start=4_000)
