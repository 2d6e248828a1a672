"""`hitproof explain`: why a hit was refused, down to the condition and its values."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hitproof.cli.failure import EXIT_GOOD
from hitproof.cli.options import DebugOption, Format, FormatOption, RatesOption

if TYPE_CHECKING:
    from hitproof.engine.scenario import ScenarioRun
    from hitproof.spec.decision import Decision

__all__ = ["explain", "find_scenario"]


def explain(
    rulebook: Annotated[
        str | None,
        typer.Argument(metavar="RULEBOOK", help="An embedded rulebook's name, a folder, or a rulebook.yaml."),
    ] = None,
    scenario: Annotated[
        str | None,
        typer.Argument(
            metavar="SCENARIO",
            help="A file, or the name (its beginning is enough) of one of the rulebook's own.",
        ),
    ] = None,
    rates: RatesOption = None,
    ring: Annotated[
        Path | None,
        typer.Option("--ring", metavar="FILE", help="Tell the decisions of this dump of a running engine instead."),
    ] = None,
    number: Annotated[
        int | None,
        typer.Option("--number", min=1, help="With --ring: the decision to explain. (default: the last refused one)"),
    ] = None,
    format: FormatOption = Format.text,
    debug: DebugOption = False,
) -> int:
    """Decide one scenario and tell why, or tell what an engine decided; succeeds whatever the decision is."""
    from hitproof.cli.output import write_json
    from hitproof.cli.ring import explain_ring
    from hitproof.spec.errors import UsageError

    if ring is not None:
        if rulebook is not None or scenario is not None or rates is not None:
            raise UsageError(
                "a dump is explained by itself", expected="--ring FILE without a rulebook, a scenario or rates"
            )
        return explain_ring(ring, number, as_json=format is Format.json)
    if rulebook is None or scenario is None or number is not None:
        raise UsageError(
            "nothing to explain" if number is None else "only a dump has numbers",
            expected="RULEBOOK SCENARIO, or --ring FILE",
            hint="see `hitproof explain --help`",
        )
    report = _report(rulebook, scenario, rates)
    if format is Format.json:
        write_json(report)
    else:
        _tell(report)
    return EXIT_GOOD


def find_scenario(rulebook: str, name: str) -> Path:
    """The scenario file of a path, or of a name among the rulebook's own.

    Raises:
        MissingFileError: There is none.
        UsageError: Several names begin so.
    """
    from hitproof.rules.source import rulebook_folder
    from hitproof.spec.errors import MissingFileError, Position, UsageError
    from hitproof.spec.yaml_fields import suggest

    path = Path(name)
    if path.exists():
        return path
    own = {file.stem: file for file in sorted((rulebook_folder(rulebook) / "scenarios").rglob("*.yaml"))}
    if name in own:
        return own[name]
    fitting = [stem for stem in own if stem.startswith(name)]
    if len(fitting) == 1:
        return own[fitting[0]]
    if fitting:
        raise UsageError("several scenarios begin so", got=name, expected="one name", hint=", ".join(fitting))
    raise MissingFileError(
        "there is no such scenario",
        where=Position(name),
        got=name,
        expected="a file, or one of the rulebook's own",
        hint=suggest(name, own),
    )


def _report(rulebook: str, name: str, rates: Path | None) -> dict[str, Any]:
    from hitproof.cli.books import open_book
    from hitproof.engine.scenario import ScenarioRun
    from hitproof.rules.rates import rates_in_force
    from hitproof.rules.scenarios import load_scenario, scenario_profile
    from hitproof.spec.errors import HitproofError, Position

    path = find_scenario(rulebook, name)
    book = open_book(rulebook)
    sheet = book.sheet(rates)
    scenario = load_scenario(path)
    try:
        run = ScenarioRun(book.bound(scenario_profile(scenario), sheet), scenario)
        decision = run.decide()
    except HitproofError as error:
        if error.where == Position():
            error.where = Position(str(path))
        raise
    return {
        "rulebook": book.rules.name,
        "digest": book.rules.digest,
        "scenario": scenario.scenario,
        "title": scenario.title,
        "because": scenario.because,
        "file": str(path),
        "rates": rates_in_force(book.rules, run.runtime, sheet),
        "refused_event": run.refused,
        "clamped": decision.clamped,
        "decision": decision,
        "groups": _groups(run, decision),
    }


def _groups(run: ScenarioRun, decision: Decision) -> list[dict[str, Any]]:
    """One row for each piece of each group, as it was judged at the longest logical length."""
    engine, state = run.engine, run.state()
    outcome = engine.judge.outcome(state, engine.judge.nothing(), decision.logical)
    names = {id(segment): name for name, segment in run.segments.items()}
    rows = []
    for group, masks, used in zip(engine.judge.groups, outcome.masks, outcome.used, strict=False):
        pieces = state.pieces.get(group.bound.id, ())
        for mask, (index, after, *_) in zip(masks, used, strict=True):
            piece = pieces[index] if index >= 0 else after
            failed = [check.id for bit, check in enumerate(group.bound.checks) if mask & 1 << bit]
            steps = [step for step in outcome.steps if step[0] is group and step[1] == index]
            rows.append(
                {
                    "group": group.bound.id,
                    "object": group.bound.object,
                    "segment": names.get(id(piece)) if index >= 0 else None,
                    "form": piece.form if index >= 0 else None,
                    "tier": piece.tier if index >= 0 else None,
                    "start": piece.start if index >= 0 else None,
                    "end": piece.end if index >= 0 else None,
                    "mandatory": group.bound.rules.mandatory,
                    "failed": failed,
                    "mended_by": [option.bound.id for _, _, option, _ in steps],
                    "disposition": decision.dispositions.get(group.bound.id),
                }
            )
    return rows


def _tell(report: dict[str, Any]) -> None:
    from hitproof.cli.output import show

    decision: Decision = report["decision"]
    show(f"{report['scenario']}: {report['title']}")
    if report["because"]:
        show(f"  {report['because']}")
    if report["rates"]["source"] != "rulebook":
        show(f"  rates of {report['rates']['source']}, but for those that the scenario states")
    if report["refused_event"] is not None:
        show(f"  event {report['refused_event']} was refused: its guard did not hold")
    show("", *_verdict_lines(decision), "", *_reason_lines(decision), _group_table(report), *_plan(decision))


def _verdict_lines(decision: Decision) -> list[str]:
    clamped = ", clamped" if decision.clamped else ""
    lines = [
        f"Verdict: {decision.verdict}",
        f"  {decision.logical} tokens match, {decision.usable} may be reused{clamped}",
    ]
    if decision.flags:
        lines.append(f"  flags: {', '.join(decision.flags)}")
    return lines


def _reason_lines(decision: Decision) -> list[str]:
    from hitproof.cli.output import plain_data

    if not decision.failed:
        return ["Every check held."]
    lines = [f"What did not hold at {decision.logical} tokens:"]
    for reason in decision.reasons:
        lines += [f"  {reason.rule} ({reason.layer}): {reason.because}", f"    {reason.conjunct}"]
        for path, value in reason.values.items():
            lines.append(f"      {path} = {'unknown' if value is None else plain_data(value)}")
        lines.append(f"    {reason.place}")
    told = {reason.rule for reason in decision.reasons}
    return lines + [f"  {rule}" for rule in decision.failed if rule not in told]


def _group_table(report: dict[str, Any]) -> Any:
    from hitproof.cli.output import table

    rows = []
    for one in report["groups"]:
        held = "nothing" if one["segment"] is None else f"{one['segment']}: {one['form']} on {one['tier']}"
        if one["segment"] is not None:
            held += f" [{_shown(one['start'])}, {_shown(one['end'])})"
        failed = ", ".join(one["failed"]) or "none"
        role = one["object"] if one["mandatory"] else f"{one['object']} (optional)"
        rows.append((one["group"], role, held, failed, ", ".join(one["mended_by"]), one["disposition"]))
    return table("Groups", ("group", "object", "held", "failed checks", "could be mended by", "entry"), rows)


def _shown(value: object) -> str:
    return "?" if value is None else str(value)


def _plan(decision: Decision) -> list[Any]:
    from hitproof.cli.output import table

    price = f"Recovery costs {decision.cost_us:.0f} us; with the prefill of the rest {decision.total_us:.0f} us."
    if not decision.plan:
        return [price]
    rows = [
        (step.group, step.option, step.repair, step.level, step.joint, _cost(step.cost_us)) for step in decision.plan
    ]
    return [table("Plan", ("group", "option", "repair", "level", "joint", "us"), rows), price]


def _cost(cost: float | None) -> str:
    return "unknown" if cost is None else f"{cost:.1f}"
