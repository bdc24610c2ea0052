"""A cluster of a few nodes and pods, and what a plugin needs to live in it, without a scheduler."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ksched.cache.cluster import Cluster
from ksched.cache.shapes import PodInfo
from ksched.config.gates import FeatureGates
from ksched.model.node import Node
from ksched.model.pod import Pod
from ksched.model.requests import RequestRules
from ksched.testing.nodes import NodeBuilder
from ksched.testing.pods import PodBuilder

SMALL = 1 << 12
"""Slots of a test's cluster: columns of a real one's size would be set up for every test anew."""


def cluster(
    nodes: Iterable[NodeBuilder | Node],
    pods: Iterable[PodBuilder | Pod] = (),
    *,
    rules: RequestRules | None = None,
    max_nodes: int = SMALL,
) -> Cluster:
    """A cluster with these nodes and, on them, these pods; each pod must say which node it is on.

    >>> from ksched.testing import node, pod
    >>> here = cluster([node("a"), node("b")], [pod("web").request(cpu="500m").on("b")])
    >>> here.node("b").requested("cpu")
    500
    """
    made = Cluster(rules=rules, max_nodes=max_nodes)
    for one in nodes:
        made.put_node(one.build() if isinstance(one, NodeBuilder) else one)
    for each in pods:
        made.put_pod(each.build() if isinstance(each, PodBuilder) else each)
    return made


@dataclass
class RecordingBinder:
    """A binder that writes nothing and remembers who was bound where."""

    bound: list[tuple[str, str]] = field(default_factory=list)

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        """Note the pod's key and the node."""
        self.bound.append((pod.key, node_name))


@dataclass
class _Handle:
    cluster: Cluster
    gates: FeatureGates
    binder: RecordingBinder


def handle(of: Cluster, gates: FeatureGates | None = None) -> _Handle:
    """What a scheduler would lend to its plugins: `MyPlugin(MyPlugin.Args(), handle(cluster([...])))`."""
    return _Handle(of, gates or FeatureGates(), RecordingBinder())
