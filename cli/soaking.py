"""What `hitproof soak` runs, and how it is told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from hitproof.cli.failure import EXIT_FAILED, EXIT_GOOD
from hitproof.cli.options import Format
from hitproof.spec.errors import UsageError

if TYPE_CHECKING:
    from hitproof.engine.cache.measuring import Verify
    from hitproof.engine.soak.report import SoakReport
    from hitproof.engine.soak.simulate import Simulated
    from hitproof.engine.soak.stage import Settings
    from hitproof.engine.soak.switched import Row

__all__ = ["run_simulation", "run_switched", "run_threads"]

_SHOWN = 3
"""Most frequent entries of a cell."""


def run_threads(
    models: Sequence[str],
    faults: Sequence[str] | None,
    verify: Verify,
    seed: int,
    minutes: float,
    threads: int,
    processes: int | None,
    format: Format,
) -> int:
    """Soak each model in turn with threads, in one process or several; answers the exit code.

    Raises:
        UsageError: A kind of fault or a model does not exist, or the threads are too few for so many processes.
    """
    from hitproof.cli.output import write_json
    from hitproof.cli.progress import progress
    from hitproof.engine.soak.parallel import processes_for, soak_in_processes
    from hitproof.engine.soak.run import LEAST_THREADS

    shared = processes or processes_for(threads)
    if threads < shared * LEAST_THREADS:
        raise UsageError(
            "the threads are too few for so many processes",
            got=f"{threads} threads, {shared} processes",
            expected=f"{LEAST_THREADS} threads or more a process",
        )
    with progress("soaking") as tell:
        told = soak_in_processes(_settings(models, faults, verify, seed), minutes * 60, threads, shared, told=tell)
    if format is Format.json:
        write_json(told)
    else:
        _tell_soak(told)
    return EXIT_GOOD if told.good else EXIT_FAILED


def run_switched(protections: Sequence[str], seed: int, format: Format) -> int:
    """Show what each protection keeps out; answers the exit code.

    Raises:
        UsageError: There is no such protection.
    """
    from hitproof.cli.output import write_json
    from hitproof.cli.progress import progress
    from hitproof.engine.soak.books import PROTECTIONS
    from hitproof.engine.soak.switched import switch_off

    names = tuple(PROTECTIONS) if "all" in protections else tuple(dict.fromkeys(protections))
    rows = []
    with progress("soaking without protections") as tell:
        for row in switch_off(names, seed):
            rows.append(row)
            tell(f"{row.protection} done")
    if format is Format.json:
        write_json(rows)
    else:
        _tell_rows(rows)
    return EXIT_GOOD if all(row.good for row in rows) else EXIT_FAILED


def run_simulation(
    models: Sequence[str], faults: Sequence[str] | None, verify: Verify, seed: int, steps: int, format: Format
) -> int:
    """Play one seed of each model step by step; answers the exit code.

    Raises:
        UsageError: A kind of fault or a model does not exist.
    """
    from hitproof.cli.output import write_json
    from hitproof.cli.progress import progress
    from hitproof.engine.soak.disk_faults import DISK_RATES
    from hitproof.engine.soak.machine import simulated
    from hitproof.engine.soak.prefix import shortest
    from hitproof.engine.soak.simulate import simulate

    rates = DISK_RATES if faults is None else {kind: rate for kind, rate in DISK_RATES.items() if kind in faults}
    played: dict[str, Simulated] = {}
    with progress("simulating") as tell:
        for settings in _settings(models, faults, verify, seed):
            tell(settings.profile)
            set_up = simulated(settings)
            found = simulate(set_up, seed, steps, rates=rates)
            played[settings.profile] = found if found.failure is None else shortest(set_up, found, rates=rates)
    if format is Format.json:
        write_json(played)
    else:
        for model, found in played.items():
            _tell_simulated(model, found, f"--verify {verify}" + "".join(f" --fault {kind}" for kind in faults or ()))
    return EXIT_FAILED if any(found.failure for found in played.values()) else EXIT_GOOD


def _settings(models: Sequence[str], faults: Sequence[str] | None, verify: Verify, seed: int) -> list[Settings]:
    from hitproof.engine.soak.ledger import KINDS
    from hitproof.engine.soak.stage import Settings
    from hitproof.rules.profiles import load_profile

    kinds = frozenset(KINDS if faults is None else faults)
    strange = sorted(kinds - set(KINDS))
    if strange:
        raise UsageError("there is no such kind of fault", got=strange[0], expected=", ".join(KINDS))
    for model in models:
        load_profile(model)
    # Wrong bytes end a run where each use is measured; where not, what is not seen is counted.
    return [Settings(seed=seed, profile=model, verify=verify, faults=kinds, strict=verify == "use") for model in models]


def _tell_soak(told: SoakReport) -> None:
    from hitproof.cli.output import show, table

    show(
        f"{told.leases} leases confirmed in {told.seconds:.0f} s over {', '.join(told.profiles)}; "
        f"{told.turns} operations, {told.deaths} deaths, bytes measured at {told.verify}"
    )
    show(table("Rows compared with the truth", ("profile/group", "rows"), told.rows.items()))
    show(
        table(
            "Faults",
            ("kind", "injected", "noticed by", "then", "nobody read", "wrong bytes used"),
            (
                (
                    row.kind,
                    row.injected,
                    _most(row.caught),
                    _most(row.recovered),
                    _most(row.unread),
                    row.used,
                )
                for row in told.faults
            ),
        )
    )
    show(table("Answers", ("verdict", "times"), told.verdicts.items()))
    if told.waits:
        show(table("Who had to wait, and why", ("why", "times"), told.waits.items()))
    show(f"{told.reported} segments were reported stored; {told.lost} of them lost without a fault")
    show(
        f"{told.wrong_uses} uses read wrong bytes, {told.unexplained} of them without a fault; "
        f"{told.missing_uses} found no rows"
    )
    if told.verify != "use":
        show(f"not seen with --verify {told.verify}: {told.unseen}")
    for failure in told.failures:
        show(f"FAILED: {failure}")


def _tell_rows(rows: Iterable[Row]) -> None:
    from hitproof.cli.output import show, table

    show(
        table(
            "Protections switched off",
            ("without", "faults", "wrong with it", "wrong without it", "what was read"),
            (
                (
                    row.protection,
                    ", ".join(row.faults) or "none",
                    f"{row.with_it} in {row.leases_with} leases",
                    f"{row.without_it} in {row.leases_without} leases",
                    row.example,
                )
                for row in rows
            ),
        )
    )


def _tell_simulated(model: str, found: Simulated, options: str) -> None:
    from hitproof.cli.output import show

    show(f"{model}: {found.steps} steps, {found.deaths} deaths, log digest {found.digest}")
    show("  " + ", ".join(f"{count} {what}" for what, count in found.counts.items()))
    if found.failure is not None:
        show(f"FAILED at step {found.failure.step}, {found.failure.whose}: {found.failure.error}")
        for line in found.last:
            show(f"  {line}")
        again = f"--model {model} --seed {found.seed} --steps {found.failure.step} {options}"
        show(f"again: hitproof soak --simulate {again}")


def _most(counts: Mapping[str, int]) -> str:
    """The most frequent entries, and how many others there are."""
    shown = [f"{count} {what}" for what, count in list(counts.items())[:_SHOWN]]
    others = sum(list(counts.values())[_SHOWN:])
    return "\n".join([*shown, f"{others} otherwise"] if others else shown)
