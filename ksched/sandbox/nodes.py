"""Plain nodes for a sandbox that is started with some: three zones, three sizes, nothing special about them."""

from __future__ import annotations

from collections.abc import Iterator

from ksched.sandbox.revisions import Object

_ZONES = ("zone-a", "zone-b", "zone-c")
_SIZES = (("small", "4", "16Gi"), ("medium", "16", "64Gi"), ("large", "64", "256Gi"))


def plain_nodes(count: int) -> Iterator[Object]:
    """`count` ready nodes called node-000000 and so on."""
    for number in range(count):
        zone = _ZONES[number % len(_ZONES)]
        size, cpu, memory = _SIZES[number // len(_ZONES) % len(_SIZES)]
        yield plain_node(f"node-{number:06}", cpu=cpu, memory=memory, zone=zone, instance_type=size)


def plain_node(name: str, *, cpu: str, memory: str, zone: str, instance_type: str) -> Object:
    """One ready Linux node."""
    capacity = {"cpu": cpu, "memory": memory, "ephemeral-storage": "100Gi", "pods": "110"}
    return {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/os": "linux",
                "kubernetes.io/hostname": name,
                "node.kubernetes.io/instance-type": instance_type,
                "topology.kubernetes.io/region": "region-1",
                "topology.kubernetes.io/zone": zone,
            },
        },
        "spec": {},
        "status": {
            "capacity": capacity,
            "allocatable": dict(capacity),
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "reason": "KubeletReady",
                    "message": "kubelet is posting ready status",
                }
            ],
            "nodeInfo": {
                "machineID": "",
                "systemUUID": "",
                "bootID": "",
                "kernelVersion": "6.1.0",
                "osImage": "sandbox",
                "containerRuntimeVersion": "sandbox://1",
                "kubeletVersion": "v1.36.0",
                "kubeProxyVersion": "",
                "operatingSystem": "linux",
                "architecture": "amd64",
            },
        },
    }
