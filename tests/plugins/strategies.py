"""Random nodes and pods, as Kubernetes' JSON, of everything that in-tree plugins look at.

Vocabularies are small, so that selectors meet labels, tolerations taints, and pods the nodes that they name. Most parts
make sense, since a pod that nothing fits tells little; odd and malformed ones are among them, because a plugin gets
what an API server let through, now or in an older version.
"""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import strategies as st

from ksched.model.features import REGISTRY
from ksched.model.node import Node
from ksched.model.pod import Pod
from tests.plugins.affinities import NAMESPACES, pod_affinities

Json = dict[str, Any]
Strategy = st.SearchStrategy[Any]

NODE_NAMES = [f"node-{number}" for number in range(6)]
IMAGES = ["app:1", "app", "nginx:latest", "registry.example.com/big:2", "registry.example.com/big@sha256:0"]
EFFECTS = ["NoSchedule", "PreferNoSchedule", "NoExecute"]
TAINT_KEYS = ["gpu", "team", "node.kubernetes.io/unschedulable"]
NUMBERS = ["1", "5", "10", "-3", "9223372036854775807"]

HAS: dict[str, list[Any]] = {
    "cpu": ["4", "64", 3, "1999m", "1", "0", "0.0005"],
    "memory": ["16Gi", "4Gi", "3e9", 1073741825, "1", "0", "100.5"],
    "pods": ["110", "110", "110", "2", "1", "0"],
    "ephemeral-storage": ["100Gi", "123456789", "0"],
    "example.com/gpu": ["2", 8, "1", "0"],
    "hugepages-2Mi": ["64Mi", "2Mi", "0"],
}
"""What nodes have of a resource, usual amounts first."""

ASKS: dict[str, list[Any]] = {
    "cpu": ["100m", "500m", "1", "1.94", "0.0005", 2, "0"],
    "memory": ["200Mi", "1Gi", "2.9Gi", "100.5", 1073741825, "0"],
    "ephemeral-storage": ["1Gi", "5G", "0"],
    "example.com/gpu": ["1", "2", 0],
    "hugepages-2Mi": ["2Mi", "64Mi"],
}
"""What pods ask for."""


def mostly(usual: Strategy, *odd: Strategy) -> Strategy:
    """`usual` in about three of four cases."""
    return st.sampled_from([usual] * 3 * len(odd) + list(odd)).flatmap(lambda chosen: chosen)


def maybe(strategy: Strategy) -> Strategy:
    """A list of one or none."""
    return st.lists(strategy, max_size=1)


def fields(**parts: Strategy) -> st.SearchStrategy[Json]:
    """An object with any of these fields."""
    return st.fixed_dictionaries({}, optional=parts)


def amounts(table: dict[str, list[Any]], *names: str) -> st.SearchStrategy[Json]:
    """A resource list with any of these resources."""
    return fields(**{name: st.sampled_from(table[name]) for name in names})


labels = fields(
    zone=st.sampled_from(["a", "b", "c"]),
    disk=st.sampled_from(["ssd", ""]),
    gen=st.sampled_from([*NUMBERS, "new"]),
)

taints = st.fixed_dictionaries(
    {"key": st.sampled_from(TAINT_KEYS), "effect": st.sampled_from(EFFECTS)},
    optional={"value": st.sampled_from(["a", *NUMBERS])},
)

tolerations = fields(
    key=st.sampled_from([*TAINT_KEYS, ""]),
    operator=mostly(st.sampled_from(["Equal", "Exists"]), st.sampled_from(["", "Lt", "Gt", "Unknown"])),
    value=st.sampled_from(["a", *NUMBERS]),
    effect=st.sampled_from([*EFFECTS, ""]),
)

