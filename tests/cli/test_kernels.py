"""`hitproof kernels`: what is listed, what fails a self-test, and which deletions go unnoticed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hitproof.cli.kernel_deletions as kernel_deletions
import hitproof.kernels.registry as registry
from hitproof.cli.kernel_deletions import deletions
from hitproof.kernels.registry import KERNELS
from hitproof.rules import load_rulebook
from tests.architecture.source_tree import LINKS
from tests.cli.running import run

REPAIRS = load_rulebook("mixed_attention").repairs


def test_the_list_tells_every_repair() -> None:
    """Every declared repair is told with its contract; those that a kernel runs have a backend, without torch too."""
    told = {one["repair"]: one for one in run("kernels", "list", "--format=json").data["repairs"]}
    assert set(REPAIRS) == set(told)
    assert set(KERNELS) == {name for name, one in told.items() if one["backends"]}
    assert [["self", "demoted_prefix"]] == told["promote"]["consumes"]
    assert dict(REPAIRS["promote"].establishes) == told["promote"]["establishes"]
    text = run("kernels", "list")
    assert 0 == text.code
    assert all(one.summary in text.out for one in REPAIRS.values())


def test_selftest_answers_for_the_repairs_that_are_asked_for() -> None:
    """A repair that keeps its contract is good, in text and as JSON."""
    pytest.importorskip("torch")
    done = run("kernels", "selftest", "--repair", "promote", "--repair", "checksum", "--format=json")
    assert (0, "good") == (done.code, done.data["verdict"])
    assert ["promote", "checksum"] == [one["repair"] for one in done.data["repairs"]]
    assert all(one["trials"] > 10 and not one["failures"] for one in done.data["repairs"])
    assert 0 == run("kernels", "selftest", "--backend", "torch", "--repair", "promote").code


def test_a_kernel_that_fails_is_told_with_its_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """One wrong byte gives exit code 1, and a line for each trial that saw it."""
    pytest.importorskip("torch")
    from hitproof.kernels.blocks import scatter
    from hitproof.kernels.relayout import reference

    monkeypatch.setattr(reference, "scatter", lambda pool, table, rows: scatter(pool, table, rows ^ 1))
    done = run("kernels", "selftest", "--repair", "relayout", "--format=json")
    assert (1, "failed") == (done.code, done.data["verdict"])
    failures = done.data["repairs"][0]["failures"]
    assert any("V4 entries of ratio 4" == name and "rows are wrong" in text for name, text in failures)
    assert "rows are wrong" in run("kernels", "selftest", "--repair", "relayout").out


def test_kernels_are_interpreted_in_a_process_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command asks a child that has the interpreter's switch, and tells what it told, its exit code too."""
    pytest.importorskip("triton")
    monkeypatch.setattr(registry, "interpreting", lambda: False)
    monkeypatch.delenv(registry.INTERPRETER_SWITCH, raising=False)
    monkeypatch.setenv("PYTHONPATH", str(LINKS.parent))
    done = run("kernels", "selftest", "--backend", "interpret", "--repair", "checksum", "--format=json")
    assert (0, "interpret", "good") == (done.code, done.data["backend"], done.data["verdict"])
    assert ["checksum"] == [one["repair"] for one in done.data["repairs"]]
    assert 3 == run("kernels", "mutants", "--backend", "interpret", "--repair", "promot").code


def test_a_spill_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that keeps registers in memory gives exit code 1 and a line that says which."""
    import hitproof.kernels.targets as targets

    def compiled(target: str, spills: int) -> targets.Compiled:
        return targets.Compiled("promote", "promote_kernel", "a case", target, {"BLOCK": 8}, 4, 99, spills, 0, 1, 2)

    monkeypatch.setattr(targets, "compile_all", lambda repairs, names: [compiled(names[0], 0), compiled(names[1], 12)])
    done = run("kernels", "compile", "--targets", "sm80, gfx950")
    assert 1 == done.code
    assert "SPILLS: promote_kernel for gfx950, a case: 12 bytes a lane" in done.out
    told = run("kernels", "compile", "--targets", "sm80,gfx950", "--format=json")
    assert (1, "spills") == (told.code, told.data["verdict"])
    assert [0, 12] == [one["spills"] for one in told.data["kernels"]]
    page = run("kernels", "compile", "--targets", "sm80,gfx950", "--markdown").out.splitlines()
    assert [
        "| kernel | case | sm80 | gfx950 |",
        "| `promote_kernel` | a case | 99 / 0 / 1 / 2 | 99 / 0 / 1 / 2 |",
    ] == page[::2]


def test_every_deletion_of_a_declaration_is_noticed() -> None:
    """Each source and each fact has its line, and says who noticed."""
    pytest.importorskip("torch")
    done = run("kernels", "mutants", "--repair", "promote", "--format=json")
    assert (0, 0) == (done.code, done.data["missed"])
    declared = REPAIRS["promote"]
    names = [f"consumes: {name}" for name in declared.consumes[0]] + [f"establishes: {n}" for n in declared.establishes]
    assert names == [one["deleted"] for one in done.data["deletions"]]
    assert all(one["caught"] and one["contract"] for one in done.data["deletions"])
    assert "refuted" in done.data["deletions"][0]["claim"]


def test_a_deletion_that_nobody_notices_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the trials look away and nothing else reads the fact, the exit code is 1."""
    pytest.importorskip("torch")
    monkeypatch.setattr(kernel_deletions, "_by_contract", lambda *_: "")
    done = run("kernels", "mutants", "--repair", "relayout")
    assert 1 == done.code
    assert "NOT NOTICED: relayout: establishes: stride" in done.out
    assert "NOT NOTICED: relayout: consumes" not in done.out


def test_deletions_leave_all_else() -> None:
    """Each deletion takes one entry out of one part."""
    declared = REPAIRS["tail_fill"]
    found = list(deletions(declared))
    assert len(declared.establishes) + sum(map(len, declared.consumes)) == len(found)
    for one in found:
        if one.part == "consumes":
            assert declared.establishes == one.declared.establishes
            assert [name for name in declared.consumes[0] if name != one.entry] == list(one.declared.consumes[0])
        else:
            assert declared.consumes == one.declared.consumes
            assert {**declared.establishes} == {**one.declared.establishes, one.entry: declared.establishes[one.entry]}


@pytest.mark.parametrize(
    "arguments",
    [
        ("kernels",),
        ("kernels", "selftest", "--backend", "fortran"),
        ("kernels", "compile", "--targets", "sm33"),
        ("kernels", "compile", "--repair", "promot"),
        ("kernels", "selftest", "--repair", "forward"),
        ("kernels", "mutants", "--repair", "promot"),
        ("kernels", "list", "no-such-rulebook"),
    ],
    ids=" ".join,
)
def test_bad_usage_is_exit_code_3(arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What selects nothing is told in a sentence."""
    monkeypatch.chdir(tmp_path)
    done = run(*arguments)
    assert (3, "") == (done.code, done.out)
    assert done.err


@pytest.mark.parametrize("command", ["selftest", "mutants"])
def test_without_torch_the_extra_is_named(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is typed, names what to install, and has exit code 3."""

    def missing(name: str) -> Any:
        return None if name == "torch" else object()

    monkeypatch.setattr(registry, "find_spec", missing)
    done = run("kernels", command, "--format=json")
    assert 3 == done.code
    assert "usage" == done.error["code"]
    assert "hitproof[kernels]" in str(done.error["hint"])
