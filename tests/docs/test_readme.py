"""The README shows what the commands print, and names what exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer

from hitproof.cli.app import app
from hitproof.rules.profiles import shipped_profiles
from hitproof.rules.scenarios import scenario_files
from hitproof.spec.proof import CLAIMS
from tests.docs.console import ROOT, commands_of, comparable, prepare, run
from tests.docs.pages import PAGES, blocks, rows, squeezed

README = ROOT / "README.md"
SHOWN = commands_of(README.read_text("utf-8"))
GROUP = typer.main.get_command(app)


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the commands of the README print now, one after the other; slow ones left out."""
    folder = tmp_path_factory.mktemp("readme")
    prepare(folder)
    return {one.command: run(one.command, folder) for one in SHOWN if not one.slow}


@pytest.mark.parametrize("shown", [one for one in SHOWN if not one.slow], ids=lambda one: str(one.command)[:50])
def test_commands_print_what_is_shown(shown: object, printed: dict[str, str]) -> None:
    """Output is that of the README but for times and digests; `tests.docs.console` rewrites it."""
    told = next(one for one in SHOWN if one is shown)
    assert comparable(told.output) == comparable(printed[told.command])


def test_the_shown_verification_is_of_every_claim_and_profile() -> None:
    """The slow example tells all claims, each proved for as many profiles as ship."""
    (text,) = (one.output for one in SHOWN if one.slow)
    number = len(shipped_profiles())
    proved = re.findall(rf"^ *(\w+) +{number} of {number} ", text, re.MULTILINE)
    assert list(CLAIMS) == proved
    assert "exit code 0" in text


def test_the_embedding_is_the_file() -> None:
    """The Python block is examples/embed.py."""
    assert [(ROOT / "examples" / "embed.py").read_text("utf-8")] == blocks(README, "python")


def test_the_shown_check_is_in_its_file() -> None:
    """The YAML block is a part of the file that its first line names."""
    for block in blocks(README, "yaml"):
        first, *lines = block.splitlines()
        text = (ROOT / first.removeprefix("# ")).read_text("utf-8")
        assert "\n".join(" " * 6 + line for line in lines) in text


def test_every_claim_has_its_row() -> None:
    """The table tells the required claims in their order, each with its own file."""
    table = rows(README, "claim", "in plain words", "file", "test")
    assert [f"`{name}`" for name in CLAIMS] == [claim for claim, *_ in table]
    for claim, _, file, _ in table:
        assert f"(verification/claims/{claim.strip('`')}.py)" in file


def test_scenarios_are_counted() -> None:
    """Those after public reports begin with a number; README and change log tell how many there are."""
    names = [path.stem for path in scenario_files("mixed_attention")]
    reported = sum(name[:3].isdigit() for name in names)
    readme, log = (squeezed((ROOT / name).read_text("utf-8")) for name in ("README.md", "CHANGELOG.md"))
    assert f"{reported} of them ship as scenarios" in readme
    assert f"beside {len(names) - reported} that exercise the rules" in readme
    assert f"{len(names)} scenarios, {reported} of them after public bug reports" in log


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_that_a_page_names_exist(page: Path) -> None:
    """Each `hitproof ...` names a command and options that it has, each `make ...` a target of the Makefile."""
    text = page.read_text("utf-8")
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    assert set(re.findall(r"^make ([a-z]+)|`make ([a-z]+)`", text, re.MULTILINE)) <= {
        pair for target in targets for pair in ((target, ""), ("", target))
    }
    for line in re.findall(r"(?:`|^\$ |bin/)hitproof ([^`\n]+)", text, re.MULTILINE):
        words = re.split(r"[;|>]", line)[0].split()
        command: object = GROUP
        while words and isinstance(command, typer.core.TyperGroup) and words[0] in command.commands:
            command = command.commands[words.pop(0)]
        assert not isinstance(command, typer.core.TyperGroup), line
        known = {option for parameter in command.params for option in parameter.opts}  # type: ignore[attr-defined]
        assert {word for word in words if word.startswith("--")} <= known | {"--debug"}, line
