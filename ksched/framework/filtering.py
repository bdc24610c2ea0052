"""Filtering: which nodes are left for a pod, and why the others are not.

A pass over all nodes works on the table's `alive` and `verdicts` columns, one call per plugin. What a verdict says in
words is worked out only when somebody asks. A pod that names its nodes, as a DaemonSet's do, has only those looked at.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ksched import _core
from ksched.cache.cluster import Cluster
from ksched.cache.node_info import NodeInfo
from ksched.cache.shapes import PodInfo
from ksched.cache.table import Codes, Flags
from ksched.framework.faults import called
from ksched.framework.plugin import ArrayFilterPlugin, FilterPlugin
from ksched.framework.state import CycleState
from ksched.framework.status import Code, Status

_CODE_MASK = (1 << _core.CODE_BITS) - 1
_SPECIAL = 255
"""The plugin number of verdicts that no array form gave: those of nodes that were looked at one by one."""


class PreFiltered:
    """How PreFilter went: a status that ends the cycle, or the nodes it narrowed the search to (None: all)."""

    __slots__ = ("narrowed_by", "nodes", "status")

    def __init__(self, status: Status | None, nodes: frozenset[str] | None, narrowed_by: frozenset[str]) -> None:
        self.status = status
        self.nodes = nodes
        self.narrowed_by = narrowed_by


class Filtered(ABC):
    """How filtering went. `absent` is what the nodes that PreFilter left out are told. Valid until the next cycle."""

    def __init__(self) -> None:
        self.feasible = 0
        self.error: Status | None = None
        self.absent: Status | None = None

    @abstractmethod
    def counts(self) -> tuple[Counter[Status], int]:
        """How many nodes each status turned down, and how many PreFilter left out."""

    @abstractmethod
    def rejected(self) -> Iterator[tuple[NodeInfo, Status]]:
        """Every node that a filter turned down, with the status."""

    @abstractmethod
    def feasible_slots(self) -> list[int]:
        """The slots of the nodes that are left."""

    @abstractmethod
    def mark_feasible(self) -> None:
        """See to it that `alive` in the table marks the nodes that are left, and no others."""

    @abstractmethod
    def evaluated(self) -> int:
        """How many nodes were looked at."""


class FilteredAll(Filtered):
    """Filtering over all nodes, in the table's columns."""

    def __init__(self, cluster: Cluster, state: CycleState, pod: PodInfo, steps: Sequence[FilterStep]) -> None:
        super().__init__()
        self.table = cluster.table
        self.state = state
        self.pod = pod
        self._node: Callable[[int], NodeInfo] = cluster.at
        self._steps = steps
        self._said: list[Status] = []

    def counts(self) -> tuple[Counter[Status], int]:
        """How many nodes each status turned down, and how many PreFilter left out."""
        verdicts = self.table.verdicts[: self.table.size]
        present = self.table.present[: self.table.size] != 0
        numbers, times = np.unique(verdicts[(verdicts != 0) & present], return_counts=True)
        found: Counter[Status] = Counter()
        left_out = 0
        for number, count in zip(numbers.tolist(), times.tolist(), strict=True):
            if number == _core.ABSENT:
                left_out = count
            else:
                found[self._status(number)] += count
        return found, left_out

    def rejected(self) -> Iterator[tuple[NodeInfo, Status]]:
        """Every node that a filter turned down, with the status."""
        for slot in np.flatnonzero(self.table.verdicts[: self.table.size] > 0).tolist():
            yield self._node(slot), self._status(int(self.table.verdicts[slot]))

    def feasible_slots(self) -> list[int]:
        """The slots of the nodes that are left."""
        slots: list[int] = np.flatnonzero(self.table.alive[: self.table.size]).tolist()
        return slots

    def mark_feasible(self) -> None:
        """Nothing to do: the pass has marked them."""

    def evaluated(self) -> int:
        """How many nodes were looked at."""
        return self.feasible + int(np.count_nonzero(self.table.verdicts[: self.table.size] > 0))

    def reject_one(self, node: NodeInfo, status: Status) -> None:
        """Take out a node for a reason that was found looking at it alone."""
        if status not in self._said:
            self._said.append(status)
        self.feasible -= int(self.table.alive[node.slot])
        self.table.alive[node.slot] = 0
        self.table.verdicts[node.slot] = _SPECIAL << _core.CODE_BITS | self._said.index(status) + 1

    def _status(self, verdict: int) -> Status:
        number, code = verdict >> _core.CODE_BITS, verdict & _CODE_MASK
        if number == _SPECIAL:
            return self._said[code - 1]
        step = self._steps[number]
        return step.explain(self.state, self.pod, code).by(step.plugin.name)


