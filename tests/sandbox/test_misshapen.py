"""Objects with fields of other types than the API's are refused, whatever is sent how: no request may end in a 500."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest

from ksched.sandbox.clock import Clock
from ksched.sandbox.control import Control
from ksched.sandbox.http import Answer, Request
from ksched.sandbox.resources import RESOURCES, Resource
from ksched.sandbox.revisions import Revisions
from ksched.sandbox.routes import Routes

from .wire import APPLY, JSON, JSON_PATCH, MERGE, STRATEGIC, pod

Object = dict[str, Any]

WRONG: list[Any] = [
    *(None, 3, -1, 10**20, 1.5, True, "", "x", "1Gi", "2026-01-01T00:00:00Z"),
    *([], [1], [None], ["x"], [{}], {}, {"a": 1}, {"a": None}),
]

SPEC: Object = {
    **pod("template")["spec"],
    "initContainers": [{"name": "first", "image": "x", "restartPolicy": "Always"}],
    "tolerations": [{"key": "k", "operator": "Exists"}],
    "affinity": {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "zone", "matchLabelKeys": ["app"]}
            ]
        }
    },
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"a": "b"}},
            "matchLabelKeys": ["app"],
        }
    ],
    "overhead": {"cpu": "1"},
    "schedulingGates": [{"name": "gate"}],
}
OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "owner-uid"}
META: Object = {"name": "a", "labels": {"app": "x"}, "annotations": {"q": "r"}, "ownerReferences": [OWNER]}
WORKLOAD: Object = {
    "replicas": 1,
    "selector": {"matchLabels": {"a": "b"}},
    "template": {"metadata": {"labels": {"a": "b"}}, "spec": pod("template")["spec"]},
}
AMOUNTS = {"cpu": "4", "memory": "8Gi"}

SPECS: dict[str, Object] = {
    "DaemonSet": {"spec": WORKLOAD},
    "Deployment": {"spec": {**WORKLOAD, "strategy": {"rollingUpdate": {"maxSurge": "25%"}}}},
    "Event": {"involvedObject": {"kind": "Pod", "name": "x"}, "reason": "r", "series": {"count": 1}},
    "Job": {"spec": {"template": WORKLOAD["template"]}},
    "Node": {
        "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}], "unschedulable": True},
        "status": {"capacity": AMOUNTS, "conditions": [{"type": "Ready", "status": "True"}]},
    },
    "PersistentVolume": {
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
    },
    "PersistentVolumeClaim": {
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    },
    "Pod": {"spec": SPEC, "status": {"phase": "Running", "conditions": [{"type": "A", "status": "True"}]}},
    "PodDisruptionBudget": {
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}},
        "status": {"disruptionsAllowed": 1},
    },
    "PriorityClass": {"value": 3},
    "ReplicaSet": {"spec": WORKLOAD},
    "Service": {"spec": {"ports": [{"port": 80}], "selector": {"a": "b"}}},
    "StatefulSet": {"spec": WORKLOAD},
}


def whole(resource: Resource) -> Object:
    """An object of a kind that is as it should be, or at least has fields."""
    return {"metadata": META, **SPECS.get(resource.kind, {"spec": {"a": 1}, "data": {"x": "y"}})}


def paths(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [here] if here else []
    if isinstance(value, dict):
        for key, inner in value.items():
            found += paths(inner, (*here, key))
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            found += paths(inner, (*here, at))
    return found


def bent(value: Any, dice: random.Random) -> Any:
    """A copy of `value` with one to three fields of another type."""
    value = copy.deepcopy(value)
    for _ in range(dice.choice([1, 1, 1, 2, 3])):
        *way, last = dice.choice(paths(value) or [("x",)])
        holder = value
        for step in way:
            holder = holder[step]
        holder[last] = copy.deepcopy(dice.choice(WRONG))
    return value


class Server:
    """The routes without a wire; counts how requests were answered."""

    def __init__(self) -> None:
        control = Control(Revisions(1000), Clock())
        control.store.create("Namespace", {"metadata": {"name": "default"}})
        self.routes = Routes(control)
        self.refused = 0

    def send(
        self, method: str, path: str, body: Any = None, media: str = JSON, query: str = "", accept: str = ""
    ) -> None:
        request = Request()
        request.method, request.path, request.query = method, path, query
        request.content_type, request.accept = media, accept
        request.body = b"" if body is None else json.dumps(body).encode()
        answer = self.routes.handle(request)
        assert isinstance(answer, Answer)
        assert answer.code != 500, f"{method} {path} {media} {body}: {answer.body!r}"
        self.refused += answer.code in (400, 422)


def root(resource: Resource) -> str:
    group = f"/apis/{resource.group}" if resource.group else "/api"
    return f"{group}/{resource.version}{'/namespaces/default' if resource.namespaced else ''}/{resource.plural}"


@pytest.mark.parametrize("seed", range(4))
def test_no_request_ends_in_a_500(seed: int) -> None:
    dice, server = random.Random(seed), Server()
    for _ in range(1500):
        resource = dice.choice(RESOURCES)
        path, good = root(resource), whole(resource)
        match dice.randrange(6):
            case 0:
                server.send("POST", path, bent(good, dice))
            case 1:
                server.send("POST", path, good)
                server.send("PUT", f"{path}/a", bent(good, dice))
            case 2:
                server.send("POST", path, good)
                subresource = dice.choice(["", "", "/status", "/scale"])
                media = dice.choice([MERGE, STRATEGIC, APPLY])
                server.send("PATCH", f"{path}/a{subresource}", bent(good, dice), media, "fieldManager=x&force=true")
            case 3:
                step = {"op": dice.choice(["add", "replace", "remove", "move"]), "path": "/spec/x", "from": "/metadata"}
                server.send("PATCH", f"{path}/a", bent([{**step, "value": dice.choice(WRONG)}], dice), JSON_PATCH)
            case 4:
                binding = {"metadata": {"name": "a", "labels": {"q": "r"}}, "target": {"kind": "Node", "name": "n"}}
                pods = "/api/v1/namespaces/default/pods/a"
                server.send("POST", f"{pods}/binding", bent(binding, dice))
                server.send("POST", f"{pods}/eviction", bent({"deleteOptions": {"gracePeriodSeconds": 1}}, dice))
                options = {"preconditions": {"uid": "x"}, "gracePeriodSeconds": 0, "propagationPolicy": "Background"}
                server.send("DELETE", f"{path}/a", bent(options, dice))
            case 5:
                server.send("GET", path, accept="application/json;as=Table;v=v1;g=meta.k8s.io")
                server.send("GET", "/sandbox/audit")
    assert server.refused > 200