requirements = mostly(
    st.fixed_dictionaries(
        {
            "key": st.just("zone"),
            "operator": st.sampled_from(["In", "NotIn"]),
            "values": st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=2),
        }
    ),
    st.fixed_dictionaries(
        {
            "key": st.just("gen"),
            "operator": st.sampled_from(["Gt", "Lt"]),
            "values": st.lists(st.sampled_from(NUMBERS), min_size=1, max_size=1),
        }
    ),
    st.fixed_dictionaries({"key": st.just("disk"), "operator": st.sampled_from(["Exists", "DoesNotExist"])}),
    st.fixed_dictionaries(
        {
            "key": st.sampled_from(["gen", "disk", "not a key!"]),
            "operator": st.sampled_from(["In", "NotIn", "Exists", "Gt", "Lt", "Unknown"]),
            "values": st.lists(st.sampled_from(["", "x" * 70, *NUMBERS]), max_size=2),
        }
    ),
)

by_name = mostly(
    st.fixed_dictionaries(
        {
            "key": st.just("metadata.name"),
            "operator": st.sampled_from(["In", "NotIn"]),
            "values": st.lists(st.sampled_from([*NODE_NAMES, "nowhere"]), min_size=1, max_size=1),
        }
    ),
    st.fixed_dictionaries(
        {
            "key": st.sampled_from(["metadata.name", "metadata.uid"]),
            "operator": st.sampled_from(["In", "NotIn", "Exists"]),
            "values": st.lists(st.sampled_from(NODE_NAMES), max_size=2),
        }
    ),
)

terms = mostly(
    st.fixed_dictionaries({"matchExpressions": st.lists(requirements, min_size=1, max_size=2)}),
    st.fixed_dictionaries({"matchFields": st.lists(by_name, min_size=1, max_size=2)}),
    fields(matchExpressions=maybe(requirements), matchFields=maybe(by_name)),
)

preferences = st.fixed_dictionaries({"weight": st.sampled_from([1, 30, 100, 0]), "preference": terms})

node_affinities = fields(
    requiredDuringSchedulingIgnoredDuringExecution=fields(nodeSelectorTerms=st.lists(terms, max_size=3)),
    preferredDuringSchedulingIgnoredDuringExecution=st.lists(preferences, min_size=1, max_size=3),
)

ports = st.fixed_dictionaries(
    {"hostPort": mostly(st.just(80), st.sampled_from([81, 0]))},
    optional={
        "protocol": st.sampled_from(["TCP", "UDP", ""]),
        "hostIP": st.sampled_from(["", "0.0.0.0", "127.0.0.1", "::"]),
    },
)

containers = st.fixed_dictionaries(
    {
        "name": st.just("main"),
        "image": mostly(st.sampled_from(IMAGES), st.just("")),
        "resources": fields(requests=amounts(ASKS, *ASKS), limits=amounts(ASKS, *ASKS)),
        "ports": st.lists(ports, max_size=2),
    },
    optional={
        "restartPolicyRules": st.just([{"action": "RestartAllContainers"}]),
    },
)

init_containers = st.builds(
    lambda container, more: {**container, **more},
    containers,
    fields(restartPolicy=st.sampled_from(["Always", "Never"])),
)

