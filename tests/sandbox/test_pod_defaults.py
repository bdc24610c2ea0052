"""What a new pod gets: admission, defaults, and the status that it starts with."""

from __future__ import annotations

from typing import Any

import pytest

from .samples import (
    ANTI_AFFINITY,
    NOT_READY,
    NOW,
    REQUIRED,
    SPREAD,
    UNREACHABLE,
    at,
    create,
    pod,
    with_global_default,
)

Json = dict[str, Any]


@pytest.mark.parametrize(
    ("obj", "path", "value"),
    [
        pytest.param(pod(), "spec.schedulerName", "default-scheduler", id="a pod has a scheduler"),
        pytest.param(pod(), "spec.restartPolicy", "Always", id="a pod restarts its containers"),
        pytest.param(pod(), "spec.terminationGracePeriodSeconds", 30, id="a pod has 30 s to end"),
        pytest.param(
            pod({"terminationGracePeriodSeconds": 0}),
            "spec.terminationGracePeriodSeconds",
            0,
            id="or none, if it says so",
        ),
        pytest.param(pod(), "spec.dnsPolicy", "ClusterFirst", id="a pod asks the cluster for names"),
        pytest.param(pod(), "spec.enableServiceLinks", True, id="a pod gets service links"),
        pytest.param(pod(), "spec.serviceAccountName", "default", id="a pod has a service account"),
        pytest.param(pod(), "spec.containers.0.imagePullPolicy", "IfNotPresent", id="a fixed tag is pulled once"),
        pytest.param(
            pod(container={"image": "reg:5000/a/b"}),
            "spec.containers.0.imagePullPolicy",
            "Always",
            id="no tag is pulled always",
        ),
        pytest.param(
            pod(container={"image": "a@sha256:1"}),
            "spec.containers.0.imagePullPolicy",
            "IfNotPresent",
            id="a digest is pulled once",
        ),
        pytest.param(
            pod(container={"image": "a:latest"}),
            "spec.containers.0.imagePullPolicy",
            "Always",
            id="latest is pulled always",
        ),
        pytest.param(
            pod(container={"ports": [{"containerPort": 80}]}),
            "spec.containers.0.ports.0.protocol",
            "TCP",
            id="ports are TCP",
        ),
        pytest.param(
            pod({"hostNetwork": True}, {"ports": [{"containerPort": 80}]}),
            "spec.containers.0.ports.0.hostPort",
            80,
            id="a host network pod has host ports",
        ),
        pytest.param(
            pod(container={"ports": [{"containerPort": 80}]}),
            "spec.containers.0.ports.0.hostPort",
            None,
            id="other pods do not",
        ),
        pytest.param(
            pod(container={"resources": {"limits": {"cpu": "2"}}}),
            "spec.containers.0.resources.requests",
            {"cpu": "2"},
            id="requests come from limits",
        ),
        pytest.param(
            pod(container={"resources": {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}}),
            "spec.containers.0.resources.requests",
            {"cpu": "1", "memory": "1Gi"},
            id="resource by resource",
        ),
        pytest.param(
            pod({"resources": {"limits": {"cpu": "4"}}}, {"resources": {"requests": {"cpu": "1500m"}}}),
            "spec.resources.requests",
            {"cpu": "1500m"},
            id="pod-level requests are what the containers ask together",
        ),
        pytest.param(
            pod({"resources": {"limits": {"cpu": "4", "memory": "1Gi"}}}),
            "spec.resources.requests",
            {"cpu": "4", "memory": "1Gi"},
            id="and the pod-level limits where no container asks",
        ),
        pytest.param(pod(), "spec.priority", 0, id="a pod without a class has priority 0"),
        pytest.param(pod({"priorityClassName": "gold"}), "spec.priority", 1000, id="a class gives the priority"),
        pytest.param(
            pod({"priorityClassName": "gold"}), "spec.preemptionPolicy", "Never", id="and the preemption policy"
        ),
        pytest.param(pod({"priority": 7}), "spec.priority", 7, id="a number without a class is kept"),
        pytest.param(
            pod({"priorityClassName": "system-node-critical"}),
            "spec.priority",
            2000001000,
            id="system classes always exist",
        ),
        pytest.param(pod(), "status.phase", "Pending", id="a new pod is pending"),
        pytest.param(
            pod() | {"status": {"phase": "Running"}}, "status.phase", "Pending", id="whatever the client says"
        ),
        pytest.param(pod(), "status.conditions", None, id="nobody has looked at it yet"),
        pytest.param(
            pod({"schedulingGates": [{"name": "quota"}]}),
            "status.conditions.0.reason",
            "SchedulingGated",
            id="a gated pod says so",
        ),
        pytest.param(pod(), "metadata.generation", 1, id="generations start at 1"),
        pytest.param(pod(), "metadata.creationTimestamp", NOW, id="a pod is created now"),
        pytest.param(pod({"nodeSelector": None}), "spec.nodeSelector", None, id="a null field was not written"),
        pytest.param(
            pod({"affinity": ANTI_AFFINITY}, labels={"version": "2", "tenant": "a"}),
            f"spec.affinity.podAntiAffinity.{REQUIRED}.0.labelSelector.matchExpressions",
            [
                {"key": "version", "operator": "In", "values": ["2"]},
                {"key": "tenant", "operator": "NotIn", "values": ["a"]},
            ],
            id="label keys of affinity terms become expressions",
        ),
        pytest.param(
            pod({"affinity": ANTI_AFFINITY}, labels={"version": "2"}),
            f"spec.affinity.podAntiAffinity.{REQUIRED}.1.labelSelector",
            None,
            id="a term without a selector stays without",
        ),
        pytest.param(
            pod({"topologySpreadConstraints": [SPREAD]}, labels={"version": "2"}),
            "spec.topologySpreadConstraints.0.labelSelector.matchExpressions",
            [{"key": "version", "operator": "In", "values": ["2"]}],
            id="so do those of spread constraints",
        ),
    ],
)
def test_new_pod(obj: Json, path: str, value: Any) -> None:
    assert at(create("Pod", obj), path) == value