class FilteredFew(Filtered):
    """Filtering over the few nodes that PreFilter left, one by one."""

    def __init__(
        self, cluster: Cluster, verdicts: Mapping[str, tuple[NodeInfo, Status | None]], absent: Status
    ) -> None:
        super().__init__()
        self._table = cluster.table
        self._verdicts = verdicts
        self._left_out = cluster.node_count - len(verdicts)
        self.absent = absent
        self.feasible = sum(status is None for _, status in verdicts.values())
        failed = {name: status for name, (_, status) in verdicts.items() if status and not status.is_rejected}
        self.error = failed[min(failed)] if failed else None

    def counts(self) -> tuple[Counter[Status], int]:
        """How many nodes each status turned down, and how many PreFilter left out."""
        return Counter(status for _, status in self._verdicts.values() if status is not None), self._left_out

    def rejected(self) -> Iterator[tuple[NodeInfo, Status]]:
        """Every node that a filter turned down, with the status."""
        return ((node, status) for node, status in self._verdicts.values() if status is not None)

    def feasible_slots(self) -> list[int]:
        """The slots of the nodes that are left."""
        return sorted(node.slot for node, status in self._verdicts.values() if status is None)

    def mark_feasible(self) -> None:
        """See to it that `alive` in the table marks the nodes that are left, and no others."""
        self._table.sieve.start(self._table.present, self._table.size)
        self._table.sieve.keep_only(np.array(self.feasible_slots(), dtype=np.int32), self._table.size)

    def evaluated(self) -> int:
        """How many nodes were looked at."""
        return len(self._verdicts)


class FilterStep:
    """One filter plugin in a profile, in the form that is used."""

    __slots__ = ("_said", "array", "number", "plain", "plugin")

    def __init__(self, number: int, plugin: FilterPlugin | ArrayFilterPlugin, native: bool) -> None:
        self.number = number
        self.plugin = plugin
        self.plain = plugin if isinstance(plugin, FilterPlugin) else None
        self.array = plugin if isinstance(plugin, ArrayFilterPlugin) and (native or self.plain is None) else None
        self._said: list[Status] = []

    def reject(self, cluster: Cluster, filtered: FilteredAll) -> int:
        """Take out the nodes that the plugin turns down; returns how many."""
        return (
            self._reject_by_array(self.array, filtered)
            if self.array is not None
            else self._reject_one_by_one(cluster, filtered)
        )

    def explain(self, state: CycleState, pod: PodInfo, code: int) -> Status:
        """The status behind a code of this step."""
        return self.array.explain(state, pod, code) if self.array is not None else self._said[code - 1]

    def one(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """The plugin's word on one node, which may be a what-if."""
        if self.plain is not None:
            return self._told(called(self.plugin, "Filter", self.plain.filter, state, pod, node))
        assert self.array is not None
        codes = called(self.plugin, "Filter", self.array.filter_array, state, pod, node.table)
        if codes is None or isinstance(codes, Status):
            return self._told(codes)
        code = int(codes[node.slot])
        return self.array.explain(state, pod, code) if code else None

    def _told(self, status: Status | None) -> Status | None:
        """A status as the framework passes it on: a failure with the plugin's name before its words."""
        if status is None or status.is_rejected or status.code == Code.SUCCESS:
            return status
        name = self.plugin.name
        return Status.error(f'running "{name}" filter plugin: {status.message}').by(name)

    def codes(self, filtered: FilteredAll) -> Flags | Codes | Status | None:
        """What the array form says of every slot."""
        assert self.array is not None
        return called(self.plugin, "Filter", self.array.filter_array, filtered.state, filtered.pod, filtered.table)

    def _reject_by_array(self, plugin: ArrayFilterPlugin, filtered: FilteredAll) -> int:
        table = filtered.table
        codes = called(plugin, "Filter", plugin.filter_array, filtered.state, filtered.pod, table)
        if codes is None:
            return 0
        if isinstance(codes, Status):
            filtered.error = self._told(codes)
            return 0
        reject: Callable[[Any, int, int], int] = (
            table.sieve.reject_small if codes.dtype == np.uint8 else table.sieve.reject
        )
        return reject(codes, self.number, table.size)

    def _reject_one_by_one(self, cluster: Cluster, filtered: FilteredAll) -> int:
        self._said.clear()
        codes = np.zeros(filtered.table.size, dtype=np.int32)
        failed: dict[str, Status] = {}
        for slot in filtered.feasible_slots():
            node = cluster.at(slot)
            status = self.one(filtered.state, filtered.pod, node)
            if status is None or status.code == Code.SUCCESS:
                continue
            if not status.is_rejected:
                failed[node.name] = status
            if status not in self._said:
                self._said.append(status)
            codes[slot] = self._said.index(status) + 1
        if failed:
            filtered.error = failed[min(failed)].by(self.plugin.name)
        return int(filtered.table.sieve.reject(codes, self.number, filtered.table.size))
