"""`hitproof calibrate`: the rates of this machine, measured, as a file that other commands take."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hitproof.cli.failure import EXIT_GOOD
from hitproof.cli.options import DEFAULT_RULEBOOK, DebugOption, Format, FormatOption, OutOption

if TYPE_CHECKING:
    from hitproof.engine.calibrate import Prefill
    from hitproof.spec.rates import Rate, Rates

__all__ = ["calibrate"]


def calibrate(
    out: OutOption = None,
    disk: Annotated[
        Path | None,
        typer.Option("--disk", metavar="DIR", help="Measure the disk under this folder. (default: not measured)"),
    ] = None,
    seconds: Annotated[
        float, typer.Option("--seconds", min=0.01, max=600, help="Seconds that each figure is measured.")
    ] = 1.0,
    prefill_us_per_token: Annotated[
        float | None, typer.Option("--prefill-us-per-token", help="The prefill of a token, where it is known.")
    ] = None,
    layer_us_per_token: Annotated[
        float | None, typer.Option("--layer-us-per-token", help="One layer's projection of a token, where it is known.")
    ] = None,
    measure_prefill: Annotated[
        bool, typer.Option("--measure-prefill", help="Measure one block by torch and scale it to the model.")
    ] = False,
    model: Annotated[
        str | None, typer.Option("--model", help="The profile that the rates are for. (default: any)")
    ] = None,
    active_parameters: Annotated[
        int | None,
        typer.Option("--active-parameters", min=1, max=10**15, help="Parameters that take part in one token."),
    ] = None,
    rulebook: Annotated[
        str, typer.Option("--rulebook", help="An embedded rulebook's name, a folder, or a rulebook.yaml.")
    ] = DEFAULT_RULEBOOK,
    format: FormatOption = Format.text,
    debug: DebugOption = False,
) -> int:
    """Measure what a byte, a launch and a token cost on this machine; what is not measured is said to be stated."""
    from hitproof.cli.books import open_book
    from hitproof.cli.output import check_target, write_file, write_json, write_text
    from hitproof.cli.progress import progress
    from hitproof.engine.calibrate import Stopwatch
    from hitproof.engine.calibrate import calibrate as measure
    from hitproof.rules.profiles import load_profile
    from hitproof.rules.rates import dump_rates

    rules = open_book(rulebook).rules
    profile = None if model is None else load_profile(model)
    by_hand = {"prefill_us_per_token": prefill_us_per_token, "layer_us_per_token": layer_us_per_token}
    given = {name: value for name, value in by_hand.items() if value is not None}
    prefill = _prefill(measure_prefill, profile, active_parameters, given)
    if out is not None:
        check_target(out)
    with progress("measuring") as tell:
        rates = measure(
            rules,
            watch=Stopwatch(seconds),
            disk=disk,
            given=given,
            prefill=prefill,
            model=None if profile is None else profile.name,
            tell=tell,
        )
    if out is not None:
        write_file(out, dump_rates(rates))
    if format is Format.json:
        write_json({"file": None if out is None else str(out), "rates": rates.model_dump(mode="json")})
    elif out is None:
        write_text(dump_rates(rates))
    else:
        _tell(rates, out)
    return EXIT_GOOD


def _prefill(wanted: bool, profile: Any, active_parameters: int | None, given: dict[str, float]) -> Prefill | None:
    from hitproof.engine.calibrate import Prefill
    from hitproof.spec.errors import UsageError

    if not wanted:
        if active_parameters is not None:
            raise UsageError(
                "--active-parameters scales a measured prefill", expected="--measure-prefill beside it, or neither"
            )
        return None
    if "prefill_us_per_token" in given:
        raise UsageError("the prefill is given and to be measured", expected="one of the two options")
    if profile is None or active_parameters is None:
        missing = "--model" if profile is None else "--active-parameters"
        raise UsageError(
            f"--measure-prefill needs {missing}",
            expected="--model, for the number of layers, and --active-parameters, for the work of a token",
            hint="a profile holds cache groups and no parameter count; the model's card has it",
        )
    return Prefill(profile, active_parameters)


def _tell(rates: Rates, out: Path) -> None:
    from hitproof.cli.output import show, table
    from hitproof.engine.calibrate.sampling import UNSTEADY

    machine = rates.machine
    whole = {**rates.facts, **rates.figures}
    load = "" if machine.load is None else f", load {machine.load:.2f}"
    show(f"{machine.cpu}, {machine.cores} cores{load}; {machine.accelerator or 'no accelerator'}")
    show(table("Rates", ("rate", "value", "unit", "origin", "runs", "spread"), [_row(*one) for one in whole.items()]))
    measured = [f"  {name}: {rate.how}" for name, rate in whole.items() if rate.sample is not None]
    show("How each was measured:", *measured)
    stated = [name for name, rate in rates.facts.items() if rate.origin == "stated"]
    if stated:
        show(f"Not measured, as {rates.rulebook} states it: {', '.join(stated)}")
    unsteady = [name for name, rate in whole.items() if rate.sample is not None and rate.sample.spread > UNSTEADY]
    if unsteady:
        show(
            f"Unsteady, the middle half of the runs spreads over {UNSTEADY:.0%} of the median: {', '.join(unsteady)}",
            "  the machine may be busy; measure again, or longer with --seconds",
        )
    show(f"written: {out}")


def _row(name: str, rate: Rate) -> tuple[str, ...]:
    runs, spread = ("", "") if rate.sample is None else (str(rate.sample.runs), f"{rate.sample.spread:.1%}")
    return name, f"{rate.value:.4g}", rate.unit, rate.origin, runs, spread
