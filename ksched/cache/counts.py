"""How many placed pods match a selector, per node, kept up to date as pods come and go.

Whoever asks for a (namespaces, selector) pair gets a column over node slots. Pods are counted by *class*: those of one
namespace with the same labels are matched once. A class knows its columns, so a pod that is placed or taken off costs
what it adds to, however many selectors there are; and it knows its slots, so a new column costs what it counts, however
many pods there are.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Iterator

import numpy as np

from ksched import _core
from ksched.cache.domains import Domains, NodeSet
from ksched.cache.shapes import PodInfo
from ksched.cache.table import Codes, Table, column
from ksched.model.selectors import Selector

MOST_BYTES = 64 << 20
"""Memory that columns may take; the ones that were not asked for the longest go first."""

FEWEST_COLUMNS = 64
"""Columns that are kept whatever they take."""

MOST_DOMAINS = 32
"""Ways in which a column is kept per domain; beyond that they start afresh."""

_BYTES_PER_NODE = 4

Namespaces = frozenset[str] | None
"""Names of namespaces; None for all that there are and will be."""

_Pair = tuple[str, str] | None
"""A label that all pods of a column have; None where there is none such."""


class CountColumn(_core.PodColumn):
    """The number of matching pods per slot, and their `total`. `version` grows with every change; a column that was
    `dropped` changes no more and has to be asked for again."""

    __slots__ = ("domains", "dropped", "live_only", "namespaces", "selector", "slots")

    def __init__(self, namespaces: Namespaces, selector: Selector, live_only: bool, length: int) -> None:
        self.namespaces = namespaces
        self.selector = selector
        self.live_only = live_only
        self.slots: Codes = column(np.int32, length)
        self.domains: dict[tuple[str, NodeSet], Domains] = {}
        self.dropped = False
        self.count_in(self.slots)


class PodClass:
    """Placed pods that no selector tells apart: how many there are on each slot, and the columns that count them."""

    __slots__ = ("columns", "labels", "live", "slots")

    def __init__(self, labels: dict[str, str], live: bool) -> None:
        self.labels = labels
        self.live = live
        self.slots: dict[int, int] = {}
        self.columns: list[CountColumn] = []

    def is_counted_by(self, counts: CountColumn) -> bool:
        """Whether a column, one of this class's namespace, counts these pods."""
        return (self.live or not counts.live_only) and counts.selector.matches(self.labels)


_ClassKey = tuple[bool, tuple[tuple[str, str], ...]]


