"""Rule files as positioned trees: includes followed, repairs found, single places edited."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path

from hitproof.rules.edit import TreePath, edit, find, find_owner
from hitproof.spec.errors import MissingFileError, Position, ReferenceNameError, SchemaError, UsageError
from hitproof.spec.rulefile import RepairFile, RulebookFile, RuleFile
from hitproof.spec.yaml_fields import expect_list, expect_text_list, validate
from hitproof.spec.yaml_tree import Mapping as TreeMapping
from hitproof.spec.yaml_tree import Node, plain, read_tree

__all__ = ["RuleSource", "embedded_rulebooks", "read_source", "rulebook_folder"]

ROOT_FILE = "rulebook.yaml"
MAX_FILES = 200


@dataclass(frozen=True)
class RuleSource:
    """All files of a rulebook: `files` in include order, the root first, and `repairs` by file."""

    name: str
    files: Mapping[str, Node]
    repairs: Mapping[str, Node]

    @property
    def digest(self) -> str:
        """SHA-256 over the content of all files, independent of layout and comments."""
        content = [plain(tree) for trees in (self.files, self.repairs) for tree in trees.values()]
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def root(self) -> RulebookFile:
        """The validated root file."""
        return validate(RulebookFile, next(iter(self.files.values())))

    def parts(self) -> Iterator[tuple[Node, RuleFile]]:
        """Every file with its validated shape, the root first."""
        trees = iter(self.files.values())
        yield next(trees), self.root()
        for tree in trees:
            yield tree, validate(RuleFile, tree)

    def repair_parts(self) -> Iterator[tuple[Node, RepairFile]]:
        """Every repair declaration with its validated shape."""
        for tree in self.repairs.values():
            yield tree, validate(RepairFile, tree)

    def edited(self, path: TreePath, value: object) -> tuple[RuleSource, Position]:
        """The same source with the value at `path` of the file that has it replaced or added (`None` deletes it).

        List items are named by their `id`. Returns the new source and the place of the edit.

        Raises:
            ReferenceNameError: No file has that path.
        """
        for place in (find,) if value is None else (find, find_owner):
            for trees, is_repair in ((self.files, False), (self.repairs, True)):
                for name, tree in trees.items():
                    where = place(tree, path)
                    if where is not None:
                        changed = {**trees, name: edit(tree, path, value)}
                        return replace(self, repairs=changed) if is_repair else replace(self, files=changed), where
        raise ReferenceNameError("no rule file has this place", got="/".join(map(str, path)))


def embedded_rulebooks() -> list[str]:
    """Names of the rulebooks that ship with hitproof."""
    root = files("hitproof.rules")
    return sorted(entry.name for entry in root.iterdir() if entry.joinpath(ROOT_FILE).is_file())


def read_source(name_or_path: str | Path) -> RuleSource:
    """Read a rulebook: an embedded one by name, or a folder with `rulebook.yaml`, or that file itself.

    A folder's own `repairs/` is used where it exists, else the embedded declarations.

    Raises:
        MissingFileError: There is no such rulebook.
        UsageError: Files include each other in a circle, or there are too many.
        HitproofError: A file cannot be read.
    """
    folder = rulebook_folder(name_or_path)
    found: dict[str, Node] = {}
    _include(folder, Path(os.path.normpath(folder / ROOT_FILE)), found, ())
    own = folder / "repairs"
    repairs_folder = own if own.is_dir() else Path(str(files("hitproof.rules"))) / "repairs"
    repairs = {path.name: read_tree(path) for path in sorted(repairs_folder.glob("*.yaml"))}
    return RuleSource(name=folder.resolve().name, files=found, repairs=repairs)


def rulebook_folder(name_or_path: str | Path) -> Path:
    """The folder of a rulebook, named or given as a path.

    Raises:
        MissingFileError: There is none.
    """
    if str(name_or_path) in embedded_rulebooks():
        return Path(str(files("hitproof.rules"))) / str(name_or_path)
    path = Path(name_or_path)
    if path.is_dir() and (path / ROOT_FILE).is_file():
        return path
    if path.is_file() and path.name == ROOT_FILE:
        return path.parent
    raise MissingFileError(
        "there is no such rulebook",
        where=Position(str(name_or_path)),
        got=name_or_path,
        expected=f"a folder with {ROOT_FILE}, or one of {', '.join(embedded_rulebooks())}",
    )


def _include(
    folder: Path, path: Path, found: dict[str, Node], open_files: tuple[Path, ...], asked: Node | None = None
) -> None:
    if path in open_files:
        circle = " -> ".join(p.name for p in (*open_files[open_files.index(path) :], path))
        where = Position(str(path)) if asked is None else asked.where
        raise UsageError("files include each other in a circle", where=where, got=circle)
    name = str(path)
    if name in found:
        return
    if len(found) >= MAX_FILES:
        raise UsageError("too many included files", where=Position(name), expected=f"at most {MAX_FILES}")
    found[name] = tree = _read(path, asked)
    if not isinstance(tree, TreeMapping):
        raise SchemaError("a rule file is a mapping", where=tree.where, expected="sections such as `objects:`")
    if "include" not in tree.entries:
        return
    included = tree.entries["include"][1]
    for item, node in zip(expect_text_list(included, "include"), expect_list(included, "include"), strict=True):
        # One file has one name, else it would be read twice and its circles not be seen.
        target = Path(os.path.normpath(path.parent / item))
        if not target.resolve().is_relative_to(folder.resolve()):
            raise UsageError("an include leaves the rulebook's folder", where=node.where, got=item)
        _include(folder, target, found, (*open_files, path), node)


def _read(path: Path, asked: Node | None) -> Node:
    try:
        return read_tree(path)
    except MissingFileError as error:
        if asked is None:
            raise
        raise MissingFileError(
            f"the included file cannot be used: {error.message}",
            where=asked.where,
            got=path,
            expected=error.expected,
        ) from error
