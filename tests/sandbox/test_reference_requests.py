"""The requests of the reference scheduler, one after another, over HTTP: what it asks for and must be answered.

The sequence is that of a kube-scheduler with leader election, no protobuf, on two nodes of four processors: two pods
of low priority, a gated one, one that fits nowhere, and then one of high priority that preempts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ksched.sandbox.server import SandboxOptions

from .conftest import Start
from .wire import MERGE, NODES, PODS, STRATEGIC, Answer, Client, Stream, node

Object = dict[str, Any]

AGENT = {"User-Agent": "kube-scheduler/v1.36.0 (linux/amd64) kubernetes/0000000/scheduler"}
RUNNING = "status.phase!=Succeeded,status.phase!=Failed"
SYNCED = (
    "/api/v1/namespaces",
    "/api/v1/nodes",
    "/api/v1/persistentvolumeclaims",
    "/api/v1/persistentvolumes",
    "/api/v1/pods",
    "/api/v1/replicationcontrollers",
    "/api/v1/services",
    "/apis/apps/v1/replicasets",
    "/apis/apps/v1/statefulsets",
    "/apis/policy/v1/poddisruptionbudgets",
    "/apis/resource.k8s.io/v1/deviceclasses",
    "/apis/resource.k8s.io/v1/resourceclaims",
    "/apis/resource.k8s.io/v1/resourceslices",
    "/apis/storage.k8s.io/v1/csidrivers",
    "/apis/storage.k8s.io/v1/csinodes",
    "/apis/storage.k8s.io/v1/csistoragecapacities",
    "/apis/storage.k8s.io/v1/storageclasses",
    "/apis/storage.k8s.io/v1/volumeattachments",
)
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
UNSCHEDULABLE = "0/2 nodes are available: 2 Insufficient cpu."


@pytest.fixture
def scheduler(start: Start) -> Client:
    """The scheduler's connection to a sandbox with a node agent."""
    client = start(SandboxOptions())
    client.headers.update(AGENT)
    for number in range(2):
        client.post(NODES, node(f"node-{number:06}"))
    for name, value in (("low", 1), ("high", 1000)):
        priority = {"metadata": {"name": name}, "value": value}
        client.post("/apis/scheduling.k8s.io/v1/priorityclasses", priority)
    return client


@pytest.fixture
def watches(scheduler: Client) -> Iterator[dict[str, Stream]]:
    """Every watch that the scheduler opens before it starts."""
    opened = {path: watch_list(scheduler, path) for path in SYNCED}
    yield opened
    for stream in opened.values():
        stream.close()


def watch_list(client: Client, path: str) -> Stream:
    parameters: dict[str, object] = {
        "allowWatchBookmarks": "true",
        "resourceVersionMatch": "NotOlderThan",
        "sendInitialEvents": "true",
        "timeoutSeconds": 347,
    }
    if path.endswith("/pods"):
        parameters["fieldSelector"] = RUNNING
    return client.watch(path, **parameters)


def synced(stream: Stream) -> list[Object]:
    """The objects of a watch list's initial events."""
    objects: list[Object] = []
    for event in stream:
        if event["type"] == "BOOKMARK":
            assert event["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
            return objects
        assert event["type"] == "ADDED"
        objects.append(event["object"])
    raise AssertionError("the stream ended before its initial events did")


def create_pod(client: Client, name: str, cpu: str, priority: str, **spec: Any) -> Object:
    container = {"name": "main", "image": "registry.example/app:1", "resources": {"requests": {"cpu": cpu}}}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container], "priorityClassName": priority, **spec},
    }
    return client.post(PODS, body)


def bind(client: Client, pod: Object, node_name: str) -> Answer:
    metadata = {key: pod["metadata"][key] for key in ("name", "namespace", "uid")}
    target = {"kind": "Node", "name": node_name}
    body = {"kind": "Binding", "apiVersion": "v1", "metadata": metadata, "target": target}
    return client.request("POST", f"{PODS}/{pod['metadata']['name']}/binding", body)


def event(pod: Object, suffix: str, action: str, reason: str, type_: str, note: str) -> Object:
    metadata = pod["metadata"]
    regarding = {key: metadata[key] for key in ("namespace", "name", "uid", "resourceVersion")}
    return {
        "kind": "Event",
        "apiVersion": "events.k8s.io/v1",
        "metadata": {"name": f"{metadata['name']}.{suffix}", "namespace": metadata["namespace"]},
        "eventTime": "2026-12-01T02:21:04.716203Z",
        "reportingController": "default-scheduler",
        "reportingInstance": "default-scheduler-host",
        "action": action,
        "reason": reason,
        "regarding": {"kind": "Pod", "apiVersion": "v1", **regarding},
        "note": note,
        "type": type_,
        "deprecatedSource": {},
        "deprecatedFirstTimestamp": None,
        "deprecatedLastTimestamp": None,
    }


