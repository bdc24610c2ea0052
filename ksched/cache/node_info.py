"""One node, as the per-node forms of plugins read it.

`NodeInfo` is a view: amounts are read from the table's columns, so nothing is kept twice. `NodeInfo.what_if()` gives a
detached copy to which pods can be added and from which they can be taken, without touching the cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import TYPE_CHECKING

from ksched.cache.table import NONZERO_CPU, NONZERO_MEMORY, Table
from ksched.model.int64 import wrapped
from ksched.model.node import Node, Taint
from ksched.model.ports import HostPort

if TYPE_CHECKING:
    from ksched.cache.cluster import Cluster
    from ksched.cache.shapes import PodInfo

_NO_PORTS: frozenset[HostPort] = frozenset()


class NodeInfo:
    """A node and the pods on it. Amounts are in milli-CPU, bytes or counts."""

    __slots__ = ("_cluster", "node", "pods", "slot", "taints")

    def __init__(self, cluster: Cluster, slot: int, node: Node) -> None:
        self._cluster = cluster
        self.slot = slot
        self.node = node
        self.taints: tuple[Taint, ...] = tuple(node.spec.taints)
        self.pods: dict[str, PodInfo] = {}

    @property
    def table(self) -> Table:
        """The columns that the node is a slot of."""
        return self._cluster.table

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.metadata.name

    @property
    def labels(self) -> dict[str, str]:
        """The node's labels."""
        return self.node.metadata.labels

    @property
    def unschedulable(self) -> bool:
        """Whether the node is cordoned."""
        return self.node.spec.unschedulable

    @property
    def allowed_pods(self) -> int:
        """How many pods the node may hold; 0 where it does not say."""
        return int(self._cluster.table.allowed_pods[self.slot])

    @property
    def pod_count(self) -> int:
        """How many pods are on the node."""
        return len(self.pods)

    @property
    def features(self) -> int:
        """The node's declared features as a bit map, see `model.features`."""
        return int(self._cluster.table.features[self.slot])

    def allocatable(self, resource: str) -> int:
        """What the node has of a resource; 0 where it does not name it."""
        table = self._cluster.table
        row = table.rows.get(resource)
        return 0 if row is None else int(table.room(row)[self.slot])

    def requested(self, resource: str) -> int:
        """What its pods request of a resource."""
        table = self._cluster.table
        row = table.rows.get(resource)
        return 0 if row is None else int(table.used(row)[self.slot])

    @property
    def nonzero_requested(self) -> tuple[int, int]:
        """Milli-CPU and bytes of memory that its pods request, 100 m and 200 MiB counted for a container that names
        none."""
        table = self._cluster.table
        return int(table.used(NONZERO_CPU)[self.slot]), int(table.used(NONZERO_MEMORY)[self.slot])

    @property
    def ports(self) -> Set[HostPort]:
        """The host ports that its pods hold: a set without counts, as upstream."""
        return self._cluster.ports.get(self.slot, _NO_PORTS)

    def image(self, name: str) -> tuple[int, int] | None:
        """(size in bytes, number of nodes that have it) of an image on this node, as last captured; None where it is
        not here."""
        return self._cluster.images.on_node(name, self.slot)

    def count_pods(self, **labels: str | None) -> int:
        """How many of its pods carry all these labels (a label given as None must be absent)."""
        return sum(all(pod.labels.get(key) == value for key, value in labels.items()) for pod in self.pods.values())

    def what_if(self) -> WhatIf:
        """A copy that pods can be added to and taken from."""
        return WhatIf(self)

    def __repr__(self) -> str:
        return f"<NodeInfo {self.name}: {self.pod_count} pods>"


class WhatIf(NodeInfo):
    """A node as it would be with other pods; the cluster does not change."""

    __slots__ = ("_change", "_nonzero", "_ports")

    def __init__(self, of: NodeInfo) -> None:
        super().__init__(of._cluster, of.slot, of.node)
        self.pods = dict(of.pods)
        self._ports = set(of.ports)
        self._change: dict[str, int] = {}
        self._nonzero = of.nonzero_requested

    @property
    def ports(self) -> Set[HostPort]:
        """The host ports that its pods would hold."""
        return self._ports

    def requested(self, resource: str) -> int:
        """What its pods would request of a resource."""
        return wrapped(super().requested(resource) + self._change.get(resource, 0))

    @property
    def nonzero_requested(self) -> tuple[int, int]:
        """As `NodeInfo.nonzero_requested`, with the change."""
        return self._nonzero

    def add(self, pods: Iterable[PodInfo]) -> None:
        """Put pods on the node."""
        for pod in pods:
            self.pods[pod.uid] = pod
            self._ports.update(pod.shape.host_ports)
            self._book(pod, 1)

    def remove(self, pod: PodInfo) -> None:
        """Take a pod off the node; its host ports are free then, even if another pod held one of them too (as upstream:
        a set, no counts)."""
        del self.pods[pod.uid]
        self._ports.difference_update(pod.shape.host_ports)
        self._book(pod, -1)

    def _book(self, pod: PodInfo, sign: int) -> None:
        counted: Mapping[str, int] = pod.shape.counted
        for resource, amount in counted.items():
            self._change[resource] = self._change.get(resource, 0) + sign * amount
        cpu, memory = self._nonzero
        self._nonzero = cpu + sign * pod.shape.nonzero_cpu, memory + sign * pod.shape.nonzero_memory
