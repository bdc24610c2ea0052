"""What the scheduler lends to its plugins."""

from __future__ import annotations

from ksched.cache.cluster import Cluster
from ksched.config.gates import FeatureGates
from ksched.engine.binding import Binder
from ksched.engine.waiting import WaitingPods


class Handle:
    """The cluster, the gates in force, the way to bind a pod, and the pods that Permit plugins hold back."""

    def __init__(self, cluster: Cluster, gates: FeatureGates, binder: Binder, waiting_pods: WaitingPods) -> None:
        self.cluster = cluster
        self.gates = gates
        self.binder = binder
        self.waiting_pods = waiting_pods
