"""`hitproof replay`: what a hash-only cache would have claimed on a trace, and what was really reusable."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hitproof.cli.failure import EXIT_GOOD
from hitproof.cli.options import DEFAULT_RULEBOOK, DebugOption, Format, FormatOption, RatesOption

if TYPE_CHECKING:
    from hitproof.engine.trace import TraceRequest
    from hitproof.spec.bound import BoundRulebook
    from hitproof.spec.rulebook import Rulebook

__all__ = ["parse_capacity", "replay"]

MAX_BLOCKS = 2**40
Page = Callable[[Path, "Rulebook", list[dict[str, Any]], list[dict[str, Any]]], None]
RATES = ("logical_hit_rate", "effective_reuse_rate", "recovered_rate", "recomputed_rate")


def replay(
    trace: Annotated[Path, typer.Argument(metavar="TRACE", help="A request trace, JSON lines.")],
    model: Annotated[list[str], typer.Option("--model", help="A shipped profile's name, or a file; again for more.")],
    capacity: Annotated[
        str, typer.Option("--capacity", metavar="BLOCKS|unlimited", help="Blocks that the device holds.")
    ],
    host_blocks: Annotated[
        int, typer.Option("--host-blocks", min=0, max=MAX_BLOCKS, help="Blocks that host memory holds.")
    ] = 0,
    disk_blocks: Annotated[
        int, typer.Option("--disk-blocks", min=0, max=MAX_BLOCKS, help="Blocks that the disk holds.")
    ] = 0,
    retention: Annotated[
        list[str] | None,
        typer.Option(
            "--retention",
            metavar="RULE",
            help="Where windows and states are kept: a retention rule of the rulebook, or all; again for more. "
            "(default: its first)",
        ),
    ] = None,
    period: Annotated[
        int, typer.Option("--period", min=1, max=MAX_BLOCKS, help="Blocks between two kept, for a rule that reads it.")
    ] = 16,
    rulebook: Annotated[
        str, typer.Option("--rulebook", help="An embedded rulebook's name, a folder, or a rulebook.yaml.")
    ] = DEFAULT_RULEBOOK,
    inject_version_changes: Annotated[
        float,
        typer.Option("--inject-version-changes", min=0, max=1, help="Share of requests that find a new version."),
    ] = 0.0,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the injected changes.")] = 0,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            metavar="POLICY",
            help="Also serve the trace in simulated time under a policy of the rulebook, or all; again for more.",
        ),
    ] = None,
    lanes: Annotated[int, typer.Option("--lanes", min=1, max=4096, help="Devices that prefill, for --policy.")] = 1,
    pace: Annotated[
        float, typer.Option("--pace", min=0.001, max=1000, help="Arrivals are so many times as fast, for --policy.")
    ] = 1.0,
    rates: RatesOption = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a page with pictures to this file too.")
    ] = None,
    format: FormatOption = Format.text,
    debug: DebugOption = False,
) -> int:
    """Replay a trace through the decision engine; logical hits and effective reuse are kept apart."""
    from hitproof.cli.books import open_book
    from hitproof.cli.output import show, write_json
    from hitproof.cli.policies import chosen_policies, evaluate_policies, tell_policies
    from hitproof.rules.profiles import load_profile
    from hitproof.rules.rates import with_rates

    tell_page = None if html is None else _page_writer(html)
    settings: dict[str, Any] = {
        "capacity": parse_capacity(capacity),
        "host_blocks": host_blocks,
        "disk_blocks": disk_blocks,
        "period": period,
        "version_change_rate": inject_version_changes,
        "seed": seed,
    }
    book = open_book(rulebook)
    sheet = book.sheet(rates)
    if sheet is not None:
        settings["rates"] = sheet
    models = [book.bound(load_profile(name)) for name in dict.fromkeys(model)]
    modes = _retentions(retention or (), book.rules)
    policies = chosen_policies(policy or (), book.rules, settings["capacity"])
    reports = [_run(trace, bound, mode, settings) for bound in models for mode in modes]
    served: list[dict[str, Any]] = []
    if policies:
        rated = models if sheet is None else [with_rates(bound, sheet) for bound in models]
        names = ("capacity", "host_blocks", "disk_blocks", "period")
        how = {**{name: settings[name] for name in names}, "lanes": lanes, "pace": pace}
        served = evaluate_policies(trace, rated, policies, how)
    if tell_page is not None:
        tell_page(trace, book.rules, reports, served)
    if format is Format.json:
        write_json(reports[0] if len(reports) == 1 and not served else {"reports": reports, "policies": served})
    else:
        _tell(reports, str(trace))
        tell_policies(served)
        if html is not None:
            show(f"written: {html}")
    return EXIT_GOOD


def _page_writer(file: Path) -> Page:
    """What writes the page; refuses before the replay what would fail after it."""
    from hitproof.cli.output import check_target, write_file
    from hitproof.spec.errors import UsageError

    check_target(file)
    try:
        from hitproof.cli.page import policy_rows, replay_page, story_of
    except ModuleNotFoundError as error:
        if error.name not in ("jinja2", "markupsafe"):
            raise
        raise UsageError(f"the page needs {error.name}", hint="pip install 'hitproof[cli]'") from error

    def write(trace: Path, rules: Rulebook, reports: list[dict[str, Any]], served: list[dict[str, Any]]) -> None:
        write_file(file, replay_page(story_of(trace, rules, reports, policy_rows(served))))

    return write


def _run(trace: Path, bound: BoundRulebook, mode: str, settings: dict[str, Any]) -> dict[str, Any]:
    from hitproof.cli.progress import progress
    from hitproof.engine.replay import replay as replay_trace
    from hitproof.engine.trace import read_trace

    requests = read_trace(trace)
    what = f"replaying on {bound.profile.name}, retention {mode}"
    with progress(what) as tell:
        report = replay_trace(_counted(requests, tell, what), bound, retention=mode, **settings)
    return report.as_dict()


def parse_capacity(text: str) -> int | None:
    """Blocks of the device, None where unlimited.

    Raises:
        UsageError: The text is neither.
    """
    from hitproof.spec.errors import UsageError

    if text == "unlimited":
        return None
    if text.isascii() and text.isdigit() and len(text) <= 13 and 0 < int(text) <= MAX_BLOCKS:
        return int(text)
    raise UsageError(
        "the capacity cannot be used",
        got=text,
        expected=f"a whole number from 1 to {MAX_BLOCKS}, or unlimited",
    )


def _retentions(chosen: Sequence[str], rules: Rulebook) -> list[str]:
    """The retention rules that are asked for, each once, in the rulebook's order."""
    from hitproof.cli.books import selected
    from hitproof.spec.errors import UsageError

    known = list(rules.policy.retention)
    if not known:
        raise UsageError(
            "the rulebook has no retention rule", expected="one that says where windows and states are kept"
        )
    return selected(chosen or known[:1], known, "retention rule")


