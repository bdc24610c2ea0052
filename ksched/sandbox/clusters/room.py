"""Why all pods of a workload fit, whatever the order and whatever node a scheduler takes for each.

Let a pod's *share* of a node be the largest part that it takes of any resource of it (of cpu, of memory, of
pods, ...). If a pod does not fit on a node, then the shares of the pods there and its own are more than 1
together. So if the pod fit on none of its n nodes, the shares on them would sum up to more than n minus its own
n shares. `doubts` adds up the shares of all pods that may ever be on these nodes; where they are less than
that, the pod always finds a node.

Nodes differ in size, so shares are multiplied with the node's cpus before they are added. A node where another
pod may hold the same host port counts as full. It is a sufficient condition, not a necessary one: it is for
workloads that are built to pass.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from ksched.errors import SandboxError
from ksched.model.node import Node, Taint
from ksched.model.pod import Pod, Toleration
from ksched.model.quantity import millis, units
from ksched.model.requests import RequestRules, requested, to_fit
from ksched.model.selectors import RequiredNodeAffinity, first_untolerated, required_node_affinity

Json = dict[str, Any]

_HOSTNAME: Final = "kubernetes.io/hostname"


@dataclass(frozen=True, slots=True)
class _NodeType:
    """Nodes that are alike for the pods at hand."""

    allocatable: tuple[tuple[str, int], ...]
    labels: tuple[tuple[str, str], ...]
    taints: tuple[Taint, ...]

    @property
    def weight(self) -> int:
        """How much a whole node of this type counts: its milli-cpus."""
        return dict(self.allocatable).get("cpu", 0)


@dataclass(slots=True)
class _Shape:
    """Pods that are alike, and where they may run: their weighted share of each node type."""

    example: str
    ports: tuple[tuple[str, str, int], ...]
    count: int
    shares: dict[_NodeType, float]


def doubts(nodes: Sequence[Json], pods: Sequence[Json]) -> list[str]:
    """For every shape of pods for which it is not certain that all of them will find a node, why; empty if none."""
    return Ground(nodes).doubts((pod, 1) for pod in pods)


class Ground:
    """Nodes that several workloads are tried on."""

    def __init__(self, nodes: Iterable[Json]) -> None:
        self._types = _node_types(nodes)

    def doubts(self, copies: Iterable[tuple[Json, int]]) -> list[str]:
        """As `doubts`, for pods given as an example and the number of its copies."""
        pods = [(msgspec.convert(pod, Pod), count) for pod, count in copies]
        types = _only(self._types, _keys(pod for pod, _ in pods))
        shapes = _shapes(pods, types)
        return [reason for shape in shapes if (reason := _doubt(shape, shapes, types))]


def _doubt(shape: _Shape, shapes: list[_Shape], types: Counter[_NodeType]) -> str | None:
    if not shape.shares:
        return f"{shape.example}: no node is for it"
    load = -max(shape.shares.values())
    blocked = 0
    for other in shapes:
        common = [share for node_type, share in other.shares.items() if node_type in shape.shares]
        if common:
            load += other.count * max(common)
            if set(other.ports) & set(shape.ports):
                blocked += other.count - (other is shape)
    room = _room(shape, types, blocked)
    if load <= room:
        return None
    return f"{shape.example}: pods that may be on its nodes weigh up to {load:.0f}, certain to suffice is {room:.0f}"


def _room(shape: _Shape, types: Counter[_NodeType], blocked: int) -> float:
    """What may be on the nodes of a shape while one of them surely has room, without the `blocked` largest."""
    room = 0.0
    for node_type in sorted(shape.shares, key=lambda each: shape.shares[each] - each.weight):
        full = min(blocked, types[node_type])
        blocked -= full
        room += (types[node_type] - full) * (node_type.weight - shape.shares[node_type])
    return room


def _keys(pods: Iterable[Pod]) -> set[str]:
    """The label keys that any of the pods looks at."""
    keys: set[str] = set()
    for pod in pods:
        keys.update(pod.spec.node_selector or {})
        affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
        required = affinity.required if affinity else None
        for term in required.node_selector_terms if required else ():
            keys.update(expression.key for expression in term.match_expressions)
    return keys


def _node_types(nodes: Iterable[Json]) -> Counter[_NodeType]:
    types: Counter[_NodeType] = Counter()
    for encoded in nodes:
        node = msgspec.convert(encoded, Node)
        allocatable = {
            name: millis(amount) if name == "cpu" else units(amount) for name, amount in node.status.allocatable.items()
        }
        labels = {key: value for key, value in node.metadata.labels.items() if key != _HOSTNAME}
        types[
            _NodeType(tuple(sorted(allocatable.items())), tuple(sorted(labels.items())), tuple(node.spec.taints))
        ] += 1
    return types


def _only(types: Counter[_NodeType], keys: set[str]) -> Counter[_NodeType]:
    """The node types with only the labels that somebody looks at: fewer, and the same for the pods."""
    if _HOSTNAME in keys:
        raise SandboxError(f"pods that select nodes by {_HOSTNAME} are more than this argument covers")
    merged: Counter[_NodeType] = Counter()
    for node_type, count in types.items():
        labels = tuple((key, value) for key, value in node_type.labels if key in keys)
        merged[_NodeType(node_type.allocatable, labels, node_type.taints)] += count
    return merged


def _shapes(pods: Iterable[tuple[Pod, int]], types: Iterable[_NodeType]) -> list[_Shape]:
    examples: dict[tuple[Any, ...], Pod] = {}
    counts: dict[tuple[Any, ...], int] = defaultdict(int)
    for pod, count in pods:
        ports = tuple(
            (port.host_ip, port.protocol or "TCP", port.host_port)
            for container in pod.spec.containers
            for port in container.ports
            if port.host_port
        )
        needs = requested(pod, to_fit(RequestRules()))
        where = msgspec.json.encode((pod.spec.node_selector, pod.spec.affinity, pod.spec.tolerations))
        key = (tuple(sorted(needs.items())), where, ports)
        examples.setdefault(key, pod)
        counts[key] += count
    shapes: list[_Shape] = []
    for key, pod in examples.items():
        affinity, tolerations = required_node_affinity(pod), pod.spec.tolerations
        shares: dict[_NodeType, float] = {}
        for node_type in types:
            share = _share(dict(key[0]), node_type, affinity, tolerations)
            if share is not None:
                shares[node_type] = share * node_type.weight
        shapes.append(_Shape(pod.key, key[2], counts[key], shares))
    return shapes


def _share(
    needs: dict[str, int], node_type: _NodeType, affinity: RequiredNodeAffinity, tolerations: Sequence[Toleration]
) -> float | None:
    """The largest part of a node that a pod takes, or None where it may not run or would not fit alone."""
    if not affinity.matches(dict(node_type.labels), ""):
        return None
    if first_untolerated(node_type.taints, tolerations, False) is not None:
        return None
    allocatable = dict(node_type.allocatable)
    share = 0.0
    for name, amount in {**needs, "pods": 1}.items():
        has = allocatable.get(name, 0)
        if amount > has:
            return None
        if amount:
            share = max(share, amount / has)
    return share
