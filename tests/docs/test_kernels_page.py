"""The page on kernels names each of them, and its program fits the code."""

from __future__ import annotations

import ast

from hitproof.kernels.registry import KERNELS
from tests.docs.console import ROOT
from tests.docs.pages import blocks, rows

PAGE = ROOT / "docs" / "kernels.md"


def test_every_kernel_has_its_row() -> None:
    """The table tells what each kernel does and from what, and no other repair."""
    told = [row[0] for row in rows(PAGE, "repair", "what it does", "from what")]
    assert sorted(f"[{name}](../kernels/{name})" for name in KERNELS) == sorted(told)


def test_the_program_names_what_exists() -> None:
    """The Python block can be read, and what it imports is there."""
    (shown,) = blocks(PAGE, "python")
    tree = ast.parse(shown)
    imported = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    for node in imported:
        path = ROOT.joinpath(*str(node.module).split(".")[1:])
        text = (path.with_suffix(".py") if path.with_suffix(".py").exists() else path / "__init__.py").read_text(
            "utf-8"
        )
        assert all(f'"{alias.name}"' in text for alias in node.names)
    assert 2 == len(imported)
