"""Columns over nodes: one row per attribute, one place per node slot.

A node keeps its slot for as long as it exists. Columns are reserved as address space at full size and only the touched
pages cost memory, so they never move: the native module keeps raw pointers, and numpy sees the same memory. Only
`cluster.Cluster` writes here; plugins read (their array forms get the table as `nodes`).
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ksched import _core
from ksched.errors import CacheError
from ksched.model.node import Taint

MAX_NODES = 1 << 20
"""Slots that are reserved by default; a slot that is never used costs no memory."""

NO_VALUE = -1
"""The id of "this node has no such label" in a label column."""

CPU, MEMORY, EPHEMERAL_STORAGE, NONZERO_CPU, NONZERO_MEMORY = range(5)
"""Rows that always exist. The non-zero rows count 100 m and 200 MiB for containers that ask for nothing, against the
same allocatable amounts."""

_MAP_NORESERVE = 0x4000
"""Linux' flag for address space without a claim on memory; Python's mmap names it only from 3.13 on."""

Amounts = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Flags = npt.NDArray[np.uint8]


def column(dtype: npt.DTypeLike, length: int) -> npt.NDArray[Any]:
    """A zeroed array of `length` whose pages cost nothing until they are written."""
    size = np.dtype(dtype).itemsize * length
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE)
    return np.frombuffer(pages, dtype=dtype)


class Interned:
    """Values numbered in the order in which they are first seen."""

    __slots__ = ("ids", "values")

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.ids: dict[Any, int] = {}

    def id(self, value: Any) -> int:
        """The number of `value`, a new one if need be."""
        number = self.ids.get(value)
        if number is None:
            number = self.ids[value] = len(self.values)
            self.values.append(value)
        return number

    def __len__(self) -> int:
        return len(self.values)


class LabelColumn:
    """The values of one label key: an id per slot, `NO_VALUE` where a node lacks the key."""

    __slots__ = ("key", "slots", "values")

    def __init__(self, key: str, length: int) -> None:
        self.key = key
        self.values = Interned()
        self.slots: Codes = column(np.int32, length)

    def set(self, slot: int, value: str | None) -> None:
        """Note the value that a node's label has; `None` where it has none."""
        self.slots[slot] = NO_VALUE if value is None else self.values.id(value)

    def gather(self, answer: Callable[[str | None], bool], size: int) -> npt.NDArray[np.bool_]:
        """`answer` for every slot, asked once for each distinct value."""
        answers = np.array([*map(answer, self.values.values), answer(None)], dtype=np.bool_)
        gathered: npt.NDArray[np.bool_] = answers[self.slots[:size]]  # NO_VALUE is -1: the last answer
        return gathered


