"""NodeName: a pod that names its node runs there and nowhere else."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from ksched.cache.table import Flags
from ksched.framework import ArrayFilterPlugin, CycleState, FilterPlugin, NodeInfo, PodInfo, Scope, Status, Table

REASON = Status.unresolvable("node(s) didn't match the requested node name")


class NodeName(FilterPlugin, ArrayFilterPlugin):
    """Turn down every node but the one in `spec.nodeName`."""

    name = "NodeName"
    scope = Scope.STATIC
    reasons = (REASON,)

    def key(self, pod: PodInfo) -> Hashable | None:
        """The node that the pod names."""
        return pod.spec.node_name

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Keep the named node, or all where none is named."""
        wanted = pod.spec.node_name
        return REASON if wanted and wanted != node.name else None

    def filter_array(self, state: CycleState, pod: PodInfo, nodes: Table) -> Flags | None:
        """One slot is kept."""
        if not pod.spec.node_name:
            return None
        codes = np.ones(nodes.size, dtype=np.uint8)
        named = self.handle.cluster.node(pod.spec.node_name)
        if named is not None:
            codes[named.slot] = 0
        return codes
