"""Objects of the scenarios, as a user would write them."""

from __future__ import annotations

from typing import Any

from tests.scenarios.api import Object


def node(name: str, *, cpu: str = "4", memory: str = "16Gi", pods: str = "110", **spec: Any) -> Object:
    """A node that is ready and has this much."""
    amounts = {"cpu": cpu, "memory": memory, "pods": pods}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": spec,
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


def pod(name: str, *, cpu: str = "100m", memory: str = "64Mi", **spec: Any) -> Object:
    """A pod of one container that asks for this much."""
    container = {"name": "main", "image": "nothing:1", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container], "automountServiceAccountToken": False, **spec},
    }


def service(name: str, **selects: str) -> Object:
    """A service of the pods with these labels."""
    spec = {"selector": selects, "ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def priority_class(name: str, value: int) -> Object:
    """A priority class."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


def condition(pod: Object) -> Object:
    """The pod's PodScheduled condition; empty where it has none."""
    conditions = pod["status"].get("conditions") or []
    return next((each for each in conditions if each["type"] == "PodScheduled"), {})
