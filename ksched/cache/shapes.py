"""What matters of a pod to scheduling, worked out once for all its copies.

Most pods are copies of one another. A `Shape` is interned by the parts of the object that any decision depends on; what
is derived from them (requests, host ports, and what plugins compile, kept in `memo`) belongs to it. A `PodInfo` is one
pod and its shape; plugins get it as `pod`.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from ksched.cache.table import NONZERO_CPU, NONZERO_MEMORY, Amounts, Codes
from ksched.model.objects import Condition, NodeSelectorTerm, ObjectMeta
from ksched.model.pod import Affinity, Pod, PodSpec
from ksched.model.ports import HostPort, host_ports
from ksched.model.requests import RequestRules, ResourceAmounts, counted_requests, fit_requests, negative_quantity
from ksched.model.selectors import NODE_NAME_FIELD

if TYPE_CHECKING:
    from ksched.cache.table import Table

RESIZE_PENDING = "PodResizePending"
"""The one condition of a pod that its requests depend on (KEP-1287)."""

MOST_SHAPES = 10_000
"""Shapes that are kept; the least recently used go first. Pods that are placed keep their own shape alive."""


MOST_LABEL_SETS = 100_000
"""Sets of labels that placed pods share; beyond that sharing starts afresh."""


class Shape:
    """The scheduling-relevant part of a pod. Amounts are in milli-CPU, bytes and counts.

    `asked` is what a node must have free for it, `counted` what it takes from its node (they differ while a pod is
    resized); `rows` and `amounts` are the latter as the table books it.
    """

    __slots__ = ("amounts", "asked", "counted", "host_ports", "memo", "nonzero_cpu", "nonzero_memory", "rows", "spec")

    def __init__(self, pod: Pod, rules: RequestRules, table: Table) -> None:
        self.spec = pod.spec
        self.memo: dict[Any, Any] = {}
        self.host_ports: tuple[HostPort, ...] = tuple(host_ports(pod))
        self.asked: ResourceAmounts = fit_requests(pod, rules)
        counted = counted_requests(pod, rules)
        self.nonzero_cpu = counted.non_zero_milli_cpu
        self.nonzero_memory = counted.non_zero_memory
        self.counted: Mapping[str, int] = by_name(counted.amounts)
        if min(self.counted.values()) < 0:
            # No API server takes such a pod. On a node it would make room, and scores that end every pod's cycle.
            raise negative_quantity(pod)
        booked = [(table.row(name), amount) for name, amount in self.counted.items() if amount]
        booked += [(NONZERO_CPU, self.nonzero_cpu), (NONZERO_MEMORY, self.nonzero_memory)]
        self.rows: Codes = np.array([row for row, _ in booked], dtype=np.int32)
        self.amounts: Amounts = np.array([amount for _, amount in booked], dtype=np.int64)


class PodInfo:
    """A pod and its shape. A `pinned` pod names its nodes, which are not part of its shape."""

    __slots__ = ("pinned", "pod", "shape")

    def __init__(self, pod: Pod, shape: Shape, pinned: bool = False) -> None:
        self.pod = pod
        self.shape = shape
        self.pinned = pinned

    @property
    def spec(self) -> PodSpec:
        """The pod's spec."""
        return self.pod.spec

    @property
    def name(self) -> str:
        """The pod's name."""
        return self.pod.metadata.name

    @property
    def namespace(self) -> str:
        """The pod's namespace."""
        return self.pod.metadata.namespace

    @property
    def uid(self) -> str:
        """The pod's uid."""
        return self.pod.metadata.uid

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return self.pod.key

    @property
    def labels(self) -> dict[str, str]:
        """The pod's labels."""
        return self.pod.metadata.labels

    @property
    def priority(self) -> int:
        """The pod's priority."""
        return self.pod.spec.priority or 0

    def request(self, resource: str) -> int:
        """What the pod asks for of a resource, as NodeResourcesFit counts it: milli-CPU, bytes or a count."""
        return by_name(self.shape.asked).get(resource, 0)

    def on(self, node_name: str) -> PodInfo:
        """The same pod, placed on a node."""
        spec = msgspec.structs.replace(self.pod.spec, node_name=node_name)
        return PodInfo(msgspec.structs.replace(self.pod, spec=spec), self.shape, self.pinned)

    def __repr__(self) -> str:
        return f"<PodInfo {self.key}>"


