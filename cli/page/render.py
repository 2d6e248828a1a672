"""The page itself: sections put together, laid out by the template."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from hitproof.cli.page.depths import depth_figures, depth_table
from hitproof.cli.page.document import document
from hitproof.cli.page.figures import count, percent, rate
from hitproof.cli.page.over_time import load_chart, time_figures
from hitproof.cli.page.policies import policy_latency_chart, policy_reuse_chart, policy_table
from hitproof.cli.page.prices import option_tables, price_chart, price_table
from hitproof.cli.page.shares import VERDICTS, share_chart, share_table, verdict_chart, verdict_table
from hitproof.cli.page.story import ReplayStory, Run, runs_of

__all__ = ["replay_page"]


def replay_page(story: ReplayStory) -> str:
    """The page as one HTML document.

    Args:
        story: What it tells.

    Returns:
        The same text for the same story, on every machine.
    """
    runs = runs_of(story.reports)
    return document(
        "replay.html",
        story=story,
        runs=runs,
        facts=_facts(runs[0]),
        claim=_claim(runs),
        settings=_settings(runs),
        verdict_names=_verdict_names(runs),
        share_chart=share_chart(runs),
        share_table=share_table(runs),
        load_chart=load_chart(runs[0]),
        time_figures=time_figures(runs),
        verdict_chart=verdict_chart(runs),
        verdict_table=verdict_table(runs),
        depth_figures=depth_figures(runs),
        depth_table=depth_table(runs),
        price_chart=price_chart(runs),
        price_table=price_table(runs),
        option_tables=option_tables(runs),
        policies=_policies(story),
        injected=_injected(runs),
        written=rate,
    )


def _policies(story: ReplayStory) -> dict[str, Markup] | None:
    if not story.policies:
        return None
    return {
        "latency": policy_latency_chart(story.policies),
        "reuse": policy_reuse_chart(story.policies),
        "table": policy_table(story.policies),
        "served": Markup("; ").join(filter(None, dict.fromkeys(row.served for row in story.policies))),
    }


def _facts(run: Run) -> list[tuple[str, str]]:
    """What all runs have in common, for the top of the page."""
    report = run.report
    settings = report["settings"]
    return [
        ("requests", count(report["requests"])),
        (f"blocks of {settings['block_tokens']} tokens touched", count(report["block_touches"])),
        ("tokens touched", count(report["token_touches"])),
        ("logical hits, of all blocks", percent(report["logical_hit_rate"]["blocks"])),
    ]


def _claim(runs: Sequence[Run]) -> str:
    """The finding in a sentence."""
    logical = percent(runs[0].report["logical_hit_rate"]["blocks"])
    start = f"A cache that compares hashes alone would claim {logical} of all blocks. "
    shares = [(run.report["effective_reuse_rate"]["blocks"], run) for run in runs]
    least, most = min(shares, key=lambda one: one[0]), max(shares, key=lambda one: one[0])
    if len(runs) == 1:
        report = runs[0].report
        recovered, recomputed = (percent(report[rate]["blocks"]) for rate in ("recovered_rate", "recomputed_rate"))
        return (
            f"{start}{percent(most[0])} could be reused as it lay, {recovered} after repairs, "
            f"and {recomputed} had to be computed again."
        )
    if least[0] == most[0]:
        return f"{start}In every run, {percent(most[0])} could be reused as it lay."
    return (
        f"{start}What could be reused as it lay goes from {percent(least[0])} ({least[1].name}) "
        f"to {percent(most[0])} ({most[1].name})."
    )


def _verdict_names(runs: Sequence[Run]) -> list[tuple[str, str]]:
    """The verdicts that any run gave, each with the class of its colour."""
    given = [verdict for verdict in VERDICTS if any(run.report["decisions"].get(verdict) for run in runs)]
    return [(f"verdict-{verdict}", verdict) for verdict in given]


def _injected(runs: Sequence[Run]) -> str:
    counts = [run.report["injected"] for run in runs]
    if not any(counts):
        return ""
    least, most = min(counts), max(counts)
    return f"{count(least)} a run" if least == most else f"{count(least)} to {count(most)} a run"


def _settings(runs: Sequence[Run]) -> list[tuple[str, str]]:
    first: dict[str, Any] = dict(runs[0].report["settings"])
    retentions = list(dict.fromkeys(run.retention for run in runs))
    found = [
        ("rulebook", str(first["rulebook"])),
        ("rulebook digest", str(first["digest"])),
        ("models", ", ".join(dict.fromkeys(run.model for run in runs))),
        ("retentions", ", ".join(retentions)),
        ("device", _blocks(first["capacity"])),
        ("host memory", _blocks(first["host_blocks"])),
        ("disk", _blocks(first["disk_blocks"])),
    ]
    if "periodic" in retentions:
        found.append(("period", _blocks(first["period"])))
    if first["version_change_rate"]:
        found.append(("injected version changes", f"{percent(first['version_change_rate'])} of requests"))
        found.append(("seed", str(first["seed"])))
    return found


def _blocks(blocks: int | None) -> str:
    if blocks is None:
        return "unlimited"
    return f"{count(blocks)} {'block' if blocks == 1 else 'blocks'}" if blocks else "none"
