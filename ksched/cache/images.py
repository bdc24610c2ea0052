"""Which nodes have which images, as ImageLocality counts them.

Three rules of upstream's cache are observable in scores. An image's size is the one that the first node with it
reported, for as long as any node has it. How many nodes have it is captured per node when that node is refreshed at the
start of a cycle, so a node that nothing happened to keeps an older count. And a node that names an image twice counts
once.

Instead of a captured number per node and image, an image keeps the history of its count by refresh number, and a node
(`Table.refreshed`) the number of its last refresh.
"""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

from ksched.cache.table import Amounts, Table
from ksched.model.node import Node

_LONG_HISTORY = 64
"""Entries from which on the part of a history that no node can still see is dropped."""


class Image:
    """One image name: its size in bytes, the slots that have it, and the history of their number."""

    __slots__ = ("_slots", "counts", "holders", "since", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.holders: set[int] = set()
        self.since: list[int] = []
        self.counts: list[int] = []
        self._slots: Amounts | None = None

    def change(self, slot: int, has: bool, refresh: int) -> None:
        """Note that a slot has, or no longer has, the image; seen by nodes refreshed at `refresh` or later."""
        if has:
            self.holders.add(slot)
        else:
            self.holders.discard(slot)
        self._slots = None
        if self.since and self.since[-1] == refresh:
            self.counts[-1] = len(self.holders)
        else:
            self.since.append(refresh)
            self.counts.append(len(self.holders))

    def slots(self) -> Amounts:
        """The slots that have the image."""
        if self._slots is None:
            self._slots = np.fromiter(self.holders, dtype=np.int64, count=len(self.holders))
        return self._slots

    def count_at(self, refresh: int) -> int:
        """How many nodes had the image, as a node refreshed at `refresh` knows it."""
        return self.counts[max(bisect_right(self.since, refresh) - 1, 0)]

    def counts_at(self, refreshes: Amounts) -> Amounts:
        """`count_at` for many."""
        if len(self.counts) == 1:
            return np.full(len(refreshes), self.counts[0], dtype=np.int64)
        at = np.searchsorted(np.array(self.since, dtype=np.int64), refreshes, side="right") - 1
        return np.array(self.counts, dtype=np.int64)[np.maximum(at, 0)]

    def forget_before(self, refresh: int) -> None:
        """Drop the part of the history that only a node refreshed before `refresh` would need."""
        keep = max(bisect_right(self.since, refresh) - 1, 0)
        del self.since[:keep]
        del self.counts[:keep]


class Images:
    """All images by name."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self.version = 0
        """Grows whenever some node gains or loses an image."""
        self._named: dict[str, Image] = {}
        self._on_slot: dict[int, frozenset[str]] = {}

    def put(self, slot: int, node: Node, refresh: int) -> bool:
        """Note a node's images as they are now; whether anything changed. As upstream, the node's old images go first:
        a sole owner renews an image's size."""
        listed = {name: image.size_bytes for image in node.status.images for name in image.names}
        names = frozenset(listed)
        had = self._on_slot.get(slot, frozenset())
        if had == names and all(
            self._named[name].size == size or len(self._named[name].holders) > 1 for name, size in listed.items()
        ):
            return False
        self.version += 1
        self.remove(slot, refresh)
        for image in node.status.images:
            for name in image.names:
                found = self._named.get(name)
                if found is None:
                    found = self._named[name] = Image(image.size_bytes)
                if slot not in found.holders:
                    found.change(slot, True, refresh)
                    self._shorten(found)
        if names:
            self._on_slot[slot] = names
        return True

    def remove(self, slot: int, refresh: int) -> None:
        """Take away whatever images a slot has."""
        self.version += 1
        for name in self._on_slot.pop(slot, ()):
            image = self._named[name]
            image.change(slot, False, refresh)
            if not image.holders:
                del self._named[name]

    def get(self, name: str) -> Image | None:
        """An image that some node has."""
        return self._named.get(name)

    def on_node(self, name: str, slot: int) -> tuple[int, int] | None:
        """(size, captured number of nodes) of an image that the slot has; None where it has not."""
        image = self._named.get(name)
        if image is None or slot not in image.holders:
            return None
        return image.size, image.count_at(int(self._table.refreshed[slot]))

    def _shorten(self, image: Image) -> None:
        if len(image.since) > _LONG_HISTORY and image.holders:
            image.forget_before(int(self._table.refreshed[image.slots()].min()))
