"""What is true of the cluster, and the one door through which it changes.

Nodes and placed pods come from the API server in any order and any number of times: `put_node` and `put_pod` take the
newest version and work out what changed. A pod that this scheduler has just placed is *assumed*: its room is held on
the node until the API server shows the pod there (`put_pod` confirms), or the binding fails (`forget`).

Pods whose node is not known (not yet, or no longer) are kept aside and put on the node when it comes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ksched import _core
from ksched.cache.counts import PodCounts
from ksched.cache.images import Images
from ksched.cache.node_info import NodeInfo
from ksched.cache.selector_sources import SelectorSource, SelectorSources
from ksched.cache.shapes import PodInfo, Shapes
from ksched.cache.table import MAX_NODES, Table
from ksched.cache.terms import CarriedTerms
from ksched.errors import CacheError, QuantityError
from ksched.model.features import node_features
from ksched.model.node import Node
from ksched.model.objects import DeviceClass, Namespace
from ksched.model.pod import Pod
from ksched.model.ports import HostPort
from ksched.model.quantity import millis, units
from ksched.model.requests import RequestRules
from ksched.model.resource_names import is_scalar

JOURNAL_SIZE = 1 << 16
"""Changes that are remembered; who has not looked for longer starts afresh."""

PODS, TOUCHED, NODE = range(3)
"""Kinds of changes in the journal: what a node's pods ask for; anything else about its pods; its own attributes."""


