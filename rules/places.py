"""Where things stand in a rule file: positions found by keys and indices."""

from __future__ import annotations

from dataclasses import dataclass

from hitproof.spec.errors import Position
from hitproof.spec.yaml_tree import Mapping, Node, Scalar, Sequence

__all__ = ["Places"]


@dataclass(frozen=True, slots=True)
class Places:
    """Finds the position of a value in a rule file, by its path from `base`."""

    tree: Node
    base: tuple[str | int, ...] = ()

    def __call__(self, *path: str | int) -> Position:
        """Position of the value at `path`, or of the deepest part of it that exists."""
        node, where = self.tree, self.tree.where
        for part in (*self.base, *path):
            if isinstance(node, Mapping) and str(part) in node.entries:
                where, node = node.entries[str(part)]
            elif isinstance(node, Sequence) and isinstance(part, int) and part < len(node.items):
                node = node.items[part]
                where = node.where
            else:
                return where
        return node.content if isinstance(node, Scalar) else node.where

    def under(self, *path: str | int) -> Places:
        """The same file, with paths counted from further inside."""
        return Places(self.tree, (*self.base, *path))
