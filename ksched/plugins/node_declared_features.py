"""NodeDeclaredFeatures: a pod that needs a feature runs only where the node declares it (KEP-5328)."""

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
from ksched.model.features import required_features

REASON = Status.unresolvable("node(s) didn't match Pod's required features")


class NodeDeclaredFeatures(PreFilterPlugin, FilterPlugin, ArrayFilterPlugin):
    """Turn down nodes that lack a feature which the pod's spec needs."""

    name = "NodeDeclaredFeatures"
    scope = Scope.STATIC
    shape_decides = True
    reasons = (REASON,)

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: Table) -> Status | None:
        """Skip for a pod that needs none, and where the gate is off."""
        required = required_features(pod.pod) if self.handle.gates.enabled("NodeDeclaredFeatures") else 0
        if not required:
            return Status.skip()
        state[self] = required
        return None

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Keep a node that declares them all."""
        required: int = state[self]
        return REASON if required & ~node.features else None

    def filter_array(self, state: CycleState, pod: PodInfo, nodes: Table) -> Flags | None:
        """The same on the column of bit maps."""
        required = np.uint8(state[self])
        lacking: Flags = ((nodes.features[: nodes.size] & required) != required).astype(np.uint8)
        return lacking