class PodCounts:
    """All columns of counts, and the classes of the pods that are placed on known nodes."""

    def __init__(self, table: Table, journal: _core.Journal, most_bytes: int = MOST_BYTES) -> None:
        self._table = table
        self._journal = journal
        self._most_bytes = most_bytes
        self._columns: OrderedDict[tuple[Namespaces, Selector, bool], CountColumn] = OrderedDict()
        self._asked: defaultdict[str | None, defaultdict[_Pair, list[CountColumn]]] = defaultdict(
            lambda: defaultdict(list)
        )
        self._classes: defaultdict[str, dict[_ClassKey, PodClass]] = defaultdict(dict)
        self._labelled: defaultdict[tuple[str, _Pair], set[PodClass]] = defaultdict(set)

    def get(self, namespaces: Namespaces, selector: Selector, live_only: bool = False) -> CountColumn:
        """The column that counts the pods in `namespaces` that `selector` matches; without those whose deletion has
        begun if `live_only`. Assumed pods are counted."""
        key = (namespaces, selector, live_only)
        found = self._columns.get(key)
        if found is not None:
            self._columns.move_to_end(key)
            return found
        made = self._columns[key] = CountColumn(namespaces, selector, live_only, self._table.max_nodes)
        for index in self._indexes(made):
            for pair in selector.anchors:
                index[pair].append(made)
        for pods in self._classes_of(made):
            if pods.is_counted_by(made):
                pods.columns.append(made)
                for slot, count in pods.slots.items():
                    made.add(slot, count)
        while len(self._columns) > self._most_columns():
            self._drop(self._columns.popitem(last=False)[1])
        return made

    def domains(self, counts: CountColumn, key: str, nodes: NodeSet) -> Domains:
        """The counts of a column per value of the label `key`, among some nodes; kept up to date until nodes change."""
        found = counts.domains.get((key, nodes))
        if found is not None:
            found.refresh()
            return found
        if len(counts.domains) >= MOST_DOMAINS:
            counts.domains.clear()
        made = Domains(counts.slots, self._table.label(key), nodes, self._table, self._journal)
        counts.domains[key, nodes] = made
        counts.tell(counts.domains.values())
        return made

    def add(self, slot: int, pod: PodInfo) -> None:
        """A pod has been put on a node."""
        classes, key = self._classes[pod.namespace], _class_key(pod)
        pods = classes.get(key)
        if pods is None:
            pods = classes[key] = PodClass(pod.labels, key[0])
            pods.columns = self._counting(pod.namespace, pods)
            for pair in pods.labels.items():
                self._labelled[pod.namespace, pair].add(pods)
        pods.slots[slot] = pods.slots.get(slot, 0) + 1
        for counts in pods.columns:
            counts.add(slot, 1)

    def remove(self, slot: int, pod: PodInfo) -> None:
        """A pod has been taken off its node."""
        classes, key = self._classes[pod.namespace], _class_key(pod)
        pods = classes[key]
        for counts in pods.columns:
            counts.add(slot, -1)
        left = pods.slots[slot] - 1
        if left:
            pods.slots[slot] = left
            return
        del pods.slots[slot]
        if not pods.slots:
            del classes[key]
            if not classes:
                del self._classes[pod.namespace]
            self._unlabel(pod.namespace, pods)

    def replace(self, slot: int, old: PodInfo, new: PodInfo) -> None:
        """A pod has changed where it is."""
        if old.namespace != new.namespace or _class_key(old) != _class_key(new):
            self.remove(slot, old)
            self.add(slot, new)

    def __len__(self) -> int:
        return len(self._columns)

    # -- which columns, which classes

    def _counting(self, namespace: str, pods: PodClass) -> list[CountColumn]:
        """The columns that count a new class: of those that name one of its labels, and those that name none."""
        pairs: list[_Pair] = [None, *pods.labels.items()]
        return [
            counts
            for index in (self._asked.get(namespace), self._asked.get(None))
            if index is not None
            for pair in pairs
            for counts in index.get(pair, ())
            if pods.is_counted_by(counts)
        ]

    def _indexes(self, counts: CountColumn) -> Iterator[defaultdict[_Pair, list[CountColumn]]]:
        for namespace in (None,) if counts.namespaces is None else counts.namespaces:
            yield self._asked[namespace]

    def _classes_of(self, counts: CountColumn) -> Iterator[PodClass]:
        """The classes that a column may count: those that have one of the labels which its selector wants."""
        for namespace in self._classes if counts.namespaces is None else counts.namespaces:
            for pair in counts.selector.anchors:
                if pair is None:
                    yield from self._classes.get(namespace, {}).values()
                else:
                    yield from self._labelled.get((namespace, pair), ())

    def _unlabel(self, namespace: str, pods: PodClass) -> None:
        for pair in pods.labels.items():
            alike = self._labelled[namespace, pair]
            alike.remove(pods)
            if not alike:
                del self._labelled[namespace, pair]

    # -- what is kept

    def _most_columns(self) -> int:
        return max(FEWEST_COLUMNS, self._most_bytes // max(1, _BYTES_PER_NODE * self._table.size))

    def _drop(self, counts: CountColumn) -> None:
        counts.dropped = True
        for namespace in (None,) if counts.namespaces is None else counts.namespaces:
            index = self._asked[namespace]
            for pair in counts.selector.anchors:
                index[pair].remove(counts)
                if not index[pair]:
                    del index[pair]
            if not index:
                del self._asked[namespace]
        for pods in self._classes_of(counts):
            if counts in pods.columns:
                pods.columns.remove(counts)


def _class_key(pod: PodInfo) -> _ClassKey:
    return not pod.pod.is_terminating, tuple(pod.labels.items())
