"""A crowded bucket of a Java HashMap: a red-black tree whose nodes also form the list that an iterator sees.

A bucket becomes a tree when it has more than eight entries and the table at least 64 buckets. A new node enters the
list behind its tree parent, and the root always moves to the front, so the list is not in insertion order
(`HashMap.TreeNode`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

UNTREEIFY_COUNT = 6  # a part with so few entries becomes a list in a split


class _Node:
    __slots__ = ("hash", "is_red", "key", "left", "next", "number", "parent", "prev", "right")

    def __init__(self, number: int, java_hash: int, key: int) -> None:
        self.number = number
        self.hash = java_hash
        self.key = key
        self.parent: _Node | None = None
        self.left: _Node | None = None
        self.right: _Node | None = None
        self.prev: _Node | None = None
        self.next: _Node | None = None
        self.is_red = False


class TreeBin:
    """The tree of entries (number, signed hash, key), built in the order of the list before."""

    __slots__ = ("_first", "_root")

    def __init__(self, entries: Sequence[tuple[int, int, int]]) -> None:
        nodes = [_Node(*entry) for entry in entries]
        for node, follower in pairwise(nodes):
            node.next, follower.prev = follower, node
        self._first = nodes[0]
        self._root = nodes[0]
        for node in nodes[1:]:
            self._attach(node)
        self._move_root_to_front()

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        """Iterate over the entries in list order."""
        node: _Node | None = self._first
        while node is not None:
            yield node.number, node.hash, node.key
            node = node.next

    def put(self, number: int, java_hash: int, key: int) -> None:
        """Add an entry whose key is new (`putTreeVal`)."""
        node = _Node(number, java_hash, key)
        parent = self._attach(node)
        node.prev, node.next = parent, parent.next
        if parent.next is not None:
            parent.next.prev = node
        parent.next = node
        self._move_root_to_front()

    def _attach(self, node: _Node) -> _Node:
        """Insert the node into the tree; return its parent before the tree was balanced."""
        place: _Node | None = self._root
        parent = self._root
        while place is not None:
            parent = place
            place = place.left if (node.hash, node.key) < (place.hash, place.key) else place.right
        node.parent = parent
        if (node.hash, node.key) < (parent.hash, parent.key):
            parent.left = node
        else:
            parent.right = node
        self._balance(node)
        return parent

    def _move_root_to_front(self) -> None:
        # as `moveRootToFront`: the rest of the list keeps its order
        root, first = self._root, self._first
        if root is first:
            return
        if root.next is not None:
            root.next.prev = root.prev
        if root.prev is not None:
            root.prev.next = root.next
        first.prev, root.next, root.prev = root, first, None
        self._first = root

    def _balance(self, node: _Node) -> None:
        """Rebalance the red-black tree after `node` was attached (`balanceInsertion`)."""
        node.is_red = True
        while True:
            parent = node.parent
            if parent is None:
                node.is_red = False
                return
            grandparent = parent.parent
            if not parent.is_red or grandparent is None:
                return
            is_left = parent is grandparent.left
            uncle = grandparent.right if is_left else grandparent.left
            if uncle is not None and uncle.is_red:
                uncle.is_red = parent.is_red = False
                grandparent.is_red = True
                node = grandparent
                continue
            if node is (parent.right if is_left else parent.left):
                self._rotate(parent, to_left=is_left)
                node, parent = parent, node
            parent.is_red = False
            grandparent.is_red = True
            self._rotate(grandparent, to_left=not is_left)

    def _rotate(self, node: _Node, *, to_left: bool) -> None:
        """Replace `node` by its child, and put `node` below it."""
        child = node.right if to_left else node.left
        if child is None:
            raise AssertionError("a rotation needs the child that comes up")
        moved = child.left if to_left else child.right
        if to_left:
            node.right, child.left = moved, node
        else:
            node.left, child.right = moved, node
        if moved is not None:
            moved.parent = node
        parent = node.parent
        child.parent, node.parent = parent, child
        if parent is None:
            self._root = child
            child.is_red = False
        elif parent.left is node:
            parent.left = child
        else:
            parent.right = child