@pytest.mark.parametrize(
    ("tolerations", "added"),
    [
        pytest.param([], [NOT_READY, UNREACHABLE], id="a pod stays 300 s on a node that is gone"),
        pytest.param([{"operator": "Exists"}], [], id="one that tolerates everything stays for ever"),
        pytest.param(
            [{"operator": "Exists", "effect": "NoSchedule"}], [NOT_READY, UNREACHABLE], id="NoSchedule is not NoExecute"
        ),
        pytest.param([{"key": NOT_READY, "operator": "Exists"}], [UNREACHABLE], id="its own words stand"),
    ],
)
def test_tolerations_that_every_pod_gets(tolerations: list[Json], added: list[str]) -> None:
    found = create("Pod", pod({"tolerations": tolerations}))["spec"]["tolerations"]
    assert [toleration["key"] for toleration in found[len(tolerations) :]] == added
    assert all(toleration["tolerationSeconds"] == 300 for toleration in found[len(tolerations) :])


@pytest.mark.parametrize(
    ("resources", "quality"),
    [
        pytest.param({}, "BestEffort", id="who asks for nothing is best effort"),
        pytest.param({"requests": {"cpu": "0"}}, "BestEffort", id="zero is nothing"),
        pytest.param(
            {"requests": {"example.com/gpu": 1}, "limits": {"example.com/gpu": 1}},
            "BestEffort",
            id="devices do not count",
        ),
        pytest.param({"requests": {"cpu": "1"}}, "Burstable", id="requests make burstable"),
        pytest.param({"limits": {"cpu": "1"}}, "Burstable", id="a limit of one resource as well"),
        pytest.param({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed", id="both limits guarantee"),
        pytest.param(
            {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1000m", "memory": "1024Mi"}},
            "Guaranteed",
            id="amounts are compared, not texts",
        ),
        pytest.param(
            {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}},
            "Burstable",
            id="less than the limit",
        ),
    ],
)
def test_quality_of_service(resources: Json, quality: str) -> None:
    assert create("Pod", pod(container={"resources": resources}))["status"]["qosClass"] == quality


def test_a_global_default_class_is_for_pods_without_a_class() -> None:
    spec = create("Pod", pod(), with_global_default)["spec"]
    assert (spec["priority"], spec["priorityClassName"]) == (10, "silver")
