"""Files by which pipelines use the project: an action, hooks, and the packages that these install."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from hitproof.cli.app import app
from tests.docs.console import ROOT

COMMANDS: Any = typer.main.get_command(app)
EXTRAS: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
    "optional-dependencies"
]
HOOKS = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))}
ACTION = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"] if "name" in step}

RECORDER = f"""#!{sys.executable}
import json, os, sys
json.dump(sys.argv[1:], open(os.environ["RECORD"], "w"))
"""


def arguments_of(step: str, folder: Path, **variables: str) -> list[str]:
    """What a step of the action hands to the command, in a folder with a space in its name."""
    if shutil.which("bash") is None:
        pytest.skip("the action needs bash")
    home = folder / "a b"
    command = home / "hitproof" / "bin" / "hitproof"
    command.parent.mkdir(parents=True)
    command.write_text(RECORDER, "utf-8")
    command.chmod(0o755)
    given = dict.fromkeys(STEPS[step]["env"], "")
    fixed = {"RUNNER_TEMP": str(home), "GITHUB_STEP_SUMMARY": "summary.md", "RECORD": str(folder / "record.json")}
    script = ["bash", "-eo", "pipefail", "-c", STEPS[step]["run"]]
    subprocess.run(script, env={**os.environ, **fixed, **given, **variables}, cwd=folder, check=True, timeout=60)
    arguments: list[str] = json.loads((folder / "record.json").read_text("utf-8"))
    return arguments


class TestAction:
    """The composite action."""

    def test_hands_inputs_to_the_proof(self, tmp_path: Path) -> None:
        """Every input arrives as one argument, whatever stands in it, and as what the command takes it for."""
        rulebook, profile = '-my $(touch hacked) "rules"', "models/a b.yaml; touch hacked"
        arguments = arguments_of(
            *("Prove", tmp_path),
            RULEBOOK=rulebook,
            PROFILES=f"gemma-3-27b\n\n{profile}\n",
            CROSS_CHECK="true",
            MUTANTS="true",
            REPORTS="out",
        )
        parsed = COMMANDS.commands["verify"].make_context("verify", arguments[1:]).params
        assert "verify" == arguments[0]
        assert rulebook == parsed["rulebook"]
        assert ["gemma-3-27b", profile] == list(parsed["profile"])
        assert (True, True) == (parsed["cross_check"], parsed["mutants"])
        assert {"sarif=out/verify.sarif", "junit=out/verify.xml", "markdown=summary.md"} == set(parsed["report"])
        assert not list(tmp_path.rglob("hacked"))

    def test_asks_for_nothing_that_was_not_wanted(self, tmp_path: Path) -> None:
        """Without inputs all shipped models are proved, in one solver, without mutants."""
        arguments = arguments_of("Prove", tmp_path, RULEBOOK="my_rules", REPORTS="out", CROSS_CHECK="false")
        parsed = COMMANDS.commands["verify"].make_context("verify", arguments[1:]).params
        assert (False, False) == (parsed["cross_check"], parsed["mutants"])
        assert not parsed["profile"]

    def test_hands_the_rulebook_to_the_scenarios(self, tmp_path: Path) -> None:
        """The command runs the rulebook's own scenarios."""
        arguments = arguments_of("Scenarios", tmp_path, RULEBOOK="my_rules", REPORTS="out")
        parsed = COMMANDS.commands["test"].make_context("test", arguments[1:]).params
        assert ("my_rules", []) == (parsed["rulebook"], list(parsed["scenario"] or ()))
        assert {"sarif=out/test.sarif", "junit=out/test.xml", "markdown=summary.md"} == set(parsed["report"])

    @pytest.mark.parametrize("step", STEPS)
    def test_puts_no_input_into_a_script(self, step: str) -> None:
        """Inputs are variables of the environment; every input that a step names exists."""
        assert "${{" not in STEPS[step]["run"]
        named = {value.split("inputs.")[1].split(" ")[0] for value in STEPS[step]["env"].values()}
        assert named <= set(ACTION["inputs"])

    def test_installs_extras_that_exist(self) -> None:
        """Those of the command line, the prover, and the second solver."""
        assert "[cli,crosscheck,verify]" in STEPS["Install"]["run"]
        assert {"cli", "crosscheck", "verify"} <= set(EXTRAS)


@pytest.mark.parametrize(("hook", "extras"), [("hitproof-check", ["cli"]), ("hitproof-verify", ["cli", "verify"])])
def test_hooks_install_what_their_command_needs(hook: str, extras: list[str]) -> None:
    """Hooks cannot ask for extras, so they name the packages; the entry is a command."""
    needed = [package for extra in extras for package in EXTRAS[extra]]
    assert sorted(needed) == sorted(HOOKS[hook]["additional_dependencies"])
    program, command = HOOKS[hook]["entry"].split()
    assert "hitproof" == program
    assert command in COMMANDS.commands


def test_hooks_are_a_manifest() -> None:
    """pre-commit reads it."""
    clientlib = pytest.importorskip("pre_commit.clientlib", reason="pre-commit is a tool of developers")
    assert list(HOOKS) == [hook["id"] for hook in clientlib.load_manifest(str(ROOT / ".pre-commit-hooks.yaml"))]


def test_extras_are_pinned() -> None:
    """Each package that an extra of users names has its exact version among the constraints."""
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pinned = {line.split("==")[0].lower().replace("_", "-") for line in lines if "==" in line}
    for extra, packages in EXTRAS.items():
        for package in packages:
            name = package.split(">=")[0].split("[")[0].lower()
            assert name == "hitproof" or name in pinned, f"{extra}: {package}"
