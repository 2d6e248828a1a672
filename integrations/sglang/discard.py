"""Takes pages out of SGLang's tree that the gate refused, so that the prefix can be cached anew."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["discard", "may_discard"]

_OF_PLACE = frozenset({"generation_current", "mapping_current", "pool_current", "resident", "sealed", "tokens_match"})
"""Checks of whose page it is. Where one fails, somebody else may hold the page, and freeing it could free theirs."""


def may_discard(failed: Iterable[str]) -> bool:
    """Whether pages may be freed that were refused for this.

    Args:
        failed: `group/check` of what failed; `door/fact` where a fact of the request is unknown, which is no fault of
            any page.
    """
    names = [name.rpartition("/") for name in failed]
    return all(group != "door" and check not in _OF_PLACE for group, _, check in names)


def discard(cache: Any, key: Any, first: int) -> bool:
    """Evict what the tree holds for a key from a token on, and everything that hangs on it. Changes the tree.

    Args:
        cache: A `UnifiedRadixCache` on SGLang's Python tree core.
        key: The key.
        first: A multiple of the page size, below what the tree holds.

    Returns:
        False where a request, a copy on the host or a transfer holds a part of it; then nothing was changed.
    """
    core = cache.tree_core
    victim = _child_at(core, key, first)
    if victim is None:
        return False
    nodes = [victim]
    for node in nodes:
        nodes.extend(node.children.values())
    if any(_held(node) for node in nodes):
        return False
    tracker = dict.fromkeys(cache.tree_components, 0)
    for node in reversed(nodes):
        # Ancestors that are left without anything go along with their last child.
        if node in node.parent.children.values():
            cache._evict_device_leaf(node.id, tracker)
    return True


def _child_at(core: Any, key: Any, first: int) -> Any | None:
    """The node that begins at a token of the key; a node that holds tokens on both sides of it is split."""
    page = core.page_size
    node, at = core.root_node, 0
    while at <= first:
        child = node.children.get(key.child_key_at(at, page)) if at + page <= len(key) else None
        if child is None or at == first:
            return child
        if at + len(child.key) > first:
            child, action = core._split_node(child.key, child, first - at)
            if action is not None:
                return None
        node, at = child, at + len(child.key)
    return None


def _held(node: Any) -> bool:
    return (
        node.backuped
        or node.write_through_pending_id is not None
        or node.load_back_pending_id is not None
        or any(one.lock_ref > 0 or one.host_lock_ref > 0 for one in node.component_data)
    )
