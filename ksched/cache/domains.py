"""Counts of pods per topology domain: a column of counts, added up by the value of a label.

Which nodes take part is a `NodeSet`. Both are worked out once and then follow their column: a pod that is placed
changes one domain, and the lowest count is known from how many domains have which. A change of any node's attributes
makes them anew.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ksched import _core
from ksched.cache.table import Codes, Flags, LabelColumn, Table


class NodeSet:
    """Some of the nodes, by their attributes; asked again after nodes have changed. Equal sets should be one object."""

    __slots__ = ("_answer", "_as_of", "_flags")

    def __init__(self, answer: Callable[[], Flags]) -> None:
        """`answer` gives 1 for each slot in the set, over `Table.size` slots; slots without a node are 0."""
        self._answer = answer
        self._as_of = -1
        self._flags: Flags | None = None

    def flags(self, journal: _core.Journal) -> Flags:
        """The set as it is now."""
        if self._flags is None or self._as_of != journal.nodes:
            self._flags, self._as_of = self._answer(), journal.nodes
        return self._flags


class Domains(_core.DomainTally):
    """The counts of one column per value of a label, among some of the nodes.

    `counts` has a place per value of the label, in the order of their ids, and one more for nodes without the label
    (which count as those whose value is empty, where there are such). `number` of the domains have a node, and `having`
    says how many of those have which count.
    """

    __slots__ = ("_journal", "_nodes", "_pods", "_table", "absent", "counts", "label", "number")

    def __init__(self, pods: Codes, label: LabelColumn, nodes: NodeSet, table: Table, journal: _core.Journal) -> None:
        self.label = label
        self._pods = pods
        self._nodes = nodes
        self._table = table
        self._journal = journal
        self._count()

    @property
    def smallest(self) -> int:
        """The lowest count of a domain that has a node; there must be one."""
        return min(self.having)

    def refresh(self) -> None:
        """Count anew if nodes have changed."""
        if self.is_stale:
            self._count()

    def _count(self) -> None:
        included, size, values = self._nodes.flags(self._journal), self._table.size, self.label.values
        self.absent = values.ids.get("", len(values))
        self.counts: Codes = np.zeros(len(values) + 1, dtype=np.int32)
        seen: Flags = np.zeros(len(values) + 1, dtype=np.uint8)
        self.number = _core.count_domains(self.label.slots, self._pods, included, self.counts, seen, self.absent, size)
        found, times = np.unique(self.counts[seen != 0], return_counts=True)
        having = dict(zip(found.tolist(), times.tolist(), strict=True))
        self.follow(self.label.slots, included, self.counts, having, self.absent, size, self._journal)
