"""`hitproof kernels`: the repairs and what runs them, tried on awkward sizes, their declarations put to the test."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hitproof.cli.failure import EXIT_FAILED, EXIT_GOOD
from hitproof.cli.interpreted import run_interpreted
from hitproof.cli.kernel_bench import bench_kernels
from hitproof.cli.kernel_compile import compile_kernels
from hitproof.cli.options import DEFAULT_RULEBOOK, DebugOption, Format, FormatOption, RulebookArgument

if TYPE_CHECKING:
    from hitproof.spec.rulebook import Repair, Rulebook

__all__ = ["kernels_app"]

kernels_app = typer.Typer(help="Repairs and what runs them.")

RepairOption = Annotated[
    list[str] | None, typer.Option("--repair", help="A repair's name; again for more. (default: all with a kernel)")
]
BackendOption = Annotated[
    str,
    typer.Option(
        "--backend",
        help="Which implementation: torch, the readable reference; triton, kernels on a GPU; interpret, the same "
        "kernels in Triton's interpreter; auto, triton where a GPU proves itself, else torch.",
    ),
]


kernels_app.command("bench")(bench_kernels)
kernels_app.command("compile")(compile_kernels)


@kernels_app.callback()
def _group() -> None:
    """Repairs and what runs them."""


@kernels_app.command("list")
def listed(
    rulebook: RulebookArgument = DEFAULT_RULEBOOK, format: FormatOption = Format.text, debug: DebugOption = False
) -> int:
    """List every declared repair: its contract, and which implementations it has."""
    from hitproof.cli.books import open_book
    from hitproof.cli.output import show, table, write_json

    repairs = open_book(rulebook).rules.repairs
    told = [_described(repair) for repair in repairs.values()]
    if format is Format.json:
        write_json({"repairs": told})
        return EXIT_GOOD
    headings = ("repair", "runs", "backends", "consumes", "produces", "dtypes", "layouts", "aligned")
    show(table("Repairs", headings, [[_cell(one[key]) for key in headings] for one in told]))
    show(*(f"{one['repair']}: {one['summary']}" for one in told))
    return EXIT_GOOD


@kernels_app.command("selftest")
def selftest(
    rulebook: RulebookArgument = DEFAULT_RULEBOOK,
    backend: BackendOption = "auto",
    repair: RepairOption = None,
    format: FormatOption = Format.text,
    debug: DebugOption = False,
) -> int:
    """Run kernels on awkward sizes, strides, offsets and number formats: 0 all kept their contract, 1 one did not."""
    from hitproof.cli.books import open_book
    from hitproof.cli.output import show, table, write_json

    if _needs_child(backend):
        return run_interpreted(_arguments("selftest", rulebook, backend, repair, format, debug))
    rules = open_book(rulebook).rules
    backend = _resolved(backend)
    chosen = _chosen(rules, repair, backend)
    from hitproof.kernels.selftest import check_sources, check_trial, trials_of

    told: list[dict[str, Any]] = []
    for declared in chosen:
        trials = trials_of(declared.id)
        failures = [(trial.name, one.text) for trial in trials for one in check_trial(trial, declared, backend)]
        failures += [(trials[0].name, one.text) for one in check_sources(trials[0], declared, backend)]
        untried = sorted(set(declared.dtypes) - {trial.dtype for trial in trials})
        untried += sorted(set(declared.layouts) - {trial.layout for trial in trials})
        failures += [("all trials", f"{name} is declared, and no trial writes it") for name in untried]
        told.append({"repair": declared.id, "trials": len(trials), "failures": [list(one) for one in failures]})
    failed = any(one["failures"] for one in told)
    if format is Format.json:
        write_json({"backend": backend, "verdict": "failed" if failed else "good", "repairs": told})
    else:
        rows = [(one["repair"], one["trials"], len(one["failures"]) or None) for one in told]
        show(table(f"Kernels on {backend}", ("repair", "trials", "failures"), rows))
        show(*(f"{one['repair']}: {name}: {text}" for one in told for name, text in one["failures"]))
    return EXIT_FAILED if failed else EXIT_GOOD


@kernels_app.command("mutants")
def mutants(
    rulebook: RulebookArgument = DEFAULT_RULEBOOK,
    backend: BackendOption = "auto",
    repair: RepairOption = None,
    format: FormatOption = Format.text,
    debug: DebugOption = False,
) -> int:
    """Delete every source and every fact of the declarations in turn: 0 each deletion is noticed, 1 one is not."""
    from hitproof.cli.books import open_book
    from hitproof.cli.kernel_deletions import deletions, noticed_by
    from hitproof.cli.output import show, table, write_json
    from hitproof.cli.progress import progress

    if _needs_child(backend):
        return run_interpreted(_arguments("mutants", rulebook, backend, repair, format, debug))
    book = open_book(rulebook)
    backend = _resolved(backend)
    chosen = _chosen(book.rules, repair, backend)
    from hitproof.kernels.selftest import trials_of

    told: list[dict[str, Any]] = []
    with progress("deleting") as tell:
        for declared in chosen:
            trial = trials_of(declared.id)[0]
            for deletion in deletions(declared):
                tell(f"{declared.id}: {deletion.part} {deletion.entry}")
                found = noticed_by(deletion, book.source, book.rules, trial, backend)
                told.append(
                    {
                        "repair": declared.id,
                        "deleted": f"{deletion.part}: {deletion.entry}",
                        "caught": found.caught,
                        "contract": found.contract,
                        "loader": found.loader,
                        "claim": found.claim,
                    }
                )
    missed = sum(not one["caught"] for one in told)
    if format is Format.json:
        write_json({"backend": backend, "missed": missed, "deletions": told})
    else:
        headings = ("repair", "deleted", "contract", "loader", "claim")
        show(table("Declarations with an entry deleted", headings, [[one[key] for key in headings] for one in told]))
        show(f"{len(told)} deletions, {missed} not noticed")
        show(*(f"NOT NOTICED: {one['repair']}: {one['deleted']}" for one in told if not one["caught"]))
    return EXIT_FAILED if missed else EXIT_GOOD


def _needs_child(backend: str) -> bool:
    """Whether a backend runs in another kind of process than this one."""
    from hitproof.kernels.registry import interpreting, require_torch

    if backend != "interpret" or interpreting():
        return False
    require_torch()
    return True


def _arguments(
    command: str, rulebook: str, backend: str, repairs: Iterable[str] | None, format: Format, debug: bool
) -> list[str]:
    """The command line again."""
    named = [part for name in repairs or () for part in ("--repair", name)]
    return [
        *("kernels", command, rulebook, "--backend", backend, *named, "--format", format.value),
        *(["--debug"] if debug else []),
    ]


def _resolved(backend: str) -> str:
    """The backend that a name stands for."""
    from hitproof.kernels.registry import AUTO, require_torch

    if backend != AUTO:
        return backend
    require_torch()
    from hitproof.kernels.backend import default_backend

    return default_backend()


def _chosen(rules: Rulebook, names: Iterable[str] | None, backend: str) -> list[Repair]:
    from hitproof.kernels.registry import BACKENDS, KERNELS, implementation
    from hitproof.spec.errors import UsageError
    from hitproof.spec.yaml_fields import suggest

    if backend not in BACKENDS:
        raise UsageError("there is no such backend", got=backend, expected=", ".join(BACKENDS))
    chosen = list(dict.fromkeys(names or KERNELS))
    for name in chosen:
        if name not in KERNELS or name not in rules.repairs:
            raise UsageError(
                "no kernel runs this repair", got=name, expected=", ".join(KERNELS), hint=suggest(name, KERNELS)
            )
        implementation(name, backend)
    # Trials are small: more threads would only wait for one another.
    import_module("torch").set_num_threads(1)
    return [rules.repairs[name] for name in chosen]


def _described(repair: Repair) -> dict[str, Any]:
    from hitproof.kernels.registry import BACKENDS, KERNELS

    return {
        "repair": repair.id,
        "summary": repair.summary,
        "runs": repair.runs,
        "backends": list(BACKENDS) if repair.id in KERNELS else [],
        "consumes": [list(names) for names in repair.consumes],
        "produces": list(repair.produces),
        "establishes": dict(repair.establishes),
        "clobbers": sorted(repair.clobbers),
        "keeps": sorted(repair.keeps),
        "writes": repair.writes,
        "dtypes": list(repair.dtypes),
        "layouts": list(repair.layouts),
        "aligned": repair.alignment,
        "reads_at": repair.reads_at,
        "source": repair.source,
    }


def _cell(value: object) -> str:
    if isinstance(value, list) and value and isinstance(value[0], list):
        return " or ".join(" + ".join(one) or "nothing" for one in value)
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
