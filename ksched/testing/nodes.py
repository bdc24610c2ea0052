"""Nodes in few words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import msgspec

from ksched.model.node import Node
from ksched.model.objects import QuantityText
from ksched.model.quantity import read_quantity
from ksched.testing.objects import ObjectBuilder, resources

_USUAL = {"cpu": "4", "memory": "16Gi", "pods": "110"}


def node(name: str = "node") -> NodeBuilder:
    """A node with 4 CPUs, 16 GiB and room for 110 pods, and the host name label that a kubelet sets.

    >>> node("a").capacity(cpu="8").build().status.allocatable
    {'cpu': '8', 'memory': '16Gi', 'pods': '110'}
    """
    metadata = {"name": name, "uid": f"uid-{name}", "labels": {"kubernetes.io/hostname": name}}
    status = {"capacity": dict(_USUAL), "allocatable": dict(_USUAL)}
    return NodeBuilder({"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {}, "status": status})


class NodeBuilder(ObjectBuilder):
    """A node in the making; see `node`."""

    __slots__ = ()

    def build(self) -> Node:
        """The node as ksched knows it."""
        return msgspec.convert(self._body, Node)

    def capacity(self, amounts: Mapping[str, QuantityText] | None = None, /, **more: QuantityText) -> Self:
        """What the node has, all of it allocatable; resources that are not named stay as they were."""
        has = resources(amounts, more)
        return self._merged("status.capacity", has)._merged("status.allocatable", has)

    def allocatable(self, amounts: Mapping[str, QuantityText] | None = None, /, **more: QuantityText) -> Self:
        """Exactly this is allocatable, nothing else: `allocatable(cpu="1")` leaves no room for any pod."""
        return self.status(allocatable=resources(amounts, more))

    def taint(self, key: str, value: str = "", effect: str = "NoSchedule") -> Self:
        """Keep pods away that do not tolerate this."""
        taint = {"key": key, "effect": effect} | ({"value": value} if value else {})
        return self._appended("spec.taints", taint)

    def unschedulable(self) -> Self:
        """Cordon the node."""
        return self.spec(unschedulable=True)

    def zone(self, zone: str) -> Self:
        """Put the node into a zone."""
        return self.label({"topology.kubernetes.io/zone": zone})

    def image(self, name: str, size: QuantityText, *other_names: str) -> Self:
        """Put an image on the node: `image("nginx:1", "50Mi")`."""
        size_bytes = read_quantity(size).value()
        return self._appended("status.images", {"names": [name, *other_names], "sizeBytes": size_bytes})

    def feature(self, *names: str) -> Self:
        """Let the node declare features."""
        return self._appended("status.declaredFeatures", *names)
