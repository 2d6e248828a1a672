"""Scenario files: those that ship with a rulebook, and a user's own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import yaml

from hitproof.rules.profiles import load_profile
from hitproof.rules.source import rulebook_folder
from hitproof.spec.errors import MissingFileError, Position, UsageError
from hitproof.spec.profile import Profile
from hitproof.spec.scenario import Scenario
from hitproof.spec.yaml_fields import validate
from hitproof.spec.yaml_tree import read_tree

__all__ = ["dump_scenario", "load_scenario", "scenario_files", "scenario_profile"]


def load_scenario(path: Path) -> Scenario:
    """Read one scenario.

    Raises:
        HitproofError: With file, line and column.
    """
    tree = read_tree(path)
    return validate(Scenario, tree, path.stem)


def scenario_profile(scenario: Scenario) -> Profile:
    """The profile of a scenario: its own, or the named one.

    Raises:
        MissingFileError, ProfileError: There is no such profile.
    """
    return scenario.profile if isinstance(scenario.profile, Profile) else load_profile(scenario.profile)


def scenario_files(rulebook: str | Path, paths: tuple[Path, ...] = ()) -> Iterator[Path]:
    """Scenario files: those named (folders are searched), else the rulebook's own `scenarios/`.

    Raises:
        MissingFileError: A path does not exist.
        UsageError: Nothing is selected.
    """
    roots = paths or (rulebook_folder(rulebook) / "scenarios",)
    count = 0
    for root in roots:
        if not root.exists():
            raise MissingFileError("there is no such file or folder", where=Position(str(root)))
        found = sorted(root.rglob("*.yaml")) if root.is_dir() else [root]
        count += len(found)
        yield from found
    if not count:
        raise UsageError("no scenario is selected", got=", ".join(map(str, roots)), expected="*.yaml files")


def dump_scenario(scenario: Scenario) -> str:
    """The scenario as YAML text; loading it gives an equal scenario."""
    plain = scenario.model_dump(mode="json", exclude_defaults=True)
    return yaml.dump(plain, Dumper=_Dumper, sort_keys=False, default_flow_style=None, width=10**9)


class _Dumper(yaml.SafeDumper):
    """Writes no anchors, as our reader refuses them, and quotes what some reader takes for no text."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    bare = re.fullmatch(r"[A-Za-z][A-Za-z0-9_./-]*", text)
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if bare else '"')


_Dumper.add_representer(str, _text)
