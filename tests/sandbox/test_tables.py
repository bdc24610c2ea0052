"""What `kubectl get` shows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ksched.sandbox import tables
from ksched.sandbox.ages import age, human_duration
from ksched.sandbox.resources import STORED_KINDS
from ksched.sandbox.tables import table

Json = dict[str, Any]

NOW = datetime(2026, 12, 1, 12, 0, 0, tzinfo=UTC)
MINUTE = 60
HOUR = 60 * MINUTE
DAY = 24 * HOUR


def ago(seconds: int) -> str:
    return (NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def row(kind: str, obj: Json) -> dict[str, Any]:
    shown = table(kind, [obj], list_meta={}, now=NOW, include_object="None")
    names = [column["name"] for column in shown["columnDefinitions"]]
    return dict(zip(names, shown["rows"][0]["cells"], strict=True))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        pytest.param(-5, "<invalid>", id="the future"),
        pytest.param(-0.5, "0s", id="clocks that differ a little"),
        pytest.param(0, "0s", id="now"),
        pytest.param(119, "119s", id="seconds up to two minutes"),
        pytest.param(120, "2m", id="two minutes"),
        pytest.param(125, "2m5s", id="minutes and seconds"),
        pytest.param(10 * MINUTE + 5, "10m", id="minutes alone from ten"),
        pytest.param(3 * HOUR, "3h", id="hours"),
        pytest.param(3 * HOUR + 5 * MINUTE, "3h5m", id="hours and minutes"),
        pytest.param(9 * HOUR + 5 * MINUTE, "9h", id="hours alone from eight"),
        pytest.param(47 * HOUR, "47h", id="hours up to two days"),
        pytest.param(2 * DAY + 3 * HOUR, "2d3h", id="days and hours"),
        pytest.param(9 * DAY + 3 * HOUR, "9d", id="days alone from eight"),
        pytest.param(729 * DAY, "729d", id="days up to two years"),
        pytest.param(800 * DAY, "2y70d", id="years and days"),
        pytest.param(9 * 365 * DAY, "9y", id="years alone from eight"),
    ],
)
def test_age(seconds: float, text: str) -> None:
    assert human_duration(seconds) == text


@pytest.mark.parametrize(
    "stamp", [pytest.param(None, id="no time"), pytest.param("soon", id="no time that can be read")]
)
def test_unknown_age(stamp: str | None) -> None:
    assert age(stamp, NOW) == "<unknown>"


def pod(status: Json | None = None, spec: Json | None = None, **metadata: Any) -> Json:
    containers = [{"name": "main", "image": "a"}, {"name": "side", "image": "b"}]
    return {
        "metadata": {"name": "web", "creationTimestamp": ago(125), **metadata},
        "spec": {"containers": containers, **(spec or {})},
        "status": {"phase": "Pending", **(status or {})},
    }


RUNNING = {"ready": True, "state": {"running": {}}, "restartCount": 0}
SIDECAR = [{"name": "init", "image": "i", "restartPolicy": "Always"}]


@pytest.mark.parametrize(
    ("obj", "ready", "status", "restarts"),
    [
        pytest.param(pod(), "0/2", "Pending", "0", id="a pending pod"),
        pytest.param(
            pod({"conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]}),
            "0/2",
            "SchedulingGated",
            "0",
            id="a gated pod",
        ),
        pytest.param(
            pod({"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}),
            "0/2",
            "Pending",
            "0",
            id="a pod that fits nowhere",
        ),
        pytest.param(
            pod({"phase": "Running", "containerStatuses": [{**RUNNING, "name": "main"}, {**RUNNING, "name": "side"}]}),
            "2/2",
            "Running",
            "0",
            id="a running pod",
        ),
        pytest.param(
            pod({"phase": "Running"}, deletionTimestamp=ago(1)), "0/2", "Terminating", "0", id="a pod that is leaving"
        ),
        pytest.param(
            pod({"phase": "Failed", "reason": "Evicted"}), "0/2", "Evicted", "0", id="a reason says more than the phase"
        ),
        pytest.param(
            pod(
                {
                    "phase": "Running",
                    "containerStatuses": [
                        {
                            "name": "main",
                            "ready": False,
                            "restartCount": 3,
                            "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                            "lastState": {"terminated": {"finishedAt": ago(10)}},
                        },
                        {**RUNNING, "name": "side"},
                    ],
                }
            ),
            "1/2",
            "CrashLoopBackOff",
            "3 (10s ago)",
            id="a container that crashes",
        ),
        pytest.param(
            pod(
                {
                    "phase": "Succeeded",
                    "containerStatuses": [{"name": "main", "state": {"terminated": {"reason": "Completed"}}}],
                }
            ),
            "0/2",
            "Completed",
            "0",
            id="a pod that is through",
        ),
        pytest.param(
            pod({"containerStatuses": [{"name": "main", "state": {"terminated": {"exitCode": 3}}}]}),
            "0/2",
            "ExitCode:3",
            "0",
            id="an exit without a reason",
        ),
        pytest.param(
            pod(
                {"initContainerStatuses": [{"name": "init", "state": {"waiting": {"reason": "PodInitializing"}}}]},
                {"initContainers": [{"name": "init", "image": "i"}]},
            ),
            "0/2",
            "Init:0/1",
            "0",
            id="a pod that initialises",
        ),
        pytest.param(
            pod(
                {
                    "initContainerStatuses": [
                        {"name": "init", "state": {"terminated": {"exitCode": 1, "reason": "Error"}}}
                    ]
                },
                {"initContainers": [{"name": "init", "image": "i"}]},
            ),
            "0/2",
            "Init:Error",
            "0",
            id="a pod that fails to initialise",
        ),
        pytest.param(
            pod(
                {
                    "phase": "Running",
                    "initContainerStatuses": [{**RUNNING, "name": "init", "started": True}],
                    "containerStatuses": [{**RUNNING, "name": "main"}, {**RUNNING, "name": "side"}],
                },
                {"initContainers": SIDECAR},
            ),
            "3/3",
            "Running",
            "0",
            id="sidecars count",
        ),
    ],
)
def test_pod(obj: Json, ready: str, status: str, restarts: str) -> None:
    shown = row("Pod", obj)
    assert (shown["Ready"], shown["Status"], shown["Restarts"], shown["Age"]) == (ready, status, restarts, "2m5s")


def test_wide_columns_of_a_pod() -> None:
    shown = row("Pod", pod({"nominatedNodeName": "n2", "podIP": "10.0.0.1"}, {"nodeName": "n1"}))
    assert (shown["IP"], shown["Node"], shown["Nominated Node"], shown["Readiness Gates"]) == (
        "10.0.0.1",
        "n1",
        "n2",
        "<none>",
    )


def node(spec: Json | None = None, ready: str | None = "True", labels: Json | None = None) -> Json:
    conditions = [] if ready is None else [{"type": "Ready", "status": ready}]
    return {
        "metadata": {"name": "n", "labels": labels or {}, "creationTimestamp": ago(60)},
        "spec": spec or {},
        "status": {"conditions": conditions, "nodeInfo": {"kubeletVersion": "v1.36.0"}},
    }


@pytest.mark.parametrize(
    ("obj", "status", "roles"),
    [
        pytest.param(node(), "Ready", "<none>", id="a ready node"),
        pytest.param(node(ready="False"), "NotReady", "<none>", id="a node that is not"),
        pytest.param(node(ready="Unknown"), "NotReady", "<none>", id="a node that is silent"),
        pytest.param(node(ready=None), "Unknown", "<none>", id="a node that has not reported"),
        pytest.param(node({"unschedulable": True}), "Ready,SchedulingDisabled", "<none>", id="a cordoned node"),
        pytest.param(
            node(labels={"node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/infra": ""}),
            "Ready",
            "infra,worker",
            id="roles come from labels",
        ),
    ],
)
def test_node(obj: Json, status: str, roles: str) -> None:
    shown = row("Node", obj)
    assert (shown["Status"], shown["Roles"], shown["Version"]) == (status, roles, "v1.36.0")


TEMPLATE = {"spec": {"containers": [{"name": "main", "image": "nginx"}], "nodeSelector": {"a": "b"}}}
SELECTOR = {
    "matchLabels": {"app": "web"},
    "matchExpressions": [{"key": "x", "operator": "NotIn", "values": ["2", "1"]}],
}


@pytest.mark.parametrize(
    ("kind", "obj", "shown"),
    [
        pytest.param(
            "Deployment",
            {
                "spec": {"replicas": 3, "selector": SELECTOR, "template": TEMPLATE},
                "status": {"readyReplicas": 2, "updatedReplicas": 3, "availableReplicas": 1},
            },
            {"Ready": "2/3", "Up-to-date": 3, "Available": 1, "Images": "nginx", "Selector": "app=web,x notin (1,2)"},
            id="a deployment",
        ),
        pytest.param(
            "ReplicaSet",
            {"spec": {"replicas": 3}, "status": {"replicas": 2, "readyReplicas": 1}},
            {"Desired": 3, "Current": 2, "Ready": 1},
            id="a replica set",
        ),
        pytest.param(
            "DaemonSet",
            {"spec": {"template": TEMPLATE}, "status": {"desiredNumberScheduled": 5, "numberReady": 4}},
            {"Desired": 5, "Ready": 4, "Available": 0, "Node Selector": "a=b"},
            id="a daemon set",
        ),
        pytest.param("StatefulSet", {"spec": {"replicas": 2}, "status": {}}, {"Ready": "0/2"}, id="a stateful set"),
        pytest.param(
            "Job",
            {"spec": {"completions": 3}, "status": {"succeeded": 1, "startTime": ago(30)}},
            {"Status": "Running", "Completions": "1/3", "Duration": "30s"},
            id="a job",
        ),
        pytest.param(
            "Service",
            {
                "spec": {
                    "type": "NodePort",
                    "clusterIP": "10.0.0.1",
                    "ports": [{"port": 80, "nodePort": 30000, "protocol": "TCP"}],
                }
            },
            {"Type": "NodePort", "Cluster-IP": "10.0.0.1", "External-IP": "<none>", "Port(s)": "80:30000/TCP"},
            id="a service",
        ),
        pytest.param("Service", {"spec": {"type": "LoadBalancer"}}, {"External-IP": "<pending>"}, id="a load balancer"),
        pytest.param(
            "Event",
            {
                "involvedObject": {"kind": "Pod", "name": "web"},
                "type": "Warning",
                "reason": "FailedScheduling",
                "message": "0/2 nodes are available",
                "eventTime": ago(30),
                "series": {"count": 4, "lastObservedTime": ago(5)},
                "reportingComponent": "default-scheduler",
                "source": {},
            },
            {"Last Seen": "5s", "First Seen": "30s", "Object": "pod/web", "Count": 4, "Source": "default-scheduler"},
            id="an event of the new API, with a series",
        ),
        pytest.param(
            "Event",
            {
                "involvedObject": {"kind": "Lease", "name": "l"},
                "firstTimestamp": ago(9),
                "lastTimestamp": ago(8),
                "count": 2,
            },
            {"Last Seen": "8s", "First Seen": "9s", "Count": 2, "Object": "lease/l"},
            id="an event of the old API",
        ),
        pytest.param("Namespace", {"status": {"phase": "Active"}}, {"Status": "Active"}, id="a namespace"),
        pytest.param("Lease", {"spec": {"holderIdentity": "me"}}, {"Holder": "me"}, id="a lease"),
        pytest.param("PriorityClass", {"value": 5}, {"Value": 5, "Global-Default": False}, id="a priority class"),
        pytest.param(
            "PersistentVolumeClaim",
            {
                "spec": {"volumeName": "v", "volumeMode": "Filesystem", "storageClassName": "fast"},
                "status": {"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]},
            },
            {"Status": "Bound", "Volume": "v", "Capacity": "1Gi", "Access Modes": "RWO", "StorageClass": "fast"},
            id="a claim",
        ),
        pytest.param(
            "PersistentVolume",
            {
                "spec": {"capacity": {"storage": "1Gi"}, "claimRef": {"namespace": "a", "name": "b"}},
                "status": {"phase": "Bound"},
            },
            {"Capacity": "1Gi", "Claim": "a/b", "Status": "Bound"},
            id="a volume",
        ),
        pytest.param("ConfigMap", {"data": {"a": "b"}, "binaryData": {"c": "d"}}, {"Data": 2}, id="a config map"),
        pytest.param("Secret", {"type": "Opaque", "data": {"a": "b"}}, {"Type": "Opaque", "Data": 1}, id="a secret"),
        pytest.param(
            "PodDisruptionBudget",
            {"spec": {"minAvailable": "50%"}, "status": {"disruptionsAllowed": 1}},
            {"Min Available": "50%", "Max Unavailable": "N/A", "Allowed Disruptions": 1},
            id="a disruption budget",
        ),
        pytest.param(
            "ResourceClaim",
            {"status": {"allocation": {}, "reservedFor": [{"uid": "1"}]}},
            {"State": "allocated,reserved"},
            id="a resource claim",
        ),
        pytest.param("PodGroup", {}, {"Age": "60s"}, id="any other kind has an age"),
    ],
)
def test_row(kind: str, obj: Json, shown: Json) -> None:
    found = row(kind, {"metadata": {"name": "it", "creationTimestamp": ago(60)}, **obj})
    assert found["Name"] == "it"
    assert {title: found[title] for title in shown} == shown


@pytest.mark.parametrize("kind", sorted(STORED_KINDS))
def test_every_kind_has_a_table_even_of_an_empty_object(kind: str) -> None:
    shown = table(kind, [{"metadata": {"name": "it"}}], list_meta={}, now=NOW, include_object="None")
    assert len(shown["rows"][0]["cells"]) == len(shown["columnDefinitions"])
    assert all(cell is not None for cell in shown["rows"][0]["cells"])


def test_tables_are_of_kinds_that_are_served() -> None:
    assert set(tables._KINDS) <= set(STORED_KINDS)


@pytest.mark.parametrize(
    ("include", "expected"),
    [
        pytest.param("Metadata", "PartialObjectMetadata", id="the metadata"),
        pytest.param("", "PartialObjectMetadata", id="the metadata if nothing is asked"),
        pytest.param("Object", "Pod", id="the whole object"),
    ],
)
def test_rows_carry_what_is_asked_for(include: str, expected: str) -> None:
    shown = table(
        "Pod", [{"kind": "Pod", **pod()}], list_meta={"resourceVersion": "5"}, now=NOW, include_object=include
    )
    assert shown["rows"][0]["object"]["kind"] == expected
    assert shown["rows"][0]["object"]["metadata"]["name"] == "web"
    assert shown["metadata"] == {"resourceVersion": "5"}


def test_wide_columns_have_priority_1() -> None:
    columns = table("Pod", [], list_meta={}, now=NOW, include_object="None")["columnDefinitions"]
    assert [column["name"] for column in columns if column["priority"] == 0] == [
        "Name",
        "Ready",
        "Status",
        "Restarts",
        "Age",
    ]
