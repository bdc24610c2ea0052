"""Random nodes and pods, as Kubernetes' JSON, of everything that in-tree plugins look at.

Vocabularies are small, so that selectors meet labels, tolerations taints, and pods the nodes that they name. Odd and
malformed values are among them: a plugin gets what an API server let through, now or in an older version.
"""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import strategies as st

from ksched.model.features import REGISTRY
from ksched.model.node import Node
from ksched.model.pod import Pod

Json = dict[str, Any]

NODE_NAMES = [f"node-{number}" for number in range(6)]
KEYS = ["zone", "disk", "gen", "example.com/rack"]
VALUES = ["a", "b", "", "1", "5", "10", "-3", "9223372036854775807"]
TAINT_KEYS = ["gpu", "team", "node.kubernetes.io/unschedulable"]
EFFECTS = ["NoSchedule", "PreferNoSchedule", "NoExecute"]
IMAGES = ["app:1", "app", "nginx:latest", "registry.example.com/big:2", "registry.example.com/big@sha256:0"]
RESOURCES = ["cpu", "memory", "ephemeral-storage", "example.com/gpu", "hugepages-2Mi"]
AMOUNTS: dict[str, list[str | int]] = {
    "cpu": ["0", "1m", "0.0005", "100m", "999m", "1", "1.94", "4", 3, "64"],
    "memory": ["0", "1", "100.5", "200Mi", "1Gi", "2.9Gi", "3e9", "16Gi", 1073741825],
    "ephemeral-storage": ["0", "1Gi", "5G", "123456789"],
    "example.com/gpu": ["0", "1", "2", 8],
    "hugepages-2Mi": ["0", "2Mi", "64Mi"],
    "pods": ["0", "1", "2", "110"],
}


def some(values: list[Any], most: int = 3) -> st.SearchStrategy[list[Any]]:
    """A few of these, which may repeat."""
    return st.lists(st.sampled_from(values), max_size=most)


def given_or_not(**parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Json]:
    """An object with any of these fields."""
    return st.fixed_dictionaries({}, optional=parts)


def amounts(*names: str) -> st.SearchStrategy[Json]:
    """A resource list."""
    return given_or_not(**{name: st.sampled_from(AMOUNTS[name]) for name in names})


labels = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES))

taints = st.fixed_dictionaries(
    {"key": st.sampled_from(TAINT_KEYS), "effect": st.sampled_from(EFFECTS)},
    optional={"value": st.sampled_from(VALUES)},
)

tolerations = given_or_not(
    key=st.sampled_from([*TAINT_KEYS, ""]),
    operator=st.sampled_from(["", "Equal", "Exists", "Lt", "Gt", "Unknown"]),
    value=st.sampled_from(VALUES),
    effect=st.sampled_from([*EFFECTS, ""]),
)

requirements = st.fixed_dictionaries(
    {
        "key": st.sampled_from([*KEYS, "not a key!"]),
        "operator": st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Unknown"]),
    },
    optional={"values": some([*VALUES, "x" * 70], most=2)},
)

fields = st.fixed_dictionaries(
    {
        "key": st.sampled_from(["metadata.name", "metadata.name", "metadata.uid"]),
        "operator": st.sampled_from(["In", "In", "NotIn", "Exists"]),
    },
    optional={"values": some([*NODE_NAMES, "nowhere"], most=2)},
)

terms = given_or_not(
    matchExpressions=st.lists(requirements, max_size=2),
    matchFields=st.lists(fields, max_size=1),
)

node_affinities = given_or_not(
    requiredDuringSchedulingIgnoredDuringExecution=given_or_not(nodeSelectorTerms=st.lists(terms, max_size=3)),
    preferredDuringSchedulingIgnoredDuringExecution=st.lists(
        st.fixed_dictionaries({"weight": st.sampled_from([0, 1, 30, 100]), "preference": terms}), max_size=3
    ),
)

