"""NodeUnschedulable: cordoned nodes take no new pods.

The rule looks at the node's field; the taint that a controller adds to a cordoned node is TaintToleration's business.
"""

from __future__ import annotations

from ksched.cache.table import Flags
from ksched.framework import ArrayFilterPlugin, CycleState, FilterPlugin, NodeInfo, PodInfo, Scope, Status, Table
from ksched.model.node import Taint
from ksched.model.selectors import is_tolerated

UNSCHEDULABLE = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
REASON = Status.unresolvable("node(s) were unschedulable")


class NodeUnschedulable(FilterPlugin, ArrayFilterPlugin):
    """Turn down cordoned nodes, unless the pod tolerates the taint that stands for it."""

    name = "NodeUnschedulable"
    scope = Scope.STATIC
    shape_decides = True
    reasons = (REASON,)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Keep a node that is not cordoned, or whose cordon the pod tolerates."""
        return REASON if node.unschedulable and not self._tolerates(pod) else None

    def filter_array(self, state: CycleState, pod: PodInfo, nodes: Table) -> Flags | None:
        """The cordon column itself is the answer."""
        if not nodes.unschedulable_count or self._tolerates(pod):
            return None
        return nodes.unschedulable

    def _tolerates(self, pod: PodInfo) -> bool:
        comparison = self.handle.gates.enabled("TaintTolerationComparisonOperators")
        return is_tolerated(UNSCHEDULABLE, pod.spec.tolerations, comparison)
