"""Which events an update of a pod or a node amounts to, in kube-scheduler's order.

An update of a pod is always at least a general update; one of a node that changes nothing a plugin looks at is none.
"""

from __future__ import annotations

from typing import Final

from ksched.errors import QuantityError
from ksched.model.node import Node
from ksched.model.objects import ResourceList
from ksched.model.pod import ContainerStatus, Pod
from ksched.model.quantity import read_quantity
from ksched.model.requests import RequestRules, pod_requests, to_count
from ksched.queue import events
from ksched.queue.events import ClusterEvent, event

_NODE_TAINT: Final = event(events.NODE, events.UPDATE_NODE_TAINT)
_NODE_ALLOCATABLE: Final = event(events.NODE, events.UPDATE_NODE_ALLOCATABLE)
_NODE_LABEL: Final = event(events.NODE, events.UPDATE_NODE_LABEL)
_NODE_CONDITION: Final = event(events.NODE, events.UPDATE_NODE_CONDITION)
_NODE_ANNOTATION: Final = event(events.NODE, events.UPDATE_NODE_ANNOTATION)
_NODE_DECLARED_FEATURE: Final = event(events.NODE, events.UPDATE_NODE_DECLARED_FEATURE)

_POD_EVENTS: Final = {
    (resource, action): event(resource, action)
    for resource in (events.ASSIGNED_POD, events.UNSCHEDULABLE_POD)
    for action in (
        events.UPDATE_POD_LABEL,
        events.UPDATE_POD_SCALE_DOWN,
        events.UPDATE_POD_SCHEDULING_GATES_ELIMINATED,
        events.UPDATE_POD_TOLERATION,
        events.UPDATE_POD_GENERATED_RESOURCE_CLAIM,
        events.UPDATE,
    )
}


def node_changes(old: Node, new: Node, *, declared_features: bool = True) -> list[ClusterEvent]:
    """The events of a node's update. Cordoning a node is no event: it helps nobody."""
    found = []
    if old.spec.unschedulable and not new.spec.unschedulable:
        found.append(_NODE_TAINT)
    if _amounts_differ(old.status.allocatable, new.status.allocatable):
        found.append(_NODE_ALLOCATABLE)
    if old.metadata.labels != new.metadata.labels:
        found.append(_NODE_LABEL)
    if old.spec.taints != new.spec.taints:
        found.append(_NODE_TAINT)
    if _conditions(old) != _conditions(new):
        found.append(_NODE_CONDITION)
    if old.metadata.annotations != new.metadata.annotations:
        found.append(_NODE_ANNOTATION)
    if declared_features and old.status.declared_features != new.status.declared_features:
        found.append(_NODE_DECLARED_FEATURE)
    return found


def pod_changes(old: Pod, new: Pod, rules: RequestRules) -> list[ClusterEvent]:
    """The events of a pod's update, at least one."""
    actions = []
    if old.metadata.labels != new.metadata.labels:
        actions.append(events.UPDATE_POD_LABEL)
    if _asks_for_less(old, new, rules):
        actions.append(events.UPDATE_POD_SCALE_DOWN)
    if old.spec.scheduling_gates and not new.spec.scheduling_gates:
        actions.append(events.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
    if len(old.spec.tolerations) != len(new.spec.tolerations):
        actions.append(events.UPDATE_POD_TOLERATION)
    if old.status.resource_claim_statuses != new.status.resource_claim_statuses:
        actions.append(events.UPDATE_POD_GENERATED_RESOURCE_CLAIM)
    resource = events.ASSIGNED_POD if new.node_name else events.UNSCHEDULABLE_POD
    return [_POD_EVENTS[resource, action] for action in actions or (events.UPDATE,)]


def _amounts_differ(old: ResourceList, new: ResourceList) -> bool:
    """Whether the amounts are others, however they are written: 4 is 4000m."""
    if old == new:
        return False
    if old.keys() != new.keys():
        return True
    try:
        return any(read_quantity(amount) != read_quantity(new[name]) for name, amount in old.items())
    except QuantityError:
        return True


def _conditions(node: Node) -> dict[str, str]:
    """Conditions without their times: a heartbeat is no change."""
    return {condition.type: condition.status for condition in node.status.conditions}


def _asks_for_less(old: Pod, new: Pod, rules: RequestRules) -> bool:
    if _resources(old) == _resources(new):
        return False
    options = to_count(rules)
    try:
        before, now = pod_requests(old, options), pod_requests(new, options)
    except QuantityError:
        # Amounts that cannot be read are the feed's business. Here they may hide that room has become free, and to try
        # a pod once too often costs less than to leave it waiting.
        return True
    return any(name not in now or now[name].milli_value() < amount.milli_value() for name, amount in before.items())


def _resources(pod: Pod) -> tuple[object, ...]:
    """Everything that a pod's requests are worked out from. Most updates change none of it."""
    spec, status = pod.spec, pod.status
    return (
        [container.resources for container in spec.containers],
        [(container.resources, container.restart_policy) for container in spec.init_containers],
        spec.resources,
        spec.overhead,
        status.resources,
        status.allocated_resources,
        _said(status.container_statuses),
        _said(status.init_container_statuses),
        [condition.reason for condition in status.conditions if condition.type == "PodResizePending"],
    )


def _said(statuses: list[ContainerStatus]) -> list[tuple[object, ...]]:
    """What container statuses say of resources; most say nothing."""
    return [
        (each.name, each.resources, each.allocated_resources)
        for each in statuses
        if each.resources is not None or each.allocated_resources
    ]