ports = given_or_not(
    hostPort=st.sampled_from([0, 80, 80, 443]),
    containerPort=st.just(80),
    protocol=st.sampled_from(["TCP", "UDP", ""]),
    hostIP=st.sampled_from(["", "0.0.0.0", "127.0.0.1", "::"]),
)

containers = st.fixed_dictionaries(
    {"name": st.just("main")},
    optional={
        "image": st.sampled_from([*IMAGES, ""]),
        "resources": given_or_not(requests=amounts(*RESOURCES), limits=amounts(*RESOURCES)),
        "ports": st.lists(ports, max_size=2),
        "restartPolicyRules": st.just([{"action": "RestartAllContainers"}]),
    },
)

init_containers = st.builds(
    lambda container, more: {**container, **more},
    containers,
    given_or_not(restartPolicy=st.sampled_from(["Always", "Never"])),
)

container_statuses = st.fixed_dictionaries(
    {"name": st.just("main")},
    optional={
        "allocatedResources": amounts("cpu", "memory"),
        "resources": given_or_not(requests=amounts("cpu", "memory")),
    },
)

specs = st.fixed_dictionaries(
    {"containers": st.lists(containers, max_size=2)},
    optional={
        "initContainers": st.lists(init_containers, max_size=2),
        "overhead": amounts("cpu", "memory"),
        "resources": given_or_not(requests=amounts("cpu", "memory", "hugepages-2Mi")),
        "tolerations": st.lists(tolerations, max_size=3),
        "nodeSelector": labels,
        "affinity": given_or_not(nodeAffinity=node_affinities),
        "nodeName": st.sampled_from([*NODE_NAMES, "nowhere"]),
        "volumes": st.lists(
            st.sampled_from(IMAGES).map(lambda image: {"name": "v", "image": {"reference": image}}), max_size=1
        ),
        "priority": st.sampled_from([-1, 0, 1000]),
        "hostNetwork": st.booleans(),
        "hostUsers": st.booleans(),
    },
)

statuses = given_or_not(
    containerStatuses=st.lists(container_statuses, max_size=1),
    conditions=st.just([{"type": "PodResizePending", "reason": "Infeasible"}]),
)


@st.composite
def nodes(draw: st.DrawFn, name: str | None = None) -> Node:
    """A node, under one of a few names."""
    named = name or draw(st.sampled_from(NODE_NAMES))
    status = {
        "allocatable": draw(amounts(*RESOURCES, "pods")),
        "images": draw(
            st.lists(
                st.fixed_dictionaries(
                    {"names": some(IMAGES, most=2), "sizeBytes": st.sampled_from([0, 1, 23 << 20, 400 << 20, 2 << 40])}
                ),
                max_size=3,
            )
        ),
        "declaredFeatures": draw(some([*REGISTRY, "Another"], most=4)),
    }
    spec = draw(given_or_not(taints=st.lists(taints, max_size=3), unschedulable=st.booleans()))
    metadata = {"name": named, "uid": f"uid-{named}", "labels": draw(labels)}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": status}, Node)


@st.composite
def clusters(draw: st.DrawFn) -> list[Node]:
    """Some nodes, each under its own name."""
    return [draw(nodes(name)) for name in NODE_NAMES[: draw(st.integers(1, len(NODE_NAMES)))]]


@st.composite
def incoming_pods(draw: st.DrawFn) -> Pod:
    """A pod that waits for a node."""
    name = f"incoming-{draw(st.integers(0, 1_000_000))}"
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "labels": draw(labels)}
    return msgspec.convert({"metadata": metadata, "spec": draw(specs), "status": draw(statuses)}, Pod)


@st.composite
def placed_pods(draw: st.DrawFn) -> Pod:
    """One of a few pods, on a node that may not exist."""
    name = f"placed-{draw(st.integers(0, 5))}"
    spec = {**draw(specs), "nodeName": draw(st.sampled_from([*NODE_NAMES, "nowhere"]))}
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "labels": draw(labels)}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": draw(statuses)}, Pod)
