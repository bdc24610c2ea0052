"""Made-up clusters and pods, for the demo, for tests and for benchmarks: the same for the same seed.

`nodes.py` has the nodes, in pools as people run them; `pods.py` the pods, sized so that all of them fit whatever a
scheduler does, except those that are named as not fitting; `room.py` the argument why, as a check; `trace.py` reads a
cluster that was recorded.
"""

from ksched.sandbox.clusters.nodes import POOL_LABEL, cluster, node
from ksched.sandbox.clusters.pods import Workload, workload
from ksched.sandbox.clusters.room import doubts
from ksched.sandbox.clusters.trace import alibaba

__all__ = ["POOL_LABEL", "Workload", "alibaba", "cluster", "doubts", "node", "workload"]
