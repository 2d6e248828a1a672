"""Single places of a rule file's tree: found by keys and ids, replaced, added and deleted."""

from __future__ import annotations

import json
from dataclasses import replace

from hitproof.spec.errors import Position, ReferenceNameError
from hitproof.spec.yaml_tree import Mapping, Node, Scalar, Sequence, parse_tree

__all__ = ["TreePath", "edit", "find", "find_owner"]

TreePath = tuple[str | int, ...]
"""Keys on the way from the root; an item of a list is named by its `id`, its text or its index."""


def find(tree: Node, path: TreePath) -> Position | None:
    """Place of the key or item at `path`, None where there is none."""
    step = _walk(tree, path)
    return None if step is None else step[0]


def find_owner(tree: Node, path: TreePath) -> Position | None:
    """Place of the mapping to which the last key of `path` can be added, None where there is none.

    A file's own top level takes no new section: which of the files should have it cannot be told.
    """
    step = _walk(tree, path[:-1])
    return step[0] if step is not None and isinstance(step[1], Mapping) and len(path) > 1 else None


def edit(tree: Node, path: TreePath, value: object) -> Node:
    """The tree with the value at `path` replaced or added; `None` deletes it.

    Every node of a new value claims the place of the node that it replaces.

    Raises:
        ReferenceNameError: The path leads nowhere.
    """
    head, rest = path[0], path[1:]
    if isinstance(tree, Mapping):
        return _edit_mapping(tree, str(head), rest, value)
    if not isinstance(tree, Sequence):
        raise ReferenceNameError("this place is no list and no mapping", where=tree.where, got=head)
    index = _index(tree, head)
    if index is None:
        raise ReferenceNameError("the list has no such item", where=tree.where, got=head)
    items = list(tree.items)
    if not rest and value is None:
        del items[index]
    else:
        items[index] = edit(items[index], rest, value) if rest else _grown(value, items[index])
    return Sequence(tree.where, tuple(items))


def _edit_mapping(tree: Mapping, key: str, rest: TreePath, value: object) -> Mapping:
    entries = dict(tree.entries)
    if key not in entries and (rest or value is None):
        raise ReferenceNameError("the mapping has no such key", where=tree.where, got=key)
    where, child = entries.get(key, (tree.where, tree))
    if not rest and value is None:
        del entries[key]
    else:
        entries[key] = (where, edit(child, rest, value) if rest else _grown(value, child))
    return Mapping(tree.where, entries)


def _walk(tree: Node, path: TreePath) -> tuple[Position, Node] | None:
    where, node = tree.where, tree
    for part in path:
        step = _step(node, part)
        if step is None:
            return None
        where, node = step
    return where, node


def _step(node: Node, part: str | int) -> tuple[Position, Node] | None:
    if isinstance(node, Mapping):
        return node.entries.get(str(part))
    index = _index(node, part) if isinstance(node, Sequence) else None
    return None if index is None or not isinstance(node, Sequence) else (node.items[index].where, node.items[index])


def _index(node: Sequence, part: str | int) -> int | None:
    if isinstance(part, int):
        return part if 0 <= part < len(node.items) else None
    for index, item in enumerate(node.items):
        named = item.entries["id"][1] if isinstance(item, Mapping) and "id" in item.entries else item
        if isinstance(named, Scalar) and named.value == part:
            return index
    return None


def _grown(value: object, at: Node) -> Node:
    """`value` as a tree whose every node claims the place of `at`."""
    return _moved(parse_tree(json.dumps(value, ensure_ascii=False), at.where.file), at.where)


def _moved(node: Node, where: Position) -> Node:
    if isinstance(node, Mapping):
        return Mapping(where, {key: (where, _moved(child, where)) for key, (_, child) in node.entries.items()})
    if isinstance(node, Sequence):
        return Sequence(where, tuple(_moved(child, where) for child in node.items))
    return replace(node, where=where, content=where) if isinstance(node, Scalar) else node
