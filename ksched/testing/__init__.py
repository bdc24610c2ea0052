"""Objects for tests, public: pods, nodes and clusters in few words, and a check that a plugin's two forms agree.

Builders read like the object they make. Each call gives a new builder, so a common start can be shared:

    >>> from ksched.testing import cluster, node, pod
    >>> web = pod("web").request(cpu="500m", memory="1Gi").label(app="web")
    >>> urgent = web.priority(1000).tolerate("gpu")
    >>> urgent.build().priority, web.build().priority
    (1000, 0)
    >>> gpu = node("gpu-1").capacity({"example.com/gpu": 8}, cpu="16").taint("gpu").label(disk="ssd")
    >>> gpu.build().status.allocatable["example.com/gpu"]
    8
    >>> here = cluster([gpu, node("plain")], [web.on("plain")])
    >>> here.node("plain").pod_count
    1

`build` gives ksched's own objects, `to_dict` Kubernetes' JSON of the same thing, for an API server:

    >>> pod("web").node_selector(disk="ssd").to_dict()["spec"]["nodeSelector"]
    {'disk': 'ssd'}

A plugin that has a per-node form and an array form is checked with `assert_forms_agree(plugin, cluster, pods)`, best
on many random clusters.
"""

from ksched.testing.clusters import RecordingBinder, cluster, handle
from ksched.testing.forms import assert_forms_agree
from ksched.testing.nodes import NodeBuilder, node
from ksched.testing.pods import PodBuilder, pod

__all__ = [
    "NodeBuilder",
    "PodBuilder",
    "RecordingBinder",
    "assert_forms_agree",
    "cluster",
    "handle",
    "node",
    "pod",
]