class Cluster:
    """Nodes, the pods on them, and what is assumed."""

    def __init__(self, *, rules: RequestRules | None = None, max_nodes: int = MAX_NODES) -> None:
        self.table = Table(max_nodes)
        self.table.read_labels_from(self._labels_of)
        self.images = Images(self.table)
        self.journal = _core.Journal(JOURNAL_SIZE)
        self.counts = PodCounts(self.table, self.journal)
        self.shapes = Shapes(rules or RequestRules(), self.table)
        self.device_classes: dict[str, DeviceClass] = {}
        self.selector_sources = SelectorSources()
        self.namespaces: dict[str, dict[str, str]] = {}
        """The labels of every namespace."""
        self.terms = CarriedTerms(self.table, self.journal, self.namespaces)
        self.namespace_version = 0
        """Grows whenever a namespace comes, changes its labels or goes."""
        self.ports: dict[int, set[HostPort]] = {}
        """The host ports held on each slot; slots without any are not in it."""
        self._nodes: dict[str, NodeInfo] = {}
        self._by_slot: list[NodeInfo | None] = []
        self._pods: dict[str, PodInfo] = {}
        self._assumed: set[str] = set()
        self._waiting_for_node: dict[str, dict[str, PodInfo]] = {}
        self.class_version = 0
        """Grows whenever a device class comes, changes or goes."""
        self._refresh = 1
        self._changed: set[int] = set()

    # -- reading

    def node(self, name: str) -> NodeInfo | None:
        """A node by name."""
        return self._nodes.get(name)

    def at(self, slot: int) -> NodeInfo:
        """The node in a slot of the table."""
        info = self._by_slot[slot]
        if info is None:
            raise CacheError(f"slot {slot} holds no node")
        return info

    def nodes(self) -> Iterator[NodeInfo]:
        """Every node, in the order of arrival."""
        return iter(self._nodes.values())

    @property
    def node_count(self) -> int:
        """How many nodes there are."""
        return len(self._nodes)

    @property
    def pod_count(self) -> int:
        """How many pods are placed, assumed ones included."""
        return len(self._pods)

    @property
    def assumed_count(self) -> int:
        """How many pods are assumed and not yet confirmed."""
        return len(self._assumed)

    def pod(self, uid: str) -> PodInfo | None:
        """A placed pod."""
        return self._pods.get(uid)

    def is_assumed(self, uid: str) -> bool:
        """Whether the pod is assumed on a node and the API server has not shown it there yet."""
        return uid in self._assumed

    # -- nodes

    def put_node(self, node: Node) -> Node | None:
        """Take a node as it is now, and return it as it was, or None if it is new. A node that came back with another
        uid is the same node to scheduling."""
        info = self._nodes.get(node.name)
        if info is None:
            self._add_node(node)
            return None
        old = info.node
        if _describes_the_same(old, node):
            info.node = node
            self._touch(info.slot, TOUCHED)
        else:
            self._describe(info, node)
        return old

    def remove_node(self, name: str) -> Node | None:
        """Take a node away and return it; None if it was not there. The pods on it wait for the node to come back, or
        for their own end."""
        info = self._nodes.pop(name, None)
        if info is None:
            return None
        for pod in info.pods.values():
            self.counts.remove(info.slot, pod)
            self.terms.remove(info.slot, pod)
        if info.pods:
            self._waiting_for_node[name] = info.pods
        self.ports.pop(info.slot, None)
        self.images.remove(info.slot, self._refresh)
        self._by_slot[info.slot] = None
        self._changed.discard(info.slot)
        self.table.free_slot(info.slot)
        self.journal.note(info.slot, NODE)
        return info.node

    # -- pods

    def put_pod(self, pod: Pod) -> Pod | None:
        """Take a pod that is on a node as it is now, and return it as it was placed before, or None if it was not.
        Confirms an assumed pod.

        Raises CacheError for a pod without a node, QuantityError for one whose requests cannot be read.
        """
        if not pod.node_name:
            raise CacheError(f"pod {pod.key} is on no node")
        if pod.is_finished:
            return self.remove_pod(pod.uid)
        info = self.shapes.kept(self.shapes.info(pod))
        old = self._pods.get(pod.uid)
        self._assumed.discard(pod.uid)
        if old is None:
            self._place(info)
            return None
        if old.pod.node_name == pod.node_name and old.shape is info.shape:
            self._replace(old, info)
        else:
            self._take_off(old)
            self._place(info)
        return old.pod

    def remove_pod(self, uid: str) -> Pod | None:
        """Take a pod off its node and return it; None if it was not placed."""
        info = self._pods.get(uid)
        if info is None:
            return None
        self._assumed.discard(uid)
        self._take_off(info)
        return info.pod

    def assume(self, pod: PodInfo, node_name: str) -> PodInfo:
        """Hold the pod's room on a node until the API server confirms it or `forget` gives it up; returns the pod as it
        is now, placed."""
        if pod.uid in self._pods:
            raise CacheError(f"pod {pod.uid}({pod.key}) is in the cache, so can't be assumed")
        if node_name not in self._nodes:
            raise CacheError(f"pod {pod.key} cannot be assumed on {node_name}: there is no such node")
        placed = pod.on(node_name)
        self._place(placed)
        self._assumed.add(pod.uid)
        return placed

    def forget(self, uid: str) -> None:
        """Give up an assumed pod and free its room. A pod that is not in the cache is no error; one that the API server
        has confirmed is."""
        info = self._pods.get(uid)
        if info is None:
            return
        if uid not in self._assumed:
            raise CacheError(f"pod {uid}({info.key}) wasn't assumed so cannot be forgotten")
        self._assumed.discard(uid)
        self._take_off(info)

    # -- the rest of the cluster

    def put_device_class(self, device_class: DeviceClass) -> None:
        """Note a device class: extended resources that map to one are allocated by DynamicResources."""
        self.device_classes[device_class.metadata.name] = device_class
        self.class_version += 1

    def remove_device_class(self, name: str) -> None:
        """Drop a device class."""
        if self.device_classes.pop(name, None) is not None:
            self.class_version += 1

    def put_namespace(self, namespace: Namespace) -> None:
        """Note a namespace and its labels, which pod affinity selects by."""
        name, labels = namespace.metadata.name, namespace.metadata.labels
        if self.namespaces.get(name) != labels:
            self.namespaces[name] = labels
            self.namespace_version += 1

    def remove_namespace(self, name: str) -> None:
        """Drop a namespace."""
        if self.namespaces.pop(name, None) is not None:
            self.namespace_version += 1

    def put_selector_source(self, source: SelectorSource) -> None:
        """Note a service, replication controller, replica set or stateful set, whose pods are spread by default."""
        self.selector_sources.put(source)

    def remove_selector_source(self, kind: type[SelectorSource], key: str) -> None:
        """Drop the one that is called `key` ("namespace/name")."""
        self.selector_sources.remove(kind, key)

    def is_device_resource(self, resource: str) -> bool:
        """Whether an extended resource stands for devices of some class (KEP-5004), by the class's field or by the
        implicit name of a class."""
        if not self.device_classes:
            return False
        prefix, _, name = resource.partition("/")
        if prefix == "deviceclass.resource.kubernetes.io" and name in self.device_classes:
            return True
        return any(found.spec.extended_resource_name == resource for found in self.device_classes.values())

    def begin_cycle(self) -> None:
        """Refresh what is captured per node at the start of a cycle (upstream's snapshot): the image counts of nodes
        that changed since the last."""
        if self._changed:
            changed = np.fromiter(self._changed, dtype=np.int64, count=len(self._changed))
            self.table.refreshed[changed] = self._refresh
            self._changed.clear()
            self._refresh += 1

    # -- how changes are applied

    def _add_node(self, node: Node) -> None:
        amounts, allowed_pods = _allocatable_of(node)
        slot = self.table.take_slot(node.name)
        info = NodeInfo(self, slot, node)
        self._nodes[node.name] = info
        if slot == len(self._by_slot):
            self._by_slot.append(info)
        else:
            self._by_slot[slot] = info
        self._apply(info, node, amounts, allowed_pods)
        for pod in self._waiting_for_node.pop(node.name, {}).values():
            self._put_on(info, pod)

    def _describe(self, info: NodeInfo, node: Node) -> None:
        amounts, allowed_pods = _allocatable_of(node)
        self._apply(info, node, amounts, allowed_pods)

    def _apply(self, info: NodeInfo, node: Node, amounts: dict[str, int], allowed_pods: int) -> None:
        info.node = node
        info.taints = tuple(node.spec.taints)
        table, slot = self.table, info.slot
        table.set_unschedulable(slot, node.spec.unschedulable)
        table.set_taints(slot, info.taints)
        table.set_labels(slot, node.labels)
        table.set_allocatable(slot, amounts, allowed_pods)
        table.features[slot] = node_features(node.status.declared_features)
        self.images.put(slot, node, self._refresh)
        self._touch(slot, NODE)

    def _touch(self, slot: int, kind: int) -> None:
        """Note a change of a node for whoever keeps results, and for the refresh at the next cycle."""
        self._changed.add(slot)
        self.journal.note(slot, kind)

    def _place(self, pod: PodInfo) -> None:
        self._pods[pod.uid] = pod
        node = self._nodes.get(pod.pod.node_name)
        if node is None:
            self._waiting_for_node.setdefault(pod.pod.node_name, {})[pod.uid] = pod
        else:
            self._put_on(node, pod)

    def _put_on(self, node: NodeInfo, pod: PodInfo) -> None:
        node.pods[pod.uid] = pod
        if pod.shape.host_ports:
            self.ports.setdefault(node.slot, set()).update(pod.shape.host_ports)
        self.table.resources.book(node.slot, pod.shape.rows, pod.shape.amounts, 1)
        self.counts.add(node.slot, pod)
        self.terms.add(node.slot, pod)
        self._touch(node.slot, PODS)

    def _replace(self, old: PodInfo, new: PodInfo) -> None:
        """The same pod on the same node, asking for the same: only what it looks like changes."""
        self._pods[new.uid] = new
        node = self._nodes.get(new.pod.node_name)
        if node is not None:
            node.pods[new.uid] = new
            self.counts.replace(node.slot, old, new)
            self.terms.replace(node.slot, old, new)
            self._touch(node.slot, TOUCHED)
        else:
            self._waiting_for_node[new.pod.node_name][new.uid] = new

    def _take_off(self, pod: PodInfo) -> None:
        del self._pods[pod.uid]
        name = pod.pod.node_name
        node = self._nodes.get(name)
        if node is None:
            waiting = self._waiting_for_node[name]
            del waiting[pod.uid]
            if not waiting:
                del self._waiting_for_node[name]
            return
        del node.pods[pod.uid]
        self._free_ports(node.slot, pod)
        self.table.resources.book(node.slot, pod.shape.rows, pod.shape.amounts, -1)
        self.counts.remove(node.slot, pod)
        self.terms.remove(node.slot, pod)
        self._touch(node.slot, PODS)

    def _free_ports(self, slot: int, pod: PodInfo) -> None:
        held = self.ports.get(slot)
        if held is not None:
            held.difference_update(pod.shape.host_ports)
            if not held:
                del self.ports[slot]

    def _labels_of(self, slot: int) -> dict[str, str]:
        return self.at(slot).labels


def _describes_the_same(old: Node, new: Node) -> bool:
    """Whether nothing that scheduling looks at differs; most node updates are heartbeats."""
    return (
        old.spec == new.spec
        and old.metadata.labels == new.metadata.labels
        and old.status.allocatable == new.status.allocatable
        and old.status.images == new.status.images
        and old.status.declared_features == new.status.declared_features
    )


def _allocatable_of(node: Node) -> tuple[dict[str, int], int]:
    """What a node has, in the table's units, and how many pods it may hold. Raises QuantityError naming the node and
    the resource."""
    amounts: dict[str, int] = {}
    for name, written in node.status.allocatable.items():
        try:
            amounts[name] = millis(written) if name == "cpu" else units(written)
        except QuantityError as error:
            raise QuantityError(f"node {node.name}: status.allocatable[{name}]: {error}") from error
    allowed_pods = amounts.pop("pods", 0)
    return {name: amount for name, amount in amounts.items() if name in _COUNTED or is_scalar(name)}, allowed_pods


_COUNTED = ("cpu", "memory", "ephemeral-storage")
