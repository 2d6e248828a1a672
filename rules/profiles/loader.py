"""Profiles as YAML: the shipped ones by name, others by path, and the text of any profile."""

from __future__ import annotations

from difflib import get_close_matches
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import yaml
from pydantic import ValidationError

from hitproof.spec.errors import HitproofError, ProfileError
from hitproof.spec.profile import Profile
from hitproof.spec.yaml_fields import validate
from hitproof.spec.yaml_tree import Mapping, Node, Sequence, parse_tree, read_tree

__all__ = ["dump_profile", "load_profile", "shipped_profiles"]

_SUFFIXES = (".yaml", ".yml")


def shipped_profiles() -> list[str]:
    """The names of the profiles that come with this package, sorted."""
    return sorted(entry.name.removesuffix(".yaml") for entry in _folder().iterdir() if entry.name.endswith(".yaml"))


def load_profile(name_or_path: str | Path) -> Profile:
    """Load a shipped profile by its name, or any profile by the path of its file.

    Args:
        name_or_path: A `Path`, or a text with a folder or `.yaml` in it, is a path; any other text a name.

    Raises:
        ProfileError: No shipped profile has that name, or the profile contradicts itself.
        MissingFileError: The file does not exist or cannot be read.
        HitproofError: The file is no YAML, or not of a profile's shape.
    """
    text = str(name_or_path)
    if isinstance(name_or_path, Path) or "/" in text or "\\" in text or text.endswith(_SUFFIXES):
        return _validated(read_tree(Path(name_or_path)))
    known = shipped_profiles()
    if text not in known:
        close = get_close_matches(text[:100], known, n=1)
        raise ProfileError(
            "no shipped profile has this name",
            got=text,
            expected=", ".join(known),
            hint=f"did you mean {close[0]}?" if close else "a path to a profile ends in .yaml",
        )
    resource = _folder() / f"{text}.yaml"
    return _validated(parse_tree(resource.read_bytes(), str(resource)))


def dump_profile(profile: Profile) -> str:
    """The profile as YAML text; loading it gives an equal profile."""
    plain = profile.model_dump()
    plain["title"] = _Text(profile.title)
    plain["sources"] = [_Text(source) for source in profile.sources]
    plain["groups"] = []
    for group in profile.groups:
        entry = group.model_dump(exclude_defaults=True)
        entry["layers"] = _ranges(group.layers)
        if group.consumers:
            entry["consumers"] = _ranges(group.consumers)
        if group.note:
            entry["note"] = _Text(group.note)
        plain["groups"].append(entry)
    return yaml.dump(plain, Dumper=_Dumper, sort_keys=False, default_flow_style=None, width=10**9, allow_unicode=True)


class _Text(str):
    """Prose, which is always quoted: the two versions of YAML differ on which plain words are text."""


class _Dumper(yaml.SafeDumper):
    """Writes no anchors, as our reader refuses them."""

    def ignore_aliases(self, data: object) -> bool:
        return True


_Dumper.add_representer(_Text, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"'))


def _ranges(layers: tuple[int, ...]) -> list[int | str]:
    runs: list[list[int]] = []
    for layer in layers:
        if runs and runs[-1][-1] == layer - 1:
            runs[-1].append(layer)
        else:
            runs.append([layer])
    return [run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]


def _folder() -> Traversable:
    return files("hitproof.rules.profiles")


def _validated(node: Node) -> Profile:
    try:
        return validate(Profile, node)
    except HitproofError as error:
        # What contradicts between groups is found on the whole profile; its path gives the line.
        for part in _path(error):
            if isinstance(node, Mapping):
                error.where, node = node.entries[str(part)]
            elif isinstance(node, Sequence) and isinstance(part, int):
                node = node.items[part]
        raise


def _path(error: HitproofError) -> tuple[str | int, ...]:
    cause = error.__cause__
    if not isinstance(cause, ValidationError):
        return ()
    loc: tuple[str | int, ...] = getattr(cause.errors()[0].get("ctx", {}).get("error"), "loc", ())
    return loc
