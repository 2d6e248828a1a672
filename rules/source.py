"""Rule files as positioned trees: includes followed, repairs found, single places edited for mutants."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path

from hitproof.spec.errors import MissingFileError, Position, ReferenceNameError, SchemaError, UsageError
from hitproof.spec.rulefile import RepairFile, RulebookFile, RuleFile
from hitproof.spec.yaml_tree import Mapping as TreeMapping
from hitproof.spec.yaml_tree import (
    Node,
    Scalar,
    Sequence,
    expect_list,
    expect_text_list,
    parse_tree,
    plain,
    read_tree,
    validate,
)

__all__ = ["RuleSource", "embedded_rulebooks", "read_source", "rulebook_folder"]

ROOT_FILE = "rulebook.yaml"
MAX_FILES = 200
Path_ = tuple[str | int, ...]


@dataclass(frozen=True)
class RuleSource:
    """All files of a rulebook: `files` in include order, the root first, and `repairs` by file."""

    name: str
    files: Mapping[str, Node]
    repairs: Mapping[str, Node]

    @property
    def digest(self) -> str:
        """SHA-256 over the content of all files, independent of layout and comments."""
        content = {name: plain(tree) for name, tree in {**self.files, **self.repairs}.items()}
        text = json.dumps(list(content.values()), sort_keys=True, separators=(",", ":"))
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

    def edited(self, path: Path_, value: object) -> tuple[RuleSource, Position]:
        """The same source with the value at `path` of the file that has it replaced or added (`None` deletes it).

        List items are named by their `id`. Returns the new source and the place of the edit.

        Raises:
            ReferenceNameError: No file has that path.
        """
        for group in ("files", "repairs"):
            trees: Mapping[str, Node] = getattr(self, group)
            for name, tree in trees.items():
                where = _find(tree, path)
                if where is None and value is not None:
                    where = _find_owner(tree, path)
                if where is not None:
                    changed = {**trees, name: _edit(tree, path, value)}
                    files = changed if group == "files" else self.files
                    return RuleSource(self.name, files, changed if group == "repairs" else self.repairs), where
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
    _include(folder, folder / ROOT_FILE, found, ())
    own = folder / "repairs"
    repairs_folder = own if own.is_dir() else Path(str(files("hitproof.rules"))) / "repairs"
    repairs = {path.name: read_tree(path) for path in sorted(repairs_folder.glob("*.yaml"))}
    return RuleSource(name=folder.name, files=found, repairs=repairs)


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
        target = (path.parent / item).resolve()
        if not target.is_relative_to(folder.resolve()):
            raise UsageError("an include leaves the rulebook's folder", where=node.where, got=item)
        _include(folder, path.parent / item, found, (*open_files, path), node)


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


def _find(node: Node, path: Path_) -> Position | None:
    where = node.where
    for part in path:
        step = _step(node, part)
        if step is None:
            return None
        where, node = step
    return where


def _find_owner(tree: Node, path: Path_) -> Position | None:
    """Place of the mapping to which the last key of the path could be added."""
    node: Node = tree
    where = tree.where
    for part in path[:-1]:
        step = _step(node, part)
        if step is None:
            return None
        where, node = step
    return where if isinstance(node, TreeMapping) and len(path) > 1 else None


def _step(node: Node, part: str | int) -> tuple[Position, Node] | None:
    if isinstance(node, TreeMapping):
        return node.entries.get(str(part))
    if isinstance(node, Sequence):
        index = _index(node, part)
        return None if index is None else (node.items[index].where, node.items[index])
    return None


def _index(node: Sequence, part: str | int) -> int | None:
    if isinstance(part, int):
        return part if part < len(node.items) else None
    for index, item in enumerate(node.items):
        identity = item.entries.get("id") if isinstance(item, TreeMapping) else None
        if identity and isinstance(identity[1], Scalar) and identity[1].value == part:
            return index
        if isinstance(item, Scalar) and item.value == part:
            return index
    return None


def _edit(node: Node, path: Path_, value: object) -> Node:
    head, rest = path[0], path[1:]
    if isinstance(node, TreeMapping):
        entries = dict(node.entries)
        where, child = entries.get(str(head), (node.where, node))
        if rest:
            entries[str(head)] = (where, _edit(child, rest, value))
        elif value is None:
            del entries[str(head)]
        else:
            entries[str(head)] = (where, _grown(value, child))
        return TreeMapping(node.where, entries)
    if not isinstance(node, Sequence):
        raise ReferenceNameError("this place is no list and no mapping", where=node.where)
    items = list(node.items)
    index = _index(node, head)
    if index is None:
        raise ReferenceNameError("the list has no such item", where=node.where, got=head)
    if rest:
        items[index] = _edit(items[index], rest, value)
    elif value is None:
        del items[index]
    else:
        items[index] = _grown(value, items[index])
    return Sequence(node.where, tuple(items))


def _grown(value: object, at: Node) -> Node:
    """`value` as a tree whose every node claims the place of `at`."""
    return _moved(parse_tree(json.dumps(value), at.where.file), at.where)


def _moved(node: Node, where: Position) -> Node:
    if isinstance(node, TreeMapping):
        return TreeMapping(where, {key: (where, _moved(child, where)) for key, (_, child) in node.entries.items()})
    if isinstance(node, Sequence):
        return Sequence(where, tuple(_moved(child, where) for child in node.items))
    return replace(node, where=where, content=where) if isinstance(node, Scalar) else node