def _counted(requests: Iterator[TraceRequest], tell: Callable[[str], None], what: str) -> Iterator[TraceRequest]:
    for count, request in enumerate(requests, start=1):
        if not count % 1_000:
            tell(f"{what}: {count} requests")
        yield request


def _tell(reports: list[dict[str, Any]], trace: str) -> None:
    from hitproof.cli.output import show, table

    first = reports[0]
    runs = [(report["settings"]["model"], report["settings"]["retention"], report) for report in reports]
    models = list(dict.fromkeys(model for model, _, _ in runs))
    show(f"{trace} on {', '.join(models)}: {first['requests']} requests, {first['block_touches']} blocks touched")
    # The model is told of each row only where there are several.
    column = 0 if len(models) > 1 else 1
    for unit in ("blocks", "tokens"):
        rows = [
            (*(model, mode)[column:], *(_percent(report[rate][unit]) for rate in RATES)) for model, mode, report in runs
        ]
        headings = ("model", "retention", "logical hit", "effective reuse", "recovered", "recomputed")
        show(table(f"Share of all {unit} touched", headings[column:], rows))
    if first.get("injected"):
        show(f"{first['injected']} version changes were injected; they are no part of the trace")
    source = first["settings"].get("rates", {}).get("source", "rulebook")
    if source != "rulebook":
        show(f"prices are counted at the rates of {source}")
    for model, mode, report in runs:
        counts = ", ".join(f"{count} {verdict}" for verdict, count in report["decisions"].items())
        costs = ", ".join(f"{level} {us / 1e6:.3f} s" for level, us in report["recovery_cost_us"].items())
        show(
            f"{', '.join((model, mode)[column:])}: {counts or 'no decisions'}",
            f"  recovery: {costs or 'none'}; replayed in {report['seconds']:.2f} s",
        )


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"