class Shapes:
    """Interns shapes by what they are made of."""

    def __init__(self, rules: RequestRules, table: Table, most: int = MOST_SHAPES) -> None:
        self.rules = rules
        self._table = table
        self._most = most
        self._kept: OrderedDict[bytes, Shape] = OrderedDict()
        self._labels: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}
        self._encode = msgspec.msgpack.Encoder().encode

    def info(self, pod: Pod) -> PodInfo:
        """A pod with its shape. Raises QuantityError for a pod whose requests cannot be read, or are negative."""
        affinity, pinned = without_pins(pod.spec.affinity)
        key = self._key((pinned, affinity, _what_matters(pod)))
        shape = self._kept.get(key)
        if shape is None:
            shape = self._kept[key] = Shape(pod, self.rules, self._table)
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(key)
        return PodInfo(pod, shape, pinned)

    def _key(self, parts: tuple[Any, ...]) -> bytes:
        try:
            return self._encode(parts)
        except OverflowError:
            # MessagePack has no integers beyond 64 bits; quantities that are written as numbers may be some.
            return repr(parts).encode()

    def kept(self, info: PodInfo) -> PodInfo:
        """A placed pod as it is kept: what is looked at of a pod on a node, sharing with its copies whatever it can.

        A cluster has many times more pods than shapes, and a decoded pod takes several kilobytes.
        """
        pod, shared = info.pod, info.shape.spec
        spec = msgspec.structs.replace(
            shared,
            node_name=pod.spec.node_name,
            scheduler_name=sys.intern(pod.spec.scheduler_name),
            affinity=pod.spec.affinity if info.pinned else shared.affinity,
            priority=pod.spec.priority,
            preemption_policy=pod.spec.preemption_policy,
            scheduling_gates=pod.spec.scheduling_gates,
            termination_grace_period_seconds=pod.spec.termination_grace_period_seconds,
        )
        labels = tuple(pod.labels.items())
        metadata = ObjectMeta(
            name=pod.name,
            namespace=sys.intern(pod.namespace),
            uid=pod.uid,
            labels=self._labels.setdefault(labels, pod.labels),
            deletion_timestamp=pod.metadata.deletion_timestamp,
        )
        if len(self._labels) > MOST_LABEL_SETS:
            self._labels.clear()
        status = msgspec.structs.replace(pod.status, conditions=_resize_conditions(pod))
        if _actuated(pod) is None:
            status.container_statuses = status.init_container_statuses = []
        return PodInfo(Pod(metadata, spec, status), info.shape, info.pinned)

    def __len__(self) -> int:
        return len(self._kept)


def without_pins(affinity: Affinity | None) -> tuple[Affinity | None, bool]:
    """The affinity without the nodes that it names, and whether it names some.

    Only for affinity such as the DaemonSet controller writes: each required term has one field, the name of one node.
    Every such pod would be its own shape otherwise.
    """
    if affinity is None or affinity.node_affinity is None or affinity.node_affinity.required is None:
        return affinity, False
    required = affinity.node_affinity.required
    terms = required.node_selector_terms
    if not terms or not all(_names_one_node(term) for term in terms):
        return affinity, False
    free = [msgspec.structs.replace(term, match_fields=[]) for term in terms]
    required = msgspec.structs.replace(required, node_selector_terms=free)
    node_affinity = msgspec.structs.replace(affinity.node_affinity, required=required)
    return msgspec.structs.replace(affinity, node_affinity=node_affinity), True


def _names_one_node(term: NodeSelectorTerm) -> bool:
    fields = term.match_fields
    return (
        len(fields) == 1
        and fields[0].key == NODE_NAME_FIELD
        and fields[0].operator == "In"
        and len(fields[0].values) == 1
    )


def _what_matters(pod: Pod) -> tuple[Any, ...]:
    """Everything that a decision about the pod depends on, except its affinity, its own name and its place."""
    spec, status = pod.spec, pod.status
    return (
        spec.containers,
        spec.init_containers,
        spec.overhead,
        spec.resources,
        spec.node_selector,
        spec.tolerations,
        spec.topology_spread_constraints,
        spec.volumes,
        spec.resource_claims,
        spec.scheduling_group,
        spec.host_network,
        spec.host_users,
        None if status.resources is None else (status.resources, status.allocated_resources),
        _actuated(pod),
        [condition.reason for condition in _resize_conditions(pod)],
    )


def _resize_conditions(pod: Pod) -> list[Condition]:
    return [condition for condition in pod.status.conditions if condition.type == RESIZE_PENDING]


def _actuated(pod: Pod) -> list[Any] | None:
    """The parts of container statuses that requests depend on; None for the usual pod, whose statuses say nothing of
    resources."""
    statuses = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    said = [
        (status.name, status.resources, status.allocated_resources)
        for status in statuses
        if status.resources is not None
    ]
    return said or None


def by_name(amounts: ResourceAmounts) -> dict[str, int]:
    """Amounts under the names of their resources."""
    fixed = {"cpu": amounts.milli_cpu, "memory": amounts.memory, "ephemeral-storage": amounts.ephemeral_storage}
    return {**fixed, **amounts.scalars}
