"""Every in-tree plugin by name."""

from __future__ import annotations

from collections.abc import Mapping

from ksched.framework import Plugin
from ksched.plugins.absent import ABSENT
from ksched.plugins.default_binder import DefaultBinder
from ksched.plugins.image_locality import ImageLocality
from ksched.plugins.inter_pod_affinity import InterPodAffinity
from ksched.plugins.node_affinity import NodeAffinity
from ksched.plugins.node_declared_features import NodeDeclaredFeatures
from ksched.plugins.node_name import NodeName
from ksched.plugins.node_ports import NodePorts
from ksched.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from ksched.plugins.node_resources_fit import NodeResourcesFit
from ksched.plugins.node_unschedulable import NodeUnschedulable
from ksched.plugins.pod_topology_spread import PodTopologySpread
from ksched.plugins.priority_sort import PrioritySort
from ksched.plugins.scheduling_gates import SchedulingGates
from ksched.plugins.taint_toleration import TaintToleration

IN_TREE: Mapping[str, type[Plugin]] = {
    plugin.name: plugin
    for plugin in (
        SchedulingGates,
        PrioritySort,
        NodeUnschedulable,
        NodeName,
        TaintToleration,
        NodeAffinity,
        NodePorts,
        NodeResourcesFit,
        PodTopologySpread,
        InterPodAffinity,
        NodeResourcesBalancedAllocation,
        ImageLocality,
        DefaultBinder,
        NodeDeclaredFeatures,
        *ABSENT,
    )
}
"""Plugin name: its class. Stand-ins for plugins that ksched does not have yet are among them (`absent`)."""