class Table:
    """All columns. `size` is one more than the highest slot in use; `present` says which slots hold a node."""

    def __init__(self, max_nodes: int = MAX_NODES) -> None:
        self.max_nodes = max_nodes
        self.size = 0
        self.count = 0
        self.names: list[str] = []
        self.present: Flags = column(np.uint8, max_nodes)
        self.allowed_pods: Amounts = column(np.int64, max_nodes)
        self.pod_count: Amounts = column(np.int64, max_nodes)
        self.unschedulable: Flags = column(np.uint8, max_nodes)
        self.unschedulable_count = 0
        self.taint_set: Codes = column(np.int32, max_nodes)
        self.taint_sets = Interned()
        self.taint_sets.id(())
        self.features: Flags = column(np.uint8, max_nodes)
        self.refreshed: Amounts = column(np.int64, max_nodes)
        self.resources = _core.Resources(self.allowed_pods, self.pod_count)
        self.rows: dict[str, int] = {}
        self._room: list[Amounts] = []
        self._used: list[Amounts] = []
        for name in ("cpu", "memory", "ephemeral-storage"):
            self.rows[name] = self._add_row(column(np.int64, max_nodes))
        for shared in (CPU, MEMORY):
            self._add_row(self._room[shared])
        self._labels: dict[str, LabelColumn] = {}
        self._label_source: Callable[[int], dict[str, str]] = lambda slot: {}
        self._free: list[int] = []
        self.alive: Flags = column(np.uint8, max_nodes)
        self.verdicts: Codes = column(np.int32, max_nodes)
        self.sieve = _core.Sieve(self.alive, self.verdicts)

    # -- what array forms of plugins read

    def allocatable(self, resource: str) -> Amounts:
        """Allocatable amounts per slot: milli-CPU, or whole units; 0 where a node lacks the resource."""
        return self._room[self.row(resource)][: self.size]

    def requested(self, resource: str) -> Amounts:
        """What the pods on each node request, in the units of `allocatable`."""
        return self._used[self.row(resource)][: self.size]

    def label(self, key: str) -> LabelColumn:
        """The column of a label key; built the first time that the key is asked for, kept up to date afterwards."""
        found = self._labels.get(key)
        if found is None:
            found = self._labels[key] = LabelColumn(key, self.max_nodes)
            for slot in range(self.size):
                found.set(slot, self._label_source(slot).get(key) if self.present[slot] else None)
        return found

    def slots(self) -> Iterator[int]:
        """Every slot that holds a node, in slot order."""
        return (int(slot) for slot in np.flatnonzero(self.present[: self.size]))

    # -- rows

    def row(self, resource: str) -> int:
        """The row of a resource, made the first time that a node or a pod names it."""
        number = self.rows.get(resource)
        if number is None:
            number = self.rows[resource] = self._add_row(column(np.int64, self.max_nodes))
        return number

    def room(self, row: int) -> Amounts:
        """The whole allocatable column of a row."""
        return self._room[row]

    def used(self, row: int) -> Amounts:
        """The whole requested column of a row."""
        return self._used[row]

    def _add_row(self, room: Amounts) -> int:
        used = column(np.int64, self.max_nodes)
        self._room.append(room)
        self._used.append(used)
        return int(self.resources.add_row(room, used))

    # -- slots, for the cluster

    def read_labels_from(self, source: Callable[[int], dict[str, str]]) -> None:
        """Where a label column that is built late finds the labels of a slot."""
        self._label_source = source

    def take_slot(self, name: str) -> int:
        """A free slot for a node, all its columns zero."""
        if self._free:
            slot = self._free.pop()
            self.names[slot] = name
        elif self.size < self.max_nodes:
            slot = self.size
            self.size += 1
            self.names.append(name)
            for labels in self._labels.values():
                labels.set(slot, None)
        else:
            raise CacheError(f"no room for node {name}: the cache was made for {self.max_nodes} nodes")
        self.present[slot] = 1
        self.count += 1
        return slot

    def free_slot(self, slot: int) -> None:
        """Give a slot back; whatever was in its columns is cleared."""
        self.set_unschedulable(slot, False)
        self.set_taints(slot, ())
        self.set_labels(slot, {})
        for room, used in zip(self._room, self._used, strict=True):
            room[slot] = used[slot] = 0
        for attribute in (self.allowed_pods, self.pod_count, self.features, self.refreshed, self.present):
            attribute[slot] = 0
        self.names[slot] = ""
        self.count -= 1
        self._free.append(slot)

    def set_unschedulable(self, slot: int, unschedulable: bool) -> None:
        """Note whether a node is cordoned."""
        self.unschedulable_count += int(unschedulable) - int(self.unschedulable[slot])
        self.unschedulable[slot] = unschedulable

    def set_taints(self, slot: int, taints: tuple[Taint, ...]) -> None:
        """Note a node's taints; nodes with the same list share an id."""
        self.taint_set[slot] = self.taint_sets.id(taints)

    def set_labels(self, slot: int, labels: dict[str, str]) -> None:
        """Bring the label columns that exist up to date for a node."""
        for key, labelled in self._labels.items():
            labelled.set(slot, labels.get(key))

    def set_allocatable(self, slot: int, amounts: dict[str, int], allowed_pods: int) -> None:
        """Note what a node has; a resource that it no longer names becomes 0."""
        for name, row in self.rows.items():
            self._room[row][slot] = amounts.get(name, 0)
        for name, given in amounts.items():
            if name not in self.rows:
                self._room[self.row(name)][slot] = given
        self.allowed_pods[slot] = allowed_pods
