"""What new objects of the other kinds get."""

from __future__ import annotations

from typing import Any

import pytest

from .samples import (
    at,
    create,
    workload,
)

Json = dict[str, Any]


@pytest.mark.parametrize(
    ("kind", "obj", "path", "value"),
    [
        pytest.param(
            "Node",
            {"metadata": {"name": "a"}, "status": {"capacity": {"cpu": "4"}}},
            "status.allocatable",
            {"cpu": "4"},
            id="allocatable is the capacity",
        ),
        pytest.param(
            "Node",
            {"metadata": {"name": "a"}, "status": {"capacity": {"cpu": "4"}, "allocatable": {"cpu": "3"}}},
            "status.allocatable",
            {"cpu": "3"},
            id="unless the node says otherwise",
        ),
        pytest.param("Namespace", {"metadata": {"name": "a"}}, "status.phase", "Active", id="a namespace is active"),
        pytest.param(
            "Namespace",
            {"metadata": {"name": "a"}},
            "metadata.labels",
            {"kubernetes.io/metadata.name": "a"},
            id="and carries its name as a label",
        ),
        pytest.param("Deployment", workload(), "spec.replicas", 1, id="a deployment has one replica"),
        pytest.param("Deployment", workload({"replicas": 0}), "spec.replicas", 0, id="or none"),
        pytest.param("Deployment", workload(), "spec.strategy.rollingUpdate.maxSurge", "25%", id="it rolls"),
        pytest.param(
            "Deployment", workload(), "spec.template.spec.restartPolicy", "Always", id="templates are defaulted"
        ),
        pytest.param(
            "Deployment", workload(), "spec.template.spec.tolerations", None, id="without what admission gives to pods"
        ),
        pytest.param("Deployment", workload(), "status", None, id="nothing is rolled out yet"),
        pytest.param("ReplicaSet", workload(), "spec.replicas", 1, id="a replica set has one replica"),
        pytest.param(
            "DaemonSet", workload(), "spec.updateStrategy.rollingUpdate.maxUnavailable", 1, id="daemons, one by one"
        ),
        pytest.param(
            "StatefulSet", workload(), "spec.podManagementPolicy", "OrderedReady", id="stateful sets in order"
        ),
        pytest.param(
            "Service",
            {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}},
            "spec.ports.0",
            {"port": 80, "protocol": "TCP", "targetPort": 80},
            id="ports of services",
        ),
        pytest.param(
            "Service",
            {"metadata": {"name": "a"}, "spec": {"clusterIP": "None"}},
            "spec.clusterIPs",
            ["None"],
            id="a headless service has no address",
        ),
        pytest.param(
            "PersistentVolumeClaim",
            {
                "metadata": {"name": "a"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            },
            "status.phase",
            "Pending",
            id="a claim waits",
        ),
        pytest.param(
            "StorageClass",
            {"metadata": {"name": "a"}, "provisioner": "example.com/disk"},
            "volumeBindingMode",
            "Immediate",
            id="volumes are bound at once",
        ),
        pytest.param("CSIDriver", {"metadata": {"name": "a"}}, "spec.attachRequired", True, id="volumes are attached"),
        pytest.param(
            "ResourceClaim",
            {"metadata": {"name": "a"}, "spec": {"devices": {"requests": [{"name": "r", "exactly": {}}]}}},
            "spec.devices.requests.0.exactly",
            {"allocationMode": "ExactCount", "count": 1},
            id="a device request is for one",
        ),
    ],
)
def test_new_object(kind: str, obj: Json, path: str, value: Any) -> None:
    assert at(create(kind, obj), path) == value


def test_a_job_selects_the_pods_that_it_makes() -> None:
    job = workload()
    del job["spec"]["selector"]
    job["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    created = create("Job", job)
    uid = created["metadata"]["uid"]
    assert created["spec"]["selector"]["matchLabels"] == {"batch.kubernetes.io/controller-uid": uid}
    assert created["spec"]["template"]["metadata"]["labels"]["batch.kubernetes.io/controller-uid"] == uid
