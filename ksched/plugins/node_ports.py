"""NodePorts: two pods cannot have the same host port on one node.

A node's ports are a set, as upstream: when one of two pods that hold the same port goes, the port counts as free.
"""

from __future__ import annotations

import numpy as np

from ksched.cache.table import Flags
from ksched.framework import (
    ArrayFilterPlugin,
    CycleState,
    FilterPlugin,
    NodeInfo,
    PodInfo,
    PreFilterPlugin,
    Scope,
    Status,
    Table,
)
from ksched.model.ports import conflicts

REASON = Status.unschedulable("node(s) didn't have free ports for the requested pod ports")


class NodePorts(PreFilterPlugin, FilterPlugin, ArrayFilterPlugin):
    """Turn down nodes on which a host port that the pod wants is taken."""

    name = "NodePorts"
    scope = Scope.NODE
    shape_decides = True
    reasons = (REASON,)

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: Table) -> Status | None:
        """Skip for a pod without host ports."""
        return None if pod.shape.host_ports else Status.skip()

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Keep a node on which all wanted ports are free."""
        return REASON if any(conflicts(wanted, node.ports) for wanted in pod.shape.host_ports) else None

    def filter_array(self, state: CycleState, pod: PodInfo, nodes: Table) -> Flags | None:
        """Only nodes that have pods with host ports are looked at."""
        codes = np.zeros(nodes.size, dtype=np.uint8)
        for slot, taken in self.handle.cluster.ports.items():
            codes[slot] = any(conflicts(wanted, taken) for wanted in pod.shape.host_ports)
        return codes