def not_scheduled(message: str) -> Object:
    return {
        "lastProbeTime": None,
        "lastTransitionTime": "2026-12-01T02:21:04Z",
        "message": message,
        "observedGeneration": 1,
        "reason": "Unschedulable",
        "status": "False",
        "type": "PodScheduled",
    }


def conditions(pod: Object) -> dict[str, tuple[str, str]]:
    return {each["type"]: (each["status"], each.get("reason", "")) for each in pod["status"]["conditions"]}


def test_every_informer_syncs_and_then_follows(scheduler: Client, watches: dict[str, Stream]) -> None:
    found = {path: synced(stream) for path, stream in watches.items()}
    assert [each["metadata"]["name"] for each in found["/api/v1/nodes"]] == ["node-000000", "node-000001"]
    assert {each["metadata"]["name"] for each in found["/api/v1/namespaces"]} >= {"default", "kube-system"}
    create_pod(scheduler, "low-a", "3", "low")
    assert watches["/api/v1/pods"].next()["object"]["metadata"]["name"] == "low-a"
    version = scheduler.get(PODS)["metadata"]["resourceVersion"]
    again = scheduler.watch(
        "/api/v1/pods", allowWatchBookmarks="true", resourceVersion=version, timeoutSeconds=512, fieldSelector=RUNNING
    )
    create_pod(scheduler, "low-b", "3", "low")
    assert again.next()["object"]["metadata"]["name"] == "low-b"
    again.close()


def test_the_newer_events_api_is_discovered(scheduler: Client) -> None:
    found = scheduler.get("/apis/events.k8s.io/v1")
    assert (found["kind"], found["groupVersion"]) == ("APIResourceList", "events.k8s.io/v1")
    assert [each["name"] for each in found["resources"]] == ["events"]


def test_a_pod_is_bound_and_the_event_recorded(scheduler: Client, watches: dict[str, Stream]) -> None:
    pods = watches["/api/v1/pods"]
    synced(pods)
    created = create_pod(scheduler, "low-a", "3", "low")
    seen = pods.next()["object"]
    assert seen == created
    assert (seen["spec"]["priority"], seen["spec"]["schedulerName"]) == (1, "default-scheduler")
    answer = bind(scheduler, seen, "node-000000")
    assert (answer.code, answer.raw) == (
        201,
        b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201}',
    )
    bound = pods.next()["object"]
    assert bound["spec"]["nodeName"] == "node-000000"
    assert conditions(bound)["PodScheduled"] == ("True", "")
    note = "Successfully assigned default/low-a to node-000000"
    recorded = scheduler.request(
        "POST", EVENTS, event(seen, "18ecffda5b73186d", "Binding", "Scheduled", "Normal", note)
    )
    assert (recorded.code, recorded.body["note"]) == (201, note)
    running = pods.next()
    assert (running["type"], running["object"]["status"]["phase"]) == ("MODIFIED", "Running")


