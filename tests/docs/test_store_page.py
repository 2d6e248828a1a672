"""The page on the disk tier names every answer, its table is the format's, and its programs name what exists."""

from __future__ import annotations

import ast
from typing import get_args

from hitproof.engine import store
from hitproof.engine.store import Meaning, Migration
from hitproof.engine.store.answers import Fault, Refusal
from hitproof.engine.store.catalogue import VERSION
from hitproof.engine.store.format import CODE, MAGIC, SCHEMA, START
from tests.docs.console import ROOT
from tests.docs.pages import blocks, rows
from tests.engine.state_cases import bound_to

PAGE = ROOT / "docs" / "store.md"


def test_every_reason_is_told() -> None:
    """Each refusal has its row, and each fault stands in the text."""
    told = [cells[0] for cells in rows(PAGE, "reason", "meaning", "what becomes of the file")]
    assert sorted(f"`{reason}`" for reason in get_args(Refusal)) == sorted(told)
    assert [] == [fault for fault in get_args(Fault) if f"`{fault}`" not in PAGE.read_text("utf-8")]


def test_the_table_is_the_format() -> None:
    """The lengths of the fixed parts, the magic and the versions are those of the code."""
    table = rows(PAGE, "bytes", "what")
    fixed = [int(cells[0]) for cells in table if cells[0].isdigit()]
    assert sum(fixed[:5]) == START.size
    assert fixed[5:] == [CODE, CODE]
    text = PAGE.read_text("utf-8")
    assert MAGIC.decode("latin-1").encode("unicode_escape").decode() in text
    assert f"schema {SCHEMA}" in text.replace("\n", " ")
    assert f"user_version {VERSION}" in text


def test_the_programs_name_what_exists() -> None:
    """The Python blocks can be read, and what they import and declare is there."""
    programs = blocks(PAGE, "python")
    for program in programs:
        for node in ast.walk(ast.parse(program)):
            if isinstance(node, ast.ImportFrom) and node.module == "hitproof.engine.store":
                assert [] == [alias.name for alias in node.names if alias.name not in store.__all__]
    names = {"Meaning": Meaning, "Migration": Migration, "bound": bound_to("homogeneous"), "old_digest": "0" * 64}
    assert isinstance(eval(programs[-1], names), Meaning)
