"""Objects as clients send and servers store them, for tests of the rules; a test says only what matters to it."""

from __future__ import annotations

import copy
import random
from typing import Any

from ksched.sandbox.defaults import prepare_create

Json = dict[str, Any]

NOW = "2026-12-01T02:21:04Z"
LATER = "2026-12-01T03:00:00Z"
NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

CLASSES: dict[str, Json] = {
    "gold": {"metadata": {"name": "gold"}, "value": 1000, "preemptionPolicy": "Never"},
    "silver": {"metadata": {"name": "silver"}, "value": 10},
}


def lookup(kind: str, namespace: str, name: str) -> Json | None:
    return CLASSES.get(name) if kind == "PriorityClass" else None


def with_global_default(kind: str, namespace: str, name: str) -> Json | None:
    return lookup(kind, namespace, name or "silver")


def create(kind: str, obj: Json, find: Any = lookup) -> Json:
    return prepare_create(kind, copy.deepcopy(obj), find, NOW, rng=random.Random(1))


def pod(spec: Json | None = None, container: Json | None = None, **metadata: Any) -> Json:
    containers = [{"name": "main", "image": "nginx:1.27", **(container or {})}]
    return {
        "metadata": {"name": "web", "namespace": "default", **metadata},
        "spec": {"containers": containers, **(spec or {})},
    }


def stored_pod(spec: Json | None = None, **metadata: Any) -> Json:
    return create("Pod", pod(spec, **metadata))


def workload(spec: Json | None = None) -> Json:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "nginx"}]}}
    selector = {"matchLabels": {"app": "web"}}
    return {
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": selector, "template": template, **(spec or {})},
    }


def at(obj: Any, path: str) -> Any:
    for step in path.split("."):
        obj = obj[int(step)] if isinstance(obj, list) else obj.get(step)
    return obj


ANTI_AFFINITY = {
    "podAntiAffinity": {
        REQUIRED: [
            {
                "topologyKey": "zone",
                "labelSelector": {"matchLabels": {"app": "web"}},
                "matchLabelKeys": ["version", "absent"],
                "mismatchLabelKeys": ["tenant"],
            },
            {"topologyKey": "zone", "matchLabelKeys": ["version"]},
        ]
    }
}
SPREAD = {
    "maxSkew": 1,
    "topologyKey": "zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {},
    "matchLabelKeys": ["version"],
}


def changed(obj: Json, path: str, value: Any) -> Json:
    new = copy.deepcopy(obj)
    target = new
    *way, last = path.split(".")
    for step in way:
        target = target[int(step)] if isinstance(target, list) else target.setdefault(step, {})
    if value is None:
        del target[last]
    else:
        target[last] = value
    return new