def test_a_pod_that_fits_nowhere_is_marked(scheduler: Client) -> None:
    pod = create_pod(scheduler, "toobig", "100", "low")
    hint = (
        "no new claims to deallocate, preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    )
    note = f"{UNSCHEDULABLE} {hint}"
    first = event(pod, "18ecffda5b73186e", "Scheduling", "FailedScheduling", "Warning", note)
    assert scheduler.request("POST", EVENTS, first).code == 201
    patch = {"status": {"conditions": [not_scheduled(note)]}}
    patched = scheduler.patch(f"{PODS}/toobig/status", patch, STRATEGIC)
    assert conditions(patched)["PodScheduled"] == ("False", "Unschedulable")
    assert patched["status"]["conditions"][0]["message"] == note
    # The next attempt fails with the same text: the event becomes a series, the status is left alone.
    series = {"series": {"count": 2, "lastObservedTime": "2026-12-01T02:22:04.000000Z"}}
    path = f"{EVENTS}/toobig.18ecffda5b73186e"
    assert scheduler.patch(path, series, STRATEGIC)["series"]["count"] == 2
    assert scheduler.patch(f"{PODS}/toobig/status", patch, STRATEGIC) == patched


def test_a_gated_pod_says_so_by_itself(scheduler: Client) -> None:
    pod = create_pod(scheduler, "gated", "1", "low", schedulingGates=[{"name": "example.com/wait"}])
    assert conditions(pod) == {"PodScheduled": ("False", "SchedulingGated")}


def test_preemption(scheduler: Client, watches: dict[str, Stream]) -> None:
    pods = watches["/api/v1/pods"]
    synced(pods)
    victim = create_pod(scheduler, "low-a", "3", "low", terminationGracePeriodSeconds=0)
    bind(scheduler, victim, "node-000000")
    high = create_pod(scheduler, "high", "3", "high")
    failed = event(high, "18ecffda5b73186f", "Scheduling", "FailedScheduling", "Warning", UNSCHEDULABLE)
    assert scheduler.request("POST", EVENTS, failed).code == 201
    nominated = {"status": {"conditions": [not_scheduled(UNSCHEDULABLE)], "nominatedNodeName": "node-000000"}}
    patched = scheduler.patch(f"{PODS}/high/status", nominated, STRATEGIC)
    assert patched["status"]["nominatedNodeName"] == "node-000000"
    target = {
        "lastProbeTime": None,
        "lastTransitionTime": "2026-12-01T02:21:05Z",
        "message": "default-scheduler: preempting to accommodate a higher priority pod",
        "observedGeneration": 1,
        "reason": "PreemptionByScheduler",
        "status": "True",
        "type": "DisruptionTarget",
    }
    order = [{"type": "PodScheduled"}, {"type": "DisruptionTarget"}]
    disrupted = scheduler.patch(
        f"{PODS}/low-a/status", {"status": {"$setElementOrder/conditions": order, "conditions": [target]}}, STRATEGIC
    )
    assert conditions(disrupted)["DisruptionTarget"] == ("True", "PreemptionByScheduler")
    assert conditions(disrupted)["PodScheduled"] == ("True", "")
    assert scheduler.delete(f"{PODS}/low-a", {"kind": "DeleteOptions", "apiVersion": "v1"})["kind"] == "Pod"
    note = f"Preempted by pod {high['metadata']['uid']} on node node-000000"
    preempted = event(victim, "18ecffda5b731870", "Preempting", "Preempted", "Normal", note)
    assert scheduler.request("POST", EVENTS, preempted).code == 201
    while True:
        seen = pods.next()
        if seen["type"] == "DELETED":
            break
    assert seen["object"]["metadata"]["name"] == "low-a"
    assert bind(scheduler, high, "node-000000").code == 201
    placed = scheduler.get(f"{PODS}/high")
    assert placed["spec"]["nodeName"] == "node-000000"
    assert "nominatedNodeName" not in placed["status"]
    assert conditions(placed)["PodScheduled"][0] == "True"
    assert scheduler.get("/sandbox/audit")["ok"]


def test_leadership(scheduler: Client) -> None:
    path = f"{LEASES}/kube-scheduler"
    refused = scheduler.refused("GET", path, timeout="5s")
    assert refused == (404, "NotFound", 'leases.coordination.k8s.io "kube-scheduler" not found')
    spec = {
        "holderIdentity": "host_one",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-12-01T02:21:04.000000Z",
        "renewTime": "2026-12-01T02:21:04.000000Z",
        "leaseTransitions": 0,
    }
    lease = {
        "kind": "Lease",
        "apiVersion": "coordination.k8s.io/v1",
        "metadata": {"name": "kube-scheduler", "namespace": "kube-system"},
        "spec": spec,
    }
    created = scheduler.post(LEASES, lease, timeout="5s")
    assert scheduler.get(path, timeout="5s") == created
    renewed = scheduler.put(
        path, {**created, "spec": {**spec, "renewTime": "2026-12-01T02:21:06.000000Z"}}, timeout="5s"
    )
    stale = {**created, "spec": {**spec, "holderIdentity": "host_two"}}
    assert scheduler.refused("PUT", path, stale, timeout="5s")[:2] == (409, "Conflict")
    assert scheduler.refused("POST", LEASES, lease, timeout="5s")[:2] == (409, "AlreadyExists")
    metadata = renewed["metadata"]
    about = {"kind": "Lease", "namespace": "kube-system", "name": "kube-scheduler", "uid": metadata["uid"]}
    became = {
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": {"name": "kube-scheduler.18ecffda5b731871", "namespace": "kube-system"},
        "involvedObject": {
            **about,
            "apiVersion": "coordination.k8s.io/v1",
            "resourceVersion": metadata["resourceVersion"],
        },
        "reason": "LeaderElection",
        "message": "host_one became leader",
        "source": {"component": "default-scheduler"},
        "firstTimestamp": "2026-12-01T02:21:04Z",
        "lastTimestamp": "2026-12-01T02:21:04Z",
        "count": 1,
        "type": "Normal",
        "eventTime": None,
        "reportingComponent": "default-scheduler",
        "reportingInstance": "",
    }
    assert scheduler.post("/api/v1/namespaces/kube-system/events", became)["message"] == "host_one became leader"


def test_delegated_authentication_is_survived(scheduler: Client) -> None:
    path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
    assert scheduler.refused("GET", path)[0] == 404
    token = scheduler.post("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "x"}})
    assert token["status"]["authenticated"] is True
    attributes = {"path": "/metrics", "verb": "get"}
    access = scheduler.post(
        "/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": {"nonResourceAttributes": attributes}}
    )
    assert access["status"]["allowed"] is True


def test_a_pod_that_ends_leaves_the_schedulers_sight(scheduler: Client, watches: dict[str, Stream]) -> None:
    pods = watches["/api/v1/pods"]
    synced(pods)
    created = create_pod(scheduler, "job", "1", "low")
    scheduler.patch(f"{PODS}/job/status", {"status": {"phase": "Succeeded"}}, MERGE)
    assert [(each["type"], each["object"]["metadata"]["name"]) for each in pods.take(2)] == [
        ("ADDED", created["metadata"]["name"]),
        ("DELETED", created["metadata"]["name"]),
    ]
