"""What a demo schedules: nodes, pods, and what is known of them beforehand.

The objects come from `ksched.sandbox.clusters`. What a pool has and what a pod takes is added up by the sandbox's
own plain rule, not by the scheduler's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ksched.model.quantity import parse_quantity
from ksched.sandbox.audit import Amounts, pod_amounts
from ksched.sandbox.clusters import POOL_LABEL, alibaba, cluster, workload
from ksched.sandbox.clusters.nodes import GPU
from ksched.sandbox.clusters.trace import MODEL_LABEL

Object = dict[str, Any]

SHOWN_RESOURCES = ("cpu", "memory", GPU)
"""Whose utilisation is shown per pool."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Objects to create, in order, and what is known of them."""

    settings: Mapping[str, Any]
    before_nodes: list[tuple[str, list[Object]]]
    """Path of a collection and the objects that come first: what pods refer to."""
    nodes: list[Object]
    pods: list[Object]
    cannot_fit: Mapping[str, str] | None
    """Keys of the pods that cannot fit by construction, and why not; None where nobody knows."""
    pool_of: Mapping[str, str]
    """Node to pool."""
    room: Mapping[str, Amounts]
    """Pool to what its nodes have, in thousandths."""
    requests: Mapping[str, Amounts]
    """Pod key to what it takes, in thousandths."""

    @property
    def fitting(self) -> int:
        """How many pods have to be bound; all of them where nobody knows."""
        return len(self.pods) - len(self.cannot_fit or ())


def made_up(nodes: int, pods: int, seed: int, unschedulable: int) -> Plan:
    """A cluster of several pools, and pods of several shapes of which exactly `unschedulable` cannot fit."""
    made_nodes = cluster(nodes, seed)
    load = workload(pods, made_nodes, seed, unschedulable)
    settings = {"nodes": nodes, "pods": pods, "unschedulable": unschedulable}
    classes = [("/apis/scheduling.k8s.io/v1/priorityclasses", load.priority_classes)]
    cannot_fit = {_key(pod): load.cannot_fit[name] for pod in load.pods if (name := _name(pod)) in load.cannot_fit}
    return _plan(settings, classes, made_nodes, load.pods, cannot_fit, _pool_by_label)


def recorded(trace: str, folder: Path) -> Plan:
    """A cluster that was recorded, whose files are in `folder`; its pools are the models of GPU."""
    nodes, pods = {"alibaba": alibaba}[trace](folder)
    settings = {"trace": trace, "nodes": len(nodes), "pods": len(pods)}
    return _plan(settings, [], nodes, pods, None, _pool_by_model)


def _plan(
    settings: Mapping[str, Any],
    before_nodes: list[tuple[str, list[Object]]],
    nodes: list[Object],
    pods: list[Object],
    cannot_fit: Mapping[str, str] | None,
    pool: Callable[[Object], str],
) -> Plan:
    pool_of = {_name(node): pool(node) for node in nodes}
    room: dict[str, Amounts] = {}
    for node in nodes:
        has = room.setdefault(pool(node), {})
        for resource, quantity in node["status"]["allocatable"].items():
            if resource in SHOWN_RESOURCES:
                has[resource] = has.get(resource, 0) + parse_quantity(quantity).milli_value()
    requests = {
        _key(pod): {name: amount for name, amount in pod_amounts(pod).items() if name in SHOWN_RESOURCES}
        for pod in pods
    }
    return Plan(settings, before_nodes, nodes, pods, cannot_fit, pool_of, room, requests)


def _name(thing: Object) -> str:
    return str(thing["metadata"]["name"])


def _key(pod: Object) -> str:
    return f"{pod['metadata']['namespace']}/{_name(pod)}"


def _pool_by_label(node: Object) -> str:
    return str(node["metadata"]["labels"][POOL_LABEL])


def _pool_by_model(node: Object) -> str:
    return str(node["metadata"]["labels"].get(MODEL_LABEL) or "no GPU")
