"""`hitproof kernels compile`: every kernel as machine code for targets that need not be here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from hitproof.cli.failure import EXIT_FAILED, EXIT_GOOD
from hitproof.cli.options import DebugOption, Format, FormatOption

if TYPE_CHECKING:
    from hitproof.kernels.targets import Compiled

__all__ = ["compile_kernels", "markdown_table"]

TargetsOption = Annotated[
    str, typer.Option("--targets", help="Names with commas between: sm80, sm90, sm100, gfx942, gfx950. (default: all)")
]
RepairOption = Annotated[list[str] | None, typer.Option("--repair", help="A repair's name; again for more.")]
MarkdownOption = Annotated[bool, typer.Option("--markdown", help="Write the table of kernels/README.md.")]


def compile_kernels(
    targets: TargetsOption = "",
    repair: RepairOption = None,
    markdown: MarkdownOption = False,
    format: FormatOption = Format.text,
    debug: DebugOption = False,
) -> int:
    """Compile every way in which kernels are launched: 0 nothing spills, 1 a kernel keeps registers in memory."""
    from hitproof.cli.output import show, table, write_json, write_text
    from hitproof.kernels.registry import KERNELS
    from hitproof.kernels.targets import TARGETS, compile_all

    wanted = _known([one.strip() for one in targets.split(",") if one.strip()] or TARGETS, TARGETS, "target")
    repairs = _known(repair or KERNELS, KERNELS, "kernel")
    found = compile_all(repairs, wanted)
    spilling = [one for one in found if one.spills]
    if format is Format.json:
        write_json({"verdict": "spills" if spilling else "good", "targets": list(wanted), "kernels": found})
    elif markdown:
        write_text(markdown_table(found))
    else:
        headings = ("kernel", "case", "target", "tiles", "warps", "registers", "spills", "shared", "16 bytes", "matrix")
        show(table("Kernels as machine code", headings, map(_row, found)))
        show(*(f"SPILLS: {one.kernel} for {one.target}, {one.case}: {one.spills} bytes a lane" for one in spilling))
    return EXIT_FAILED if spilling else EXIT_GOOD


def markdown_table(found: Iterable[Compiled]) -> str:
    """A row for each kernel and case; for each target registers, shared memory, 16-byte accesses, and tensor cores."""
    cells: dict[tuple[str, str], dict[str, str]] = {}
    for one in found:
        cells.setdefault((one.kernel, one.case), {})[one.target] = " / ".join(
            map(str, (one.registers, one.shared, one.wide, one.matrix))
        )
    targets = list(dict.fromkeys(target for row in cells.values() for target in row))
    rows: list[Sequence[str]] = [("kernel", "case", *targets), ("---",) * (2 + len(targets))]
    rows += [(f"`{kernel}`", case, *(row.get(t, "") for t in targets)) for (kernel, case), row in cells.items()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _row(one: Compiled) -> tuple[object, ...]:
    tiles = ", ".join(f"{name} {size}" for name, size in one.tiles.items())
    spills = one.spills or None
    return one.kernel, one.case, one.target, tiles, one.warps, one.registers, spills, one.shared, one.wide, one.matrix


def _known(names: Sequence[str], all_names: Sequence[str], what: str) -> list[str]:
    """The names in order, each once.

    Raises:
        UsageError: There is no such thing.
    """
    from hitproof.spec.errors import UsageError
    from hitproof.spec.yaml_fields import suggest

    for name in names:
        if name not in all_names:
            hint = suggest(name, all_names)
            raise UsageError(f"there is no such {what}", got=name, expected=", ".join(all_names), hint=hint)
    return list(dict.fromkeys(names))