pod_selectors = st.sampled_from(
    [
        None,
        {},
        {"matchLabels": {"zone": "a"}},
        {"matchExpressions": [{"key": "disk", "operator": "Exists"}]},
        {"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["b"]}]},
    ]
)

spread_constraints = st.fixed_dictionaries(
    {
        "topologyKey": st.sampled_from(["zone", "zone", "disk"]),
        "maxSkew": st.integers(1, 2),
        "whenUnsatisfiable": st.sampled_from(["DoNotSchedule", "ScheduleAnyway"]),
        "labelSelector": pod_selectors,
    },
    optional={
        "minDomains": st.integers(1, 3),
        "nodeAffinityPolicy": st.sampled_from(["Honor", "Ignore"]),
        "nodeTaintsPolicy": st.sampled_from(["Honor", "Ignore"]),
        "matchLabelKeys": st.just(["gen"]),
    },
)

specs = st.fixed_dictionaries(
    {
        "containers": mostly(st.lists(containers, min_size=1, max_size=2), st.just([])),
        "tolerations": st.lists(tolerations, max_size=3),
        "affinity": st.fixed_dictionaries(
            {"nodeAffinity": node_affinities},
            optional={"podAffinity": pod_affinities, "podAntiAffinity": pod_affinities},
        ),
    },
    optional={
        "initContainers": st.lists(init_containers, max_size=2),
        "overhead": amounts(ASKS, "cpu", "memory"),
        "resources": fields(requests=amounts(ASKS, "cpu", "memory", "hugepages-2Mi")),
        "nodeSelector": fields(zone=st.sampled_from(["a", "b"]), gen=st.just("5")),
        "volumes": maybe(st.sampled_from(IMAGES).map(lambda image: {"name": "v", "image": {"reference": image}})),
        "hostNetwork": st.booleans(),
        "hostUsers": st.booleans(),
        "topologySpreadConstraints": st.lists(spread_constraints, max_size=2),
    },
)

container_statuses = st.fixed_dictionaries(
    {"name": st.just("main")},
    optional={
        "allocatedResources": amounts(ASKS, "cpu", "memory"),
        "resources": fields(requests=amounts(ASKS, "cpu", "memory")),
    },
)

statuses = fields(
    containerStatuses=maybe(container_statuses),
    conditions=st.just([{"type": "PodResizePending", "reason": "Infeasible"}]),
)

images = st.fixed_dictionaries(
    {
        "names": st.lists(st.sampled_from(IMAGES), min_size=1, max_size=2),
        "sizeBytes": st.sampled_from([400 << 20, 90 << 20, 23 << 20, 2 << 40, 1, 0]),
    }
)


@st.composite
def nodes(draw: st.DrawFn, name: str | None = None) -> Node:
    """A node under one of a few names: usually with some of everything, sometimes lacking a resource or of odd size."""
    named = name or draw(st.sampled_from(NODE_NAMES))
    usual = {resource: has[0] for resource, has in HAS.items()}
    allocatable = draw(mostly(amounts(HAS, *HAS).map(lambda odd: {**usual, **odd}), amounts(HAS, *HAS)))
    status = {
        "allocatable": allocatable,
        "images": draw(st.lists(images, min_size=1, max_size=3)),
        "declaredFeatures": draw(mostly(st.just(sorted(REGISTRY)), st.lists(st.sampled_from([*REGISTRY, "Another"])))),
    }
    spec = {"taints": draw(st.lists(taints, max_size=3)), "unschedulable": draw(mostly(st.just(False), st.just(True)))}
    metadata = {"name": named, "uid": f"uid-{named}", "labels": draw(labels)}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": status}, Node)


@st.composite
def clusters(draw: st.DrawFn) -> list[Node]:
    """Some nodes, each under its own name."""
    return [draw(nodes(name)) for name in NODE_NAMES[: draw(st.integers(1, len(NODE_NAMES)))]]


@st.composite
def incoming_pods(draw: st.DrawFn) -> Pod:
    """A pod that waits for a node, now and then written for a certain one."""
    name = f"incoming-{draw(st.integers(0, 1_000_000))}"
    namespace = draw(mostly(st.just("default"), st.sampled_from(NAMESPACES)))
    node_name = draw(mostly(st.just(""), st.sampled_from([*NODE_NAMES, "nowhere"])))
    return _pod(name, namespace, {**draw(specs), "nodeName": node_name}, draw(statuses), draw(labels))


@st.composite
def placed_pods(draw: st.DrawFn) -> Pod:
    """One of a few pods, on a node that may not exist."""
    number = draw(st.integers(0, 5))
    node_name = draw(mostly(st.sampled_from(NODE_NAMES[:3]), st.sampled_from([*NODE_NAMES, "nowhere"])))
    namespace = NAMESPACES[number // 2]
    return _pod(f"placed-{number}", namespace, {**draw(specs), "nodeName": node_name}, draw(statuses), draw(labels))


def _pod(name: str, namespace: str, spec: Json, status: Json, its_labels: Json) -> Pod:
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "labels": its_labels}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": status}, Pod)
