"""Nodes: one at a time, or a cluster of pools with zones, taints, images and accelerators.

The pools are what a company of some size runs: mostly general machines, and apart from them, behind taints,
machines with much memory, many cores, GPUs, ARM processors, spot prices, and the platform's own. Pods get to a
tainted pool only if they ask for it, so each pool can be reasoned about alone.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

Json = dict[str, Any]

POOL_LABEL: Final = "example.com/pool"
GENERATION_LABEL: Final = "example.com/generation"
SPOT_TAINT: Final = "example.com/spot"
GPU: Final = "nvidia.com/gpu"
REGION: Final = "eu-test-1"
ZONES: Final = (f"{REGION}a", f"{REGION}b", f"{REGION}c")
_MEBIBYTE: Final = 1 << 20
_VERSION: Final = "v1.36.0"


@dataclass(frozen=True, slots=True)
class Machine:
    """A type of machine that can be rented."""

    name: str
    cpus: int
    gibibytes: int
    pods: int = 110
    gpus: int = 0
    gpu_product: str = ""
    huge_gibibytes: int = 0


@dataclass(frozen=True, slots=True)
class Pool:
    """Nodes that are bought and tainted alike; `share` is their part of the cluster."""

    name: str
    share: float
    machines: tuple[Machine, ...]
    taint: Mapping[str, str] | None = None
    architecture: str = "amd64"
    labels: Mapping[str, str] = field(default_factory=dict)


POOLS: Final = (
    Pool(
        "general",
        0.49,
        (Machine("m7.2xlarge", 8, 32), Machine("m7.4xlarge", 16, 64), Machine("m7.8xlarge", 32, 128, pods=250)),
    ),
    Pool(
        "compute",
        0.12,
        (Machine("c7.4xlarge", 16, 32), Machine("c7.8xlarge", 32, 64)),
        {"key": "dedicated", "value": "compute", "effect": "NoSchedule"},
    ),
    Pool(
        "spot",
        0.12,
        (Machine("m6.2xlarge", 8, 32), Machine("m6.4xlarge", 16, 64)),
        {"key": SPOT_TAINT, "value": "true", "effect": "NoSchedule"},
    ),
    Pool(
        "memory",
        0.10,
        (Machine("r7.4xlarge", 16, 128), Machine("r7.8xlarge", 32, 256, huge_gibibytes=32)),
        {"key": "dedicated", "value": "memory", "effect": "NoSchedule"},
    ),
    Pool(
        "gpu",
        0.05,
        (
            Machine("g6.12xlarge", 48, 192, gpus=4, gpu_product="NVIDIA-L4"),
            Machine("p5.24xlarge", 96, 384, gpus=8, gpu_product="NVIDIA-H100"),
        ),
        {"key": GPU, "value": "present", "effect": "NoSchedule"},
    ),
    Pool(
        "arm64",
        0.08,
        (Machine("m7g.4xlarge", 16, 64),),
        {"key": "kubernetes.io/arch", "value": "arm64", "effect": "NoSchedule"},
        architecture="arm64",
    ),
    Pool(
        "infra",
        0.04,
        (Machine("m7.2xlarge", 8, 32),),
        {"key": "node-role.kubernetes.io/infra", "effect": "NoSchedule"},
        labels={"node-role.kubernetes.io/infra": ""},
    ),
)

# Images with their sizes in MiB: those on every node, and those that the pods of a pool use.
COMMON_IMAGES: Final = {
    "registry.example/pause:3.10": 1,
    "registry.example/kube-proxy:v1.36.0": 87,
    "registry.example/cni:1.18": 143,
}
POOL_IMAGES: Final[Mapping[str, Mapping[str, int]]] = {
    "general": {
        "registry.example/web:4.2": 188,
        "registry.example/api:4.2": 214,
        "registry.example/checkout:2.9": 305,
        "registry.example/search:1.14": 642,
        "registry.example/auth:3.1": 96,
        "registry.example/worker:4.2": 251,
        "registry.example/log-agent:0.9": 61,
    },
    "compute": {"registry.example/encoder:5.0": 730, "registry.example/pricing:2.2": 412},
    "spot": {"registry.example/batch:1.7": 520, "registry.example/report:1.3": 377},
    "memory": {"registry.example/cache:7.4": 131, "registry.example/index:9.1": 860},
    "gpu": {"registry.example/trainer:2.6": 7400, "registry.example/inference:2.6": 5200},
    "arm64": {"registry.example/edge:1.1": 118, "registry.example/builder:3.3": 980},
    "infra": {
        "registry.example/ingress:1.12": 290,
        "registry.example/metrics:3.0": 247,
        "registry.example/log-agent:0.9": 61,
    },
}


def node(
    name: str,
    *,
    cpu: str = "4",
    memory: str = "16Gi",
    pods: int = 110,
    zone: str = ZONES[0],
    instance_type: str = "plain",
    architecture: str = "amd64",
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
    extended: Mapping[str, str] | None = None,
    images: Mapping[str, int] | None = None,
    declared_features: Sequence[str] = (),
    address: str = "192.0.2.1",
) -> Json:
    """A ready Linux node; `images` are sizes in MiB by name, `extended` further resources."""
    capacity = {"cpu": cpu, "memory": memory, "ephemeral-storage": "200Gi", "pods": str(pods), **(extended or {})}
    made: Json = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/arch": architecture,
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "node.kubernetes.io/instance-type": instance_type,
                "topology.kubernetes.io/region": zone[:-1],
                "topology.kubernetes.io/zone": zone,
                **(labels or {}),
            },
        },
        "spec": {"providerID": f"sandbox://{zone}/{name}"},
        "status": {
            "addresses": [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}],
            "capacity": capacity,
            "allocatable": dict(capacity),
            "conditions": [dict(condition) for condition in _CONDITIONS],
            "images": [
                {"names": [image], "sizeBytes": mebibytes * _MEBIBYTE} for image, mebibytes in (images or {}).items()
            ],
            "nodeInfo": {**_NODE_INFO, "architecture": architecture},
        },
    }
    if taints:
        made["spec"]["taints"] = [dict(taint) for taint in taints]
    if declared_features:
        made["status"]["declaredFeatures"] = list(declared_features)
    return made


_CONDITIONS: Final = (
    {"type": "MemoryPressure", "status": "False", "reason": "KubeletHasSufficientMemory"},
    {"type": "DiskPressure", "status": "False", "reason": "KubeletHasNoDiskPressure"},
    {"type": "PIDPressure", "status": "False", "reason": "KubeletHasSufficientPID"},
    {"type": "Ready", "status": "True", "reason": "KubeletReady"},
)
_NODE_INFO: Final = {
    "kernelVersion": "6.12.0",
    "osImage": "Sandbox Linux",
    "operatingSystem": "linux",
    "containerRuntimeVersion": "sandbox://1",
    "kubeletVersion": _VERSION,
}


def cluster(nodes: int, seed: int) -> list[Json]:
    """`nodes` nodes in pools, zones and machine types; the same for the same arguments."""
    rng = random.Random(f"nodes {seed}")
    made: list[Json] = []
    for pool, count in pool_sizes(nodes):
        first = len(made)
        made.extend([_pool_node(pool, number, first + number, rng) for number in range(count)])
    return made


def pool_sizes(nodes: int) -> list[tuple[Pool, int]]:
    """How many nodes each pool has: whole numbers, closest to the shares, that add up."""
    exact = [pool.share * nodes for pool in POOLS]
    counts = [int(share) for share in exact]
    by_remainder = sorted(range(len(POOLS)), key=lambda index: counts[index] - exact[index])
    for index in by_remainder[: nodes - sum(counts)]:
        counts[index] += 1
    return list(zip(POOLS, counts, strict=True))


def _pool_node(pool: Pool, number: int, overall: int, rng: random.Random) -> Json:
    machine = pool.machines[number % len(pool.machines)]
    extended: dict[str, str] = {}
    if machine.gpus:
        extended[GPU] = str(machine.gpus)
    if machine.huge_gibibytes:
        extended["hugepages-2Mi"] = f"{machine.huge_gibibytes}Gi"
    labels = {POOL_LABEL: pool.name, GENERATION_LABEL: rng.choice("55666677778888888888"), **pool.labels}
    if machine.gpu_product:
        labels["nvidia.com/gpu.product"] = machine.gpu_product
    made = node(
        f"{pool.name}-{number:05}",
        cpu=str(machine.cpus),
        memory=f"{machine.gibibytes}Gi",
        pods=machine.pods,
        zone=ZONES[number // len(pool.machines) % len(ZONES)],
        instance_type=machine.name,
        architecture=pool.architecture,
        labels=labels,
        taints=[pool.taint] if pool.taint else [],
        extended=extended,
        images=_some_images(pool, rng),
        declared_features=["GuaranteedQoSPodCPUResize"] if rng.random() < 0.3 else [],
        address=f"10.{64 + (overall >> 16)}.{overall >> 8 & 255}.{overall & 255}",
    )
    # What a kubelet keeps for itself and the system.
    made["status"]["allocatable"]["cpu"] = f"{machine.cpus * 1000 - 80 - 10 * machine.cpus}m"
    reserved = 512 + 32 * machine.gibibytes
    made["status"]["allocatable"]["memory"] = f"{(machine.gibibytes - machine.huge_gibibytes) * 1024 - reserved}Mi"
    return made


def _some_images(pool: Pool, rng: random.Random) -> dict[str, int]:
    """What a node has pulled so far: always the common images, and some of its pool's."""
    pulled = {image: size for image, size in POOL_IMAGES[pool.name].items() if rng.random() < 0.6}
    return {**COMMON_IMAGES, **pulled}
