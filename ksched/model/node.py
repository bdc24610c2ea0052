"""Nodes, with the fields that scheduling looks at."""

from __future__ import annotations

from msgspec import Struct, field

from ksched.model.objects import Condition, Int64, KubeStruct, ObjectMeta, ResourceList


class Taint(Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """A mark that keeps pods away which do not tolerate it; `effect` is NoSchedule, PreferNoSchedule or NoExecute."""

    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(KubeStruct):
    """What an operator decided about a node."""

    unschedulable: bool = False
    taints: list[Taint] = []


class ContainerImage(KubeStruct):
    """An image on a node: all its names, and its size in bytes."""

    names: list[str] = []
    size_bytes: Int64 = 0


class NodeStatus(KubeStruct):
    """What a node has and how it is."""

    allocatable: ResourceList = {}
    capacity: ResourceList = {}
    conditions: list[Condition] = []
    images: list[ContainerImage] = []
    declared_features: list[str] = []


class Node(KubeStruct):
    """A node as the API server sent it."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: NodeSpec = field(default_factory=NodeSpec)
    status: NodeStatus = field(default_factory=NodeStatus)

    @property
    def name(self) -> str:
        """The node's name; nodes have no namespace."""
        return self.metadata.name

    @property
    def uid(self) -> str:
        """The node's uid; a node that was deleted and made again has another."""
        return self.metadata.uid

    @property
    def labels(self) -> dict[str, str]:
        """The node's labels."""
        return self.metadata.labels
