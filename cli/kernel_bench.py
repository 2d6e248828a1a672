"""`hitproof kernels bench`: repairs timed on DeepSeek-V4's pages, beside plain PyTorch and a plain copy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hitproof.cli.failure import EXIT_GOOD
from hitproof.cli.options import DebugOption, Format, FormatOption

if TYPE_CHECKING:
    from hitproof.kernels.bench import Page, Sizes, Timing

__all__ = ["bench_kernels", "bytes_table", "pages_of"]

PROFILE = "deepseek-v4-flash"
_ON_GPU = {"rows": 1 << 18, "tokens": 1 << 16, "layers": 43}
_ON_CPU = {"rows": 1 << 12, "tokens": 1 << 8, "layers": 4}
_COPIED = {"cuda": 1 << 30, "cpu": 1 << 27}
"""Bytes of the copy by which bandwidth is measured."""

RowsOption = Annotated[
    int, typer.Option("--rows", min=0, help="Rows of repairs that move bytes; 0 for 262,144, or 4,096 without a GPU.")
]
TokensOption = Annotated[
    int,
    typer.Option(
        "--tokens", min=0, help="Tokens of repairs from kept inputs, in 128s; 0 for 65,536, or 256 without a GPU."
    ),
]
LayersOption = Annotated[
    int, typer.Option("--layers", min=0, help="The most layers of one repair; 0 for 43, or 4 without a GPU.")
]
RunsOption = Annotated[int, typer.Option("--runs", min=1, help="How often each is timed.")]
BytesOption = Annotated[
    str, typer.Option("--bytes", help="Time nothing; tell bytes and operations by formula, with this target's tiles.")
]
CaseOption = Annotated[list[str] | None, typer.Option("--repair", help="A repair's name; again for more.")]


def bench_kernels(
    rows: RowsOption = 0,
    tokens: TokensOption = 0,
    layers: LayersOption = 0,
    runs: RunsOption = 10,
    repair: CaseOption = None,
    bytes_for: BytesOption = "",
    format: FormatOption = Format.text,
    debug: DebugOption = False,
) -> int:
    """Time repairs on pages of DeepSeek-V4: kernels where there is a GPU, else the references, and that is said."""
    from hitproof.cli.output import show, table, write_json
    from hitproof.kernels.registry import KERNELS, require_torch
    from hitproof.spec.errors import UsageError
    from hitproof.spec.yaml_fields import suggest

    for name in repair or ():
        if name not in KERNELS:
            expected, hint = ", ".join(KERNELS), suggest(name, KERNELS)
            raise UsageError("no kernel runs this repair", got=name, expected=expected, hint=hint)
    require_torch()
    import torch

    from hitproof.kernels.backend import default_backend
    from hitproof.kernels.bench import CASES, build, copy_rate, measured

    wanted = [name for name in CASES if not repair or name.partition(",")[0] in repair]
    if bytes_for:
        return _told_bytes(wanted, bytes_for, {"rows": rows, "tokens": tokens, "layers": layers}, format)
    backend = default_backend()
    place = torch.device("cuda" if backend == "triton" else "cpu")
    usual = _ON_GPU if backend == "triton" else _ON_CPU
    sizes = _sizes({"rows": rows, "tokens": tokens, "layers": layers}, usual, place)
    rate = copy_rate(place, _COPIED[place.type], runs)
    found = [measured(build(name, sizes), backend, rate, runs) for name in wanted]
    about = torch.cuda.get_device_name() if backend == "triton" else f"processor, {torch.get_num_threads()} threads"
    if format is Format.json:
        told: dict[str, Any] = {"backend": backend, "device": about, "copy": rate, "sizes": _told_sizes(sizes)}
        write_json({**told, "cases": found})
        return EXIT_GOOD
    headings = ("case", "least MB", "asked MB", "repair us", "kernels us", "eager us", "compiled us", "share of copy")
    show(table(f"Repairs on {backend}: {about}", headings, map(_row, found)))
    show(f"a plain copy reads and writes {rate / 1e9:.1f} GB/s; times are medians of {runs} runs")
    if backend != "triton":
        show("no GPU is used: the references were timed, not the kernels; `share of copy` is theirs")
    return EXIT_GOOD


def pages_of(profile: str) -> dict[str, Page]:
    """The pages of a profile's groups that keep rows in blocks."""
    from hitproof.kernels.bench import Page
    from hitproof.rules.profiles import load_profile
    from hitproof.spec.rows import page_rows

    found = {}
    for group in load_profile(profile).groups:
        told = group.constants
        if "row_bytes" in told and "stride" in told:
            layers, stride = len(group.layers), int(told["stride"])
            row = int(told["row_bytes"]) // layers
            found[group.id] = Page(page_rows(row, stride, int(told.get("alignment", 1))), row, stride, layers)
    return found


def bytes_table(target: str, wanted: Iterable[str], asked: Mapping[str, int]) -> list[tuple[str, ...]]:
    """What each case asks of memory and of matrix units, by the formulas of `kernels/*/cost.py`.

    Args:
        target: Whose tiles.
        wanted: Names of cases.
        asked: Rows, tokens and layers; 0 for what a GPU is timed with.

    Returns:
        A row a case: its name; MB of the least, of all loads, of all stores; 10**9 operations of matrix products; and
        such operations a byte of the least.
    """
    import torch

    from hitproof.kernels.bench import build
    from hitproof.kernels.traffic import traffic_of

    sizes, found = _sizes(asked, _ON_GPU, torch.device("meta")), []
    for name in wanted:
        case = build(name, sizes)
        told = traffic_of(case.request, case.job, target)
        sums = (told.least, told.read, told.written)
        found.append(
            (
                name,
                *(f"{one / 1e6:,.1f}" for one in sums),
                f"{told.products / 1e9:,.1f}",
                f"{told.products / told.least:,.0f}",
            )
        )
    return found


def _told_bytes(wanted: Sequence[str], target: str, asked: Mapping[str, int], format: Format) -> int:
    from hitproof.cli.output import show, table, write_json
    from hitproof.kernels.targets import TARGETS
    from hitproof.spec.errors import UsageError
    from hitproof.spec.yaml_fields import suggest

    if target not in TARGETS:
        raise UsageError(
            "there is no such target", got=target, expected=", ".join(TARGETS), hint=suggest(target, TARGETS)
        )
    rows = bytes_table(target, wanted, asked)
    headings = ("case", "least MB", "read MB", "written MB", "10^9 products", "products a byte")
    if format is Format.json:
        write_json({"target": target, "cases": [dict(zip(headings, row, strict=True)) for row in rows]})
    else:
        show(table(f"Bytes and operations by formula, tiles of {target}", headings, rows))
    return EXIT_GOOD


def _sizes(asked: Mapping[str, int], usual: Mapping[str, int], place: Any) -> Sizes:
    from hitproof.kernels.bench import Sizes

    rows, tokens, layers = (asked[name] or usual[name] for name in ("rows", "tokens", "layers"))
    return Sizes(pages_of(PROFILE), rows, -(-tokens // 128) * 128, layers, place)


def _told_sizes(sizes: Sizes) -> dict[str, int]:
    return {"rows": sizes.rows, "tokens": sizes.tokens, "layers": sizes.layers}


def _row(timing: Timing) -> tuple[object, ...]:
    times = (timing.repair, timing.kernels, timing.eager, timing.compiled)
    sizes = f"{timing.least / 1e6:.2f}", f"{timing.asked / 1e6:.2f}"
    return timing.name, *sizes, *(None if one is None else f"{one:.1f}" for one in times), f"{timing.share:.1%}"
