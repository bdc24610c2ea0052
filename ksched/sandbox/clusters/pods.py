"""Pods for a made-up cluster: applications of several shapes that all fit, and a few that cannot, each for a reason.

Every pool gets applications in proportion to its cpus, and their sizes are chosen, by `room.doubts`' argument,
as large as certainty allows but for no more than about two thirds of the pool. With ten pods a node that is a
cluster in ordinary use; with two pods a node it is emptier, because large pods leave large gaps. Left out is
what would make fitting depend on where others are: topology spread, pod affinity, volumes that need binding.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from ksched.errors import ClusterTooSmall, SandboxError
from ksched.model.quantity import millis, units
from ksched.sandbox.clusters.nodes import GENERATION_LABEL, GPU, POOL_LABEL, POOLS, SPOT_TAINT, ZONES
from ksched.sandbox.clusters.room import Ground

Json = dict[str, Any]

NAMESPACE: Final = "default"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_UTILISATION: Final = 0.66
_MOST_SLOTS: Final = 0.6
_PODS_PER_APPLICATION: Final = 25
_MOST_APPLICATIONS: Final = 24
_SEARCH_STEPS: Final = 14
_GPU_PODS: Final = 0.08

PRIORITY_CLASSES: Final[Mapping[str, tuple[int, str]]] = {
    "platform": (100_000, "What the cluster itself needs."),
    "production": (10_000, "Services that customers wait for."),
    "standard": (1_000, "Everything that says nothing else."),
    "batch": (-100, "Work that can wait."),
}


class Workload(NamedTuple):
    """What a demo creates: priority classes, pods in random order, and why some of the pods cannot fit, by name."""

    priority_classes: list[Json]
    pods: list[Json]
    cannot_fit: dict[str, str]


@dataclass(frozen=True, slots=True)
class Application:
    """A kind of pod of one pool: `weight` is its size among the pool's, `memory` its part of the pool's memory per cpu.

    Of the pool's pods it has `part` in relation to the others, or where that is 0 a random part; and never more than
    `most_per_node` pods per node, where that is given.
    """

    name: str
    image: str
    weight: float
    memory: float
    priority: str
    spec: Mapping[str, Any] = field(default_factory=dict)
    port: int = 0
    host_port: int = 0
    owned: bool = True
    guaranteed: bool = False
    sidecar: bool = False
    init: bool = False
    extended: Mapping[str, str] = field(default_factory=dict)
    gpus: int = 0
    part: float = 0.0
    most_per_node: float = 0.0


@dataclass(frozen=True, slots=True)
class Group:
    """The pods of one application under one name, all of one size."""

    application: Application
    name: str
    pods: int
    cpu: int
    mebibytes: int


def _in_pool(pool: str) -> Json:
    return {"nodeSelector": {POOL_LABEL: pool}}


def _requires(key: str, operator: str, *values: str) -> Json:
    expression = {"key": key, "operator": operator, "values": list(values)}
    return {"affinity": {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}}}


def _prefers(key: str, *values: str, weight: int) -> Json:
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}
    return {"affinity": {"nodeAffinity": {_PREFERRED: [{"weight": weight, "preference": term}]}}}


def _tolerates(key: str, value: str | None = None) -> Json:
    if value is None:
        return {"tolerations": [{"key": key, "operator": "Exists", "effect": "NoSchedule"}]}
    return {"tolerations": [{"key": key, "operator": "Equal", "value": value, "effect": "NoSchedule"}]}


_ZONE: Final = "topology.kubernetes.io/zone"
_ARM: Final = {"nodeSelector": {"kubernetes.io/arch": "arm64"}, **_tolerates("kubernetes.io/arch", "arm64")}
_SPOT: Final = {**_requires(POOL_LABEL, "In", "spot"), **_tolerates(SPOT_TAINT, "true")}
_SPOT_OR_GENERAL: Final = {**_prefers(POOL_LABEL, "spot", weight=80), **_tolerates(SPOT_TAINT)}
_COMPUTE: Final = {**_in_pool("compute"), **_tolerates("dedicated", "compute")}
_MEMORY: Final = {**_requires(POOL_LABEL, "In", "memory"), **_tolerates("dedicated", "memory")}
_INFRA: Final = {"nodeSelector": {"node-role.kubernetes.io/infra": ""}, **_tolerates("node-role.kubernetes.io/infra")}
_NEWER: Final = _requires(GENERATION_LABEL, "Gt", "5")
_LOG_AGENT: Final = "registry.example/log-agent:0.9"

APPLICATIONS: Final[Mapping[str, tuple[Application, ...]]] = {
    "general": (
        Application("web", "registry.example/web:4.2", 0.6, 0.5, "production", port=8080),
        Application(
            "api",
            "registry.example/api:4.2",
            1.0,
            0.7,
            "production",
            _prefers(_ZONE, ZONES[0], weight=10),
            8443,
            sidecar=True,
        ),
        Application("checkout", "registry.example/checkout:2.9", 1.4, 0.9, "production", port=8080, guaranteed=True),
        Application("search", "registry.example/search:1.14", 1.6, 1.1, "standard", _NEWER, init=True),
        Application("auth", "registry.example/auth:3.1", 0.4, 0.6, "production", port=9000),
        Application("worker", "registry.example/worker:4.2", 0.9, 0.6, "standard", owned=False),
        Application(
            "report-runner", "registry.example/report:1.3", 0.8, 0.6, "batch", _SPOT_OR_GENERAL, most_per_node=0.3
        ),
        Application("log-agent", _LOG_AGENT, 0.2, 0.5, "platform", host_port=9880, most_per_node=0.1),
    ),
    "compute": (
        Application("encoder", "registry.example/encoder:5.0", 1.5, 0.8, "standard", _COMPUTE, guaranteed=True),
        Application("pricing", "registry.example/pricing:2.2", 1.0, 0.6, "production", _COMPUTE, 7000),
    ),
    "spot": (
        Application("nightly", "registry.example/batch:1.7", 1.2, 0.8, "batch", _SPOT, owned=False),
        Application("report", "registry.example/report:1.3", 0.8, 0.5, "batch", _SPOT),
    ),
    "memory": (
        Application("cache", "registry.example/cache:7.4", 0.8, 1.1, "production", _MEMORY, 6379, guaranteed=True),
        Application("index", "registry.example/index:9.1", 1.2, 1.0, "standard", _MEMORY, init=True),
        Application(
            "index-huge",
            "registry.example/index:9.1",
            0.8,
            0.5,
            "standard",
            _MEMORY,
            extended={"hugepages-2Mi": "512Mi"},
            most_per_node=0.2,
        ),
    ),
    "gpu": (
        Application(
            "inference", "registry.example/inference:2.6", 1.0, 0.6, "production", _tolerates(GPU), 9001, gpus=1, part=2
        ),
        Application(
            "trainer",
            "registry.example/trainer:2.6",
            1.0,
            0.8,
            "standard",
            _tolerates(GPU),
            gpus=2,
            part=1,
            owned=False,
        ),
    ),
    "arm64": (
        Application("edge", "registry.example/edge:1.1", 0.7, 0.6, "production", _ARM, 8080),
        Application("builder", "registry.example/builder:3.3", 1.3, 0.9, "batch", _ARM, owned=False),
    ),
    "infra": (
        Application("ingress", "registry.example/ingress:1.12", 1.2, 0.6, "platform", _INFRA, 443, sidecar=True),
        Application("metrics", "registry.example/metrics:3.0", 1.0, 1.0, "platform", _INFRA, 9090),
        Application("infra-log-agent", _LOG_AGENT, 0.3, 0.5, "platform", _INFRA, host_port=9880, most_per_node=0.1),
    ),
}


def workload(pods: int, nodes: Sequence[Json], seed: int, unschedulable: int) -> Workload:
    """`pods` pods for the nodes of `nodes.cluster`, of which exactly `unschedulable` cannot fit.

    Raises ClusterTooSmall where the nodes are too few for so many pods, and says how many they have room for.
    """
    if not 0 <= unschedulable <= pods:
        raise SandboxError(f"unschedulable pods: expected 0 to {pods} (all pods), got {unschedulable}")
    rng = random.Random(f"pods {seed}")
    by_pool = _nodes_by_pool(nodes)
    ground = Ground(nodes)
    groups = _groups(pods - unschedulable, by_pool, rng)
    if ground.doubts(_copies(groups)):
        most = unschedulable + _most_that_fit(pods - unschedulable, by_pool, ground, seed)
        raise ClusterTooSmall(f"{pods:,} pods are too many for {len(nodes):,} nodes, which have room for {most:,}")
    made = [_pod(group, index) for group in groups for index in range(group.pods)]
    impossible = _impossible(unschedulable, nodes)
    made.extend(pod for pod, _ in impossible)
    rng.shuffle(made)
    return Workload(_priority_classes(), made, {pod["metadata"]["name"]: reason for pod, reason in impossible})


def _groups(pods: int, by_pool: Mapping[str, Sequence[Json]], rng: random.Random) -> list[Group]:
    groups: list[Group] = []
    for pool, count in _pods_of_pools(pods, by_pool).items():
        groups.extend(_pool_groups(pool, count, by_pool, groups, rng))
    return groups


def _most_that_fit(too_many: int, by_pool: Mapping[str, Sequence[Json]], ground: Ground, seed: int) -> int:
    """A number of pods that `workload` can make of this seed, and a hundredth more may be too many."""
    fits = 0
    while too_many - fits > max(1, fits // 100):
        tried = (fits + too_many) // 2
        if ground.doubts(_copies(_groups(tried, by_pool, random.Random(f"pods {seed}")))):
            too_many = tried
        else:
            fits = tried
    return fits


def _priority_classes() -> list[Json]:
    return [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
            "description": description,
        }
        for name, (value, description) in PRIORITY_CLASSES.items()
    ]


# ---- how many pods, and of what


def _nodes_by_pool(nodes: Sequence[Json]) -> dict[str, list[Json]]:
    by_pool: dict[str, list[Json]] = {pool.name: [] for pool in POOLS}
    for node in nodes:
        pool = node["metadata"]["labels"].get(POOL_LABEL)
        if pool not in by_pool:
            name = node["metadata"]["name"]
            raise SandboxError(f"node {name}: label {POOL_LABEL}: expected one of {', '.join(by_pool)}, got {pool}")
        by_pool[pool].append(node)
    return by_pool


def _pods_of_pools(pods: int, by_pool: Mapping[str, Sequence[Json]]) -> dict[str, int]:
    """Pods for each pool in proportion to its cpus, no more than its GPUs or pod slots allow; the rest is general."""
    total = sum(_cpus(nodes) for nodes in by_pool.values())
    counts: dict[str, int] = {}
    for pool, nodes in by_pool.items():
        share = int(pods * _cpus(nodes) / total) if total else 0
        limit = int(_MOST_SLOTS * sum(int(node["status"]["allocatable"]["pods"]) for node in nodes))
        if pool == "gpu":
            # Pods take 1 or 2 GPUs, two thirds of them 1. A node surely takes another while it has 2 GPUs free.
            free = sum(max(int(node["status"]["allocatable"][GPU]) - 2, 0) for node in nodes)
            share, limit = int(pods * _GPU_PODS), int(free / 1.4)
        counts[pool] = min(share, limit)
    counts["general"] += pods - sum(counts.values())
    if counts["general"] and not by_pool["general"]:
        raise SandboxError("a workload needs nodes in the general pool, and there are none")
    return counts


def _cpus(nodes: Sequence[Json]) -> int:
    return sum(millis(node["status"]["allocatable"]["cpu"]) for node in nodes)


def _pool_groups(
    pool: str, count: int, by_pool: Mapping[str, Sequence[Json]], others: Sequence[Group], rng: random.Random
) -> list[Group]:
    """The pods of a pool, as large as is certain to fit beside those of other pools that may come here."""
    if not count:
        return []
    nodes = by_pool[pool]
    replicas = _replicas(pool, count, len(nodes), rng)
    ground = Ground([*nodes, *by_pool["spot"]] if pool == "general" else nodes)
    guests = [group for group in others if pool == "spot" and group.application.spec is _SPOT_OR_GENERAL]
    per_cpu = sum(units(node["status"]["allocatable"]["memory"]) for node in nodes) / _cpus(nodes)
    free = _UTILISATION * _cpus(nodes) - sum(guest.cpu * guest.pods for guest in guests)
    weights = sum(application.weight * number for application, _, number in replicas)
    best = _sized(replicas, 0.0, per_cpu)
    smallest, largest = 0.0, max(free, 0.0) / weights
    size = largest  # first: with many small pods it is the answer
    for _ in range(_SEARCH_STEPS):
        sized = _sized(replicas, size, per_cpu)
        if ground.doubts(_copies([*sized, *guests])):
            largest = size
        else:
            best, smallest = sized, size
        if smallest == largest:
            break
        size = (smallest + largest) / 2
    return best


def _copies(groups: Sequence[Group]) -> list[tuple[Json, int]]:
    return [(_pod(group, 0), group.pods) for group in groups]


def _replicas(pool: str, count: int, nodes: int, rng: random.Random) -> list[tuple[Application, str, int]]:
    """Applications of a pool with a name and a number of pods each; the numbers add up to `count`."""
    limited = [application for application in APPLICATIONS[pool] if application.most_per_node]
    unlimited = [application for application in APPLICATIONS[pool] if not application.most_per_node]
    chosen: list[tuple[Application, str, int]] = []
    left = count
    for application in limited:
        number = min(int(application.most_per_node * nodes), left // 8)
        if number:
            chosen.append((application, application.name, number))
            left -= number
    applications = min(max(left // _PODS_PER_APPLICATION, len(unlimited)), _MOST_APPLICATIONS)
    if any(application.part for application in unlimited):
        applications = len(unlimited)
    parts = [unlimited[index % len(unlimited)].part or rng.uniform(0.3, 1.7) for index in range(applications)]
    for index, part in enumerate(parts):
        application = unlimited[index % len(unlimited)]
        series = index // len(unlimited) + 1
        number = left if index == len(parts) - 1 else min(round(left * part / sum(parts[index:])), left)
        left -= number
        if number:
            chosen.append((application, application.name if series == 1 else f"{application.name}-{series}", number))
    return chosen


def _sized(replicas: Sequence[tuple[Application, str, int]], size: float, memory_per_cpu: float) -> list[Group]:
    """The groups of a pool, where weight 1 asks for `size` thousandths of a cpu."""
    groups: list[Group] = []
    for application, name, number in replicas:
        cpu = max(int(application.weight * size / 10) * 10, 20)
        mebibytes = max(int(cpu * application.memory * memory_per_cpu) >> 20, 16)
        if application.gpus:
            cpu, mebibytes = 4000 * application.gpus, 16384 * application.gpus
        groups.append(Group(application, name, number, cpu, mebibytes))
    return groups


# ---- one pod


def _pod(group: Group, index: int) -> Json:
    application, cpu, mebibytes = group.application, group.cpu, group.mebibytes
    labels = {"app": application.name, "app.kubernetes.io/instance": group.name}
    metadata: Json = {"name": f"{group.name}-{index:05}", "namespace": NAMESPACE, "labels": labels}
    if application.owned:
        digest = f"{zlib.crc32(group.name.encode()):08x}"
        labels["pod-template-hash"] = digest
        metadata["name"] = f"{group.name}-{digest}-{index:05}"
        metadata["ownerReferences"] = [
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": f"{group.name}-{digest}",
                "uid": f"00000000-0000-4000-a000-0000{digest}",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]
    spec: Json = {"priorityClassName": application.priority, **application.spec}
    side_cpu, side_mebibytes = (max(cpu // 50 * 10, 10), max(mebibytes // 8, 8)) if application.sidecar else (0, 0)
    spec["containers"] = [_container(application, cpu - side_cpu, mebibytes - side_mebibytes)]
    if application.sidecar:
        proxy = _plain_container("proxy", "registry.example/proxy:1.30", side_cpu, side_mebibytes)
        spec["initContainers"] = [{**proxy, "restartPolicy": "Always"}]
    elif application.init:
        spec["initContainers"] = [_plain_container("prepare", application.image, cpu, mebibytes // 2)]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _container(application: Application, cpu: int, mebibytes: int) -> Json:
    container = _plain_container("main", application.image, cpu, mebibytes)
    requests: dict[str, str] = container["resources"]["requests"]
    devices = dict(application.extended)
    if application.gpus:
        devices[GPU] = str(application.gpus)
    requests.update(devices)
    if application.guaranteed:
        container["resources"]["limits"] = dict(requests)
    elif devices:
        container["resources"]["limits"] = devices
    if application.host_port:
        container["ports"] = [{"containerPort": application.host_port, "hostPort": application.host_port}]
    elif application.port:
        container["ports"] = [{"containerPort": application.port}]
    return container


def _plain_container(name: str, image: str, cpu: int, mebibytes: int) -> Json:
    requests = {"cpu": f"{cpu}m", "memory": f"{mebibytes}Mi"}
    return {"name": name, "image": image, "resources": {"requests": requests}}


# ---- pods that cannot fit


def _impossible(count: int, nodes: Sequence[Json]) -> list[tuple[Json, str]]:
    """`count` pods that no node can take, each for another reason, until the reasons run out."""
    largest_cpu = max((millis(node["status"]["allocatable"]["cpu"]) for node in nodes), default=0)
    largest_memory = max((units(node["status"]["allocatable"]["memory"]) for node in nodes), default=0) >> 20
    reasons: list[tuple[str, str, Callable[[Json], None]]] = [
        (
            "too-much-cpu",
            "asks for more cpu than the largest node has",
            lambda spec: _ask(spec, cpu=f"{largest_cpu + 1000}m"),
        ),
        (
            "unknown-label",
            "selects nodes by a label that none has",
            lambda spec: _select(spec, "example.com/disk", "tape"),
        ),
        ("missing-device", "asks for a device that no node has", lambda spec: _ask(spec, **{"example.com/fpga": "1"})),
        ("untolerated", "selects the tainted pools and tolerates none of them", _only_tainted),
        (
            "too-much-memory",
            "asks for more memory than the largest node has",
            lambda spec: _ask(spec, memory=f"{largest_memory + 1024}Mi"),
        ),
        (
            "too-new",
            "requires a generation of machines that does not exist yet",
            lambda spec: _require_generation(spec, "99"),
        ),
        ("no-such-node", "requires a node by a name that none has", _require_missing_node),
        ("too-many-gpus", "asks for more GPUs than any node has", lambda spec: _ask(spec, **{GPU: "64"})),
        (
            "other-system",
            "selects nodes with another operating system",
            lambda spec: _select(spec, "kubernetes.io/os", "windows"),
        ),
        (
            "huge-pages",
            "asks for huge pages of a size that no node has",
            lambda spec: _ask(spec, **{"hugepages-1Gi": "2Gi"}),
        ),
    ]
    made: list[tuple[Json, str]] = []
    for index in range(count):
        name, reason, spoil = reasons[index % len(reasons)]
        series = index // len(reasons)
        spec: Json = {
            "priorityClassName": "standard",
            "tolerations": [{"operator": "Exists"}],
            "containers": [_plain_container("main", "registry.example/web:4.2", 100, 128)],
        }
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"cannot-fit-{name}" + (f"-{series + 1}" if series else ""),
                "namespace": NAMESPACE,
                "labels": {"app": "cannot-fit"},
            },
            "spec": spec,
        }
        spoil(spec)
        made.append((pod, reason))
    return made


def _ask(spec: Json, **amounts: str) -> None:
    resources = spec["containers"][0]["resources"]
    resources["requests"].update(amounts)
    devices = {name: amount for name, amount in amounts.items() if name not in {"cpu", "memory"}}
    if devices:
        resources["limits"] = devices


def _select(spec: Json, key: str, value: str) -> None:
    spec["nodeSelector"] = {key: value}


def _only_tainted(spec: Json) -> None:
    tainted = [pool.name for pool in POOLS if pool.taint]
    spec.update(_requires(POOL_LABEL, "In", *tainted))
    del spec["tolerations"]


def _require_generation(spec: Json, number: str) -> None:
    spec.update(_requires(GENERATION_LABEL, "Gt", number))


def _require_missing_node(spec: Json) -> None:
    field = {"key": "metadata.name", "operator": "In", "values": ["a-node-that-is-gone"]}
    spec["affinity"] = {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": [{"matchFields": [field]}]}}}
