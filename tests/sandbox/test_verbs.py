"""Create, replace, patch, delete, bind, evict, scale: what each does and what it refuses, over HTTP."""

from __future__ import annotations

import time
from typing import Any

import pytest

from .wire import APPLY, JSON_PATCH, MERGE, NODES, PODS, STRATEGIC, Client, binding, node, pod

Object = dict[str, Any]
MAPS = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


def config_map(name: str, **metadata: Any) -> Object:
    return {"metadata": {"name": name, **metadata}, "data": {"key": "value"}}


def deployment(name: str, replicas: int) -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod("template")["spec"]},
        },
    }


def owner(obj: Object, kind: str = "ConfigMap") -> Object:
    return {"apiVersion": "v1", "kind": kind, "name": obj["metadata"]["name"], "uid": obj["metadata"]["uid"]}


def gone(client: Client, path: str) -> bool:
    return client.request("GET", path).code == 404


def eventually_gone(client: Client, path: str) -> None:
    deadline = time.monotonic() + 5
    while not gone(client, path):
        assert time.monotonic() < deadline, f"{path} is still there"
        time.sleep(0.01)


# Create


def test_a_created_object_is_what_is_read_back(client: Client) -> None:
    created = client.post(MAPS, config_map("a"))
    assert (created["kind"], created["apiVersion"]) == ("ConfigMap", "v1")
    assert created["metadata"].keys() >= {"uid", "creationTimestamp", "resourceVersion"}
    assert client.get(f"{MAPS}/a") == created


def test_a_generated_name_keeps_its_prefix(client: Client) -> None:
    names = [client.post(MAPS, {"metadata": {"generateName": "made-"}})["metadata"]["name"] for _ in range(3)]
    assert len(set(names)) == 3
    assert all(name.startswith("made-") and len(name) == len("made-") + 5 for name in names)


@pytest.mark.parametrize(
    ("path", "body", "code", "reason", "message"),
    [
        pytest.param(
            MAPS,
            config_map("taken"),
            409,
            "AlreadyExists",
            'configmaps "taken" already exists',
            id="a name that is taken",
        ),
        pytest.param(
            "/api/v1/namespaces/nowhere/pods",
            pod("a"),
            404,
            "NotFound",
            'namespaces "nowhere" not found',
            id="no namespace",
        ),
        pytest.param(
            MAPS,
            config_map("a", namespace="other"),
            400,
            "BadRequest",
            "the namespace of the provided object does not match the namespace sent on the request "
            "(other is not default)",
            id="a namespace unlike the path's",
        ),
        pytest.param(
            MAPS,
            config_map("a", resourceVersion="5"),
            400,
            "BadRequest",
            "resourceVersion should not be set on objects to be created",
            id="a version on a new object",
        ),
        pytest.param(
            "/api/v1/configmaps",
            config_map("a"),
            400,
            "BadRequest",
            "an empty namespace may not be set during creation",
            id="no namespace in the path",
        ),
        pytest.param(
            PODS,
            {"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "a"}},
            400,
            "BadRequest",
            "the object provided is unrecognized (must be of type Pod): expected v1, Kind=Pod, got v1, Kind=Secret",
            id="an object of another kind",
        ),
    ],
)
def test_what_a_create_refuses(client: Client, path: str, body: Object, code: int, reason: str, message: str) -> None:
    client.post(MAPS, config_map("taken"))
    assert client.refused("POST", path, body) == (code, reason, message)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        pytest.param(b"{", 400, id="half a body"),
        pytest.param(b"", 400, id="no body"),
        pytest.param(b"[]", 400, id="a list"),
        pytest.param(b'"pod"', 400, id="a string"),
        pytest.param(b'{"metadata": 3}', 400, id="metadata that is a number"),
        pytest.param(b'{"metadata": {}}', 422, id="no name"),
        pytest.param(b'{"metadata": {"name": "Not A Name"}}', 422, id="a name that is none"),
    ],
)
def test_a_malformed_body_is_refused(client: Client, body: bytes, code: int) -> None:
    assert client.refused("POST", MAPS, body)[0] == code


def test_details_name_the_object(client: Client) -> None:
    status = client.request("GET", f"{DEPLOYMENTS}/a").body
    assert status["details"] == {"name": "a", "group": "apps", "kind": "deployments"}
    assert status["message"] == 'deployments.apps "a" not found'


def test_a_dry_run_answers_as_if(client: Client) -> None:
    created = client.post(MAPS, config_map("a"), dryRun="All")
    assert created["metadata"]["uid"]
    assert gone(client, f"{MAPS}/a")
    assert client.refused("POST", MAPS, config_map("a"), dryRun="Some")[:2] == (400, "BadRequest")


# Replace and patch


def test_a_replace_from_the_present_revision_succeeds_and_from_an_older_one_conflicts(client: Client) -> None:
    first = client.post(MAPS, config_map("a"))
    second = client.put(f"{MAPS}/a", {**first, "data": {"key": "new"}})
    assert second["data"] == {"key": "new"}
    assert client.refused("PUT", f"{MAPS}/a", first) == (
        409,
        "Conflict",
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; '
        "please apply your changes to the latest version and try again",
    )
    unconditional = {"metadata": {"name": "a"}, "data": {"key": "newest"}}
    assert client.put(f"{MAPS}/a", unconditional)["metadata"]["uid"] == first["metadata"]["uid"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        pytest.param({"metadata": {"name": "b"}}, 400, id="another name"),
        pytest.param({"metadata": {"name": "a", "uid": "another"}}, 409, id="another uid"),
        pytest.param({"metadata": {"name": "a", "namespace": "other"}}, 400, id="another namespace"),
    ],
)
def test_what_a_replace_refuses(client: Client, body: Object, code: int) -> None:
    client.post(MAPS, config_map("a"))
    assert client.refused("PUT", f"{MAPS}/a", body)[0] == code


PATCHED = {"metadata": {"labels": {"new": "label"}}}


@pytest.mark.parametrize(
    ("media", "body"),
    [
        pytest.param(MERGE, PATCHED, id="merge"),
        pytest.param(STRATEGIC, PATCHED, id="strategic merge"),
        pytest.param(
            JSON_PATCH, [{"op": "add", "path": "/metadata/labels", "value": {"new": "label"}}], id="JSON patch"
        ),
        pytest.param(
            APPLY,
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": {"new": "label"}}},
            id="apply",
        ),
        pytest.param(
            APPLY,
            b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  labels: {new: label}\n",
            id="apply, as YAML",
        ),
    ],
)
def test_every_kind_of_patch(client: Client, media: str, body: Any) -> None:
    created = client.post(MAPS, config_map("a"))
    patched = client.patch(f"{MAPS}/a", body, media, fieldManager="test")
    assert patched["metadata"]["labels"] == {"new": "label"}
    assert patched["metadata"]["uid"] == created["metadata"]["uid"]
    assert patched["data"] == {"key": "value"}


def test_an_apply_creates_what_is_not_there(client: Client) -> None:
    wanted = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "1"}}
    answer = client.request("PATCH", f"{MAPS}/a", wanted, media=APPLY, fieldManager="test")
    assert (answer.code, answer.body["data"]) == (201, {"x": "1"})
    assert client.refused("PATCH", f"{MAPS}/b", wanted, media=MERGE)[0] == 404


def test_an_apply_that_takes_another_owners_field_conflicts_unless_forced(client: Client) -> None:
    def wanted(value: str) -> Object:
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": value}}

    client.patch(f"{MAPS}/a", wanted("1"), APPLY, fieldManager="one")
    code, reason, _ = client.refused("PATCH", f"{MAPS}/a", wanted("2"), media=APPLY, fieldManager="two")
    assert (code, reason) == (409, "Conflict")
    assert client.patch(f"{MAPS}/a", wanted("2"), APPLY, fieldManager="two", force="true")["data"] == {"x": "2"}


@pytest.mark.parametrize(
    ("media", "body", "code"),
    [
        pytest.param("application/vnd.kubernetes.protobuf", b"k8s\x00", 415, id="protobuf"),
        pytest.param("text/plain", b"hello", 415, id="text"),
        pytest.param("application/json", PATCHED, 415, id="no patch format at all"),
        pytest.param(MERGE, b"{", 400, id="half a patch"),
        pytest.param(JSON_PATCH, [{"op": "explode", "path": "/"}], 400, id="an unknown operation"),
        pytest.param(JSON_PATCH, [{"op": "test", "path": "/data/key", "value": "other"}], 422, id="a test that fails"),
        pytest.param(MERGE, {"metadata": {"resourceVersion": "1"}}, 409, id="an older version"),
        pytest.param(MERGE, {"metadata": {"name": "b"}}, 400, id="another name"),
        pytest.param(APPLY, PATCHED, 422, id="an apply without a manager"),
    ],
)
def test_what_a_patch_refuses(client: Client, media: str, body: Any, code: int) -> None:
    client.post(MAPS, config_map("a"))
    assert client.refused("PATCH", f"{MAPS}/a", body, media=media)[0] == code


def test_status_is_written_through_its_subresource_alone(client: Client) -> None:
    client.post(PODS, pod("a"))
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    written = client.patch(f"{PODS}/a/status", {"status": {"conditions": [condition]}}, STRATEGIC)
    assert written["status"]["conditions"] == [condition]
    client.patch(f"{PODS}/a", {"status": {"phase": "Running"}}, MERGE)
    assert client.get(f"{PODS}/a/status")["status"]["phase"] == "Pending"


# Delete


def test_a_deletion_answers_with_a_status_and_a_pods_with_the_pod(client: Client) -> None:
    created = client.post(MAPS, config_map("a"))
    status = client.delete(f"{MAPS}/a")
    assert status["status"] == "Success"
    assert status["details"] == {"name": "a", "kind": "configmaps", "uid": created["metadata"]["uid"]}
    client.post(PODS, pod("a"))
    assert client.delete(f"{PODS}/a")["kind"] == "Pod"
    assert client.refused("DELETE", f"{PODS}/a")[:2] == (404, "NotFound")


@pytest.mark.parametrize("field", ["uid", "resourceVersion"])
def test_preconditions_guard_a_deletion(client: Client, field: str) -> None:
    created = client.post(MAPS, config_map("a"))
    code, reason, message = client.refused("DELETE", f"{MAPS}/a", {"preconditions": {field: "1"}})
    assert (code, reason) == (409, "Conflict")
    assert message.startswith('Operation cannot be fulfilled on configmaps "a": Precondition failed: ')
    client.delete(f"{MAPS}/a", {"preconditions": {field: created["metadata"][field]}})
    assert gone(client, f"{MAPS}/a")


def test_a_pod_on_a_node_has_its_grace_period(client: Client) -> None:
    client.post(PODS, pod("a"))
    client.post(f"{PODS}/a/binding", binding("a", "node-1"))
    deleted = client.delete(f"{PODS}/a")["metadata"]
    assert deleted["deletionGracePeriodSeconds"] == 30
    assert deleted["deletionTimestamp"] > deleted["creationTimestamp"]
    assert client.delete(f"{PODS}/a", {"gracePeriodSeconds": 60})["metadata"] == deleted
    assert client.delete(f"{PODS}/a", {"gracePeriodSeconds": 5})["metadata"]["deletionGracePeriodSeconds"] == 5
    client.delete(f"{PODS}/a", gracePeriodSeconds=0)
    assert gone(client, f"{PODS}/a")


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_needs_no_grace(client: Client, phase: str) -> None:
    client.post(PODS, pod("a"))
    client.post(f"{PODS}/a/binding", binding("a", "node-1"))
    client.patch(f"{PODS}/a/status", {"status": {"phase": phase}}, MERGE)
    client.delete(f"{PODS}/a")
    assert gone(client, f"{PODS}/a")


def test_finalizers_hold_an_object_until_they_are_taken_away(client: Client) -> None:
    client.post(MAPS, config_map("a", finalizers=["example.com/keep"]))
    assert client.delete(f"{MAPS}/a")["metadata"]["deletionTimestamp"]
    assert not gone(client, f"{MAPS}/a")
    client.patch(f"{MAPS}/a", {"metadata": {"finalizers": None}}, MERGE)
    assert gone(client, f"{MAPS}/a")


def test_dependents_go_with_their_owner(client: Client) -> None:
    top = client.post(MAPS, config_map("top"))
    middle = client.post(MAPS, config_map("middle", ownerReferences=[owner(top)]))
    client.post(MAPS, config_map("bottom", ownerReferences=[owner(middle)]))
    client.delete(f"{MAPS}/top")
    for name in ("middle", "bottom"):
        eventually_gone(client, f"{MAPS}/{name}")


def test_a_dependent_with_another_owner_stays(client: Client) -> None:
    one, two = (client.post(MAPS, config_map(name)) for name in ("one", "two"))
    client.post(MAPS, config_map("child", ownerReferences=[owner(one), owner(two)]))
    client.delete(f"{MAPS}/one")
    client.post(MAPS, config_map("later"))
    assert not gone(client, f"{MAPS}/child")
    client.delete(f"{MAPS}/two")
    eventually_gone(client, f"{MAPS}/child")


def test_orphans_lose_their_reference(client: Client) -> None:
    top = client.post(MAPS, config_map("top"))
    client.post(MAPS, config_map("child", ownerReferences=[owner(top)]))
    client.delete(f"{MAPS}/top", {"propagationPolicy": "Orphan"})
    assert client.get(f"{MAPS}/child")["metadata"].get("ownerReferences", []) == []


def test_a_foreground_deletion_waits_for_the_dependents(client: Client) -> None:
    top = client.post(MAPS, config_map("top"))
    client.post(MAPS, config_map("child", ownerReferences=[owner(top)], finalizers=["example.com/keep"]))
    waiting = client.delete(f"{MAPS}/top", {"propagationPolicy": "Foreground"})
    assert waiting["metadata"]["finalizers"] == ["foregroundDeletion"]
    deadline = time.monotonic() + 5
    while "deletionTimestamp" not in client.get(f"{MAPS}/child")["metadata"]:
        assert time.monotonic() < deadline
    assert not gone(client, f"{MAPS}/top")
    client.patch(f"{MAPS}/child", {"metadata": {"finalizers": []}}, MERGE)
    eventually_gone(client, f"{MAPS}/top")


def test_a_namespace_takes_its_objects_along(client: Client) -> None:
    client.post("/api/v1/namespaces", {"metadata": {"name": "short"}})
    client.post("/api/v1/namespaces/short/pods", pod("a"))
    client.post("/api/v1/namespaces/short/pods/a/binding", binding("a", "node-1") | {"metadata": {"name": "a"}})
    client.delete("/api/v1/namespaces/short")
    assert client.get("/api/v1/namespaces/short/pods")["items"] == []
    assert client.refused("POST", "/api/v1/namespaces/short/pods", pod("b"))[0] == 404
    assert client.refused("DELETE", "/api/v1/namespaces/default")[:2] == (403, "Forbidden")


def test_a_collection_is_deleted_by_selector(client: Client) -> None:
    for name, app in (("a", "web"), ("b", "web"), ("c", "db")):
        client.post(PODS, pod(name, labels={"app": app}))
    deleted = client.delete(PODS, labelSelector="app=web")
    assert deleted["kind"] == "PodList"
    assert [item["metadata"]["name"] for item in deleted["items"]] == ["a", "b"]
    assert [item["metadata"]["name"] for item in client.get(PODS)["items"]] == ["c"]


# Bind


def test_a_binding_places_the_pod(client: Client) -> None:
    created = client.post(PODS, pod("a"))
    answer = client.request("POST", f"{PODS}/a/binding", binding("a", "node-2", created["metadata"]["uid"]))
    assert answer.code == 201
    assert answer.body == {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
    bound = client.get(f"{PODS}/a")
    assert bound["spec"]["nodeName"] == "node-2"
    assert bound["metadata"]["labels"]["topology.kubernetes.io/zone"] == "b"
    conditions = {each["type"]: each["status"] for each in bound["status"]["conditions"]}
    assert conditions == {"PodScheduled": "True"}


def test_a_binding_may_be_posted_to_the_older_collection(client: Client) -> None:
    client.post(PODS, pod("a"))
    client.post("/api/v1/namespaces/default/bindings", binding("a", "node-1"))
    assert client.get(f"{PODS}/a")["spec"]["nodeName"] == "node-1"


@pytest.mark.parametrize(
    ("name", "body", "code", "message"),
    [
        pytest.param("nobody", binding("nobody", "node-1"), 404, 'pods "nobody" not found', id="no such pod"),
        pytest.param(
            "placed",
            binding("placed", "node-2"),
            409,
            'Operation cannot be fulfilled on pods/binding "placed": pod placed is already assigned to node "node-1"',
            id="a pod that is bound",
        ),
        pytest.param(
            "placed",
            binding("placed", "node-1"),
            409,
            'Operation cannot be fulfilled on pods/binding "placed": pod placed is already assigned to node "node-1"',
            id="a pod that is bound to the same node",
        ),
        pytest.param(
            "leaving",
            binding("leaving", "node-1"),
            409,
            'Operation cannot be fulfilled on pods/binding "leaving": '
            "pod leaving is being deleted, cannot be assigned to a host",
            id="a pod that is being deleted",
        ),
        pytest.param(
            "gated",
            binding("gated", "node-1"),
            409,
            'Operation cannot be fulfilled on pods/binding "gated": pod gated has non-empty .spec.schedulingGates',
            id="a pod that is gated",
        ),
    ],
)
def test_what_a_binding_refuses(client: Client, name: str, body: Object, code: int, message: str) -> None:
    client.post(PODS, pod("placed"))
    client.post(f"{PODS}/placed/binding", binding("placed", "node-1"))
    client.post(PODS, pod("leaving", finalizers=["example.com/keep"]))
    client.delete(f"{PODS}/leaving")
    gated = pod("gated")
    gated["spec"]["schedulingGates"] = [{"name": "example.com/gate"}]
    client.post(PODS, gated)
    refused = client.refused("POST", f"{PODS}/{name}/binding", body)
    assert (refused[0], refused[2]) == (code, message)


def test_a_binding_to_another_pod_of_the_name_conflicts(client: Client) -> None:
    uid = client.post(PODS, pod("a"))["metadata"]["uid"]
    client.delete(f"{PODS}/a")
    new = client.post(PODS, pod("a"))["metadata"]["uid"]
    code, reason, message = client.refused("POST", f"{PODS}/a/binding", binding("a", "node-1", uid))
    assert (code, reason) == (409, "Conflict")
    assert message.endswith(f"Precondition failed: UID in precondition: {uid}, UID in object meta: {new}")
    assert "nodeName" not in client.get(f"{PODS}/a")["spec"]


@pytest.mark.parametrize(
    "target", [pytest.param({}, id="no node"), pytest.param({"kind": "Pod", "name": "b"}, id="a pod as node")]
)
def test_a_binding_needs_a_node(client: Client, target: Object) -> None:
    client.post(PODS, pod("a"))
    body = {**binding("a", ""), "target": target}
    assert client.refused("POST", f"{PODS}/a/binding", body)[:2] == (422, "Invalid")


# Evict and scale


def eviction(name: str) -> Object:
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "default"}}


def test_an_eviction_deletes_unless_a_budget_forbids_it(client: Client) -> None:
    for name in ("a", "b"):
        client.post(PODS, pod(name, labels={"app": "web"}))
        client.post(f"{PODS}/{name}/binding", binding(name, "node-1"))
        client.patch(f"{PODS}/{name}/status", {"status": {"phase": "Running"}}, MERGE)
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    }
    client.post(BUDGETS, budget)
    state = {"disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2}
    client.patch(f"{BUDGETS}/web/status", {"status": state}, MERGE)
    assert client.request("POST", f"{PODS}/a/eviction", eviction("a")).code == 201
    assert client.get(f"{PODS}/a")["metadata"]["deletionTimestamp"]
    assert client.get(f"{BUDGETS}/web")["status"]["disruptionsAllowed"] == 0
    answer = client.request("POST", f"{PODS}/b/eviction", eviction("b"))
    assert (answer.code, answer.body["reason"]) == (429, "TooManyRequests")
    assert answer.body["details"]["causes"][0]["reason"] == "DisruptionBudget"
    assert "deletionTimestamp" not in client.get(f"{PODS}/b")["metadata"]


def test_scale_is_read_and_written(client: Client) -> None:
    client.post(DEPLOYMENTS, deployment("web", 2))
    scale = client.get(f"{DEPLOYMENTS}/web/scale")
    assert (scale["kind"], scale["spec"], scale["status"]["selector"]) == ("Scale", {"replicas": 2}, "app=web")
    assert client.patch(f"{DEPLOYMENTS}/web/scale", {"spec": {"replicas": 5}}, MERGE)["spec"] == {"replicas": 5}
    assert client.get(f"{DEPLOYMENTS}/web")["spec"]["replicas"] == 5
    assert client.refused("PUT", f"{DEPLOYMENTS}/web/scale", scale)[:2] == (409, "Conflict")
    del scale["metadata"]["resourceVersion"]
    assert client.put(f"{DEPLOYMENTS}/web/scale", scale)["spec"] == {"replicas": 2}
    bad = {"spec": {"replicas": -1}}
    assert client.refused("PATCH", f"{DEPLOYMENTS}/web/scale", bad, media=MERGE)[:2] == (422, "Invalid")


# Methods and paths


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        pytest.param("GET", "/api/v1/namespaces/default/gadgets", 404, id="an unknown kind"),
        pytest.param("GET", "/apis/apps/v2/deployments", 404, id="an unknown version"),
        pytest.param("GET", f"{PODS}/a/portforward", 404, id="an unknown subresource"),
        pytest.param("GET", "/somewhere", 404, id="an unknown path"),
        pytest.param("GET", "/sandbox/nothing", 404, id="an unknown path of the sandbox's own"),
        pytest.param("GET", "/apis/authentication.k8s.io/v1/tokenreviews", 405, id="a list of what is not kept"),
        pytest.param("POST", f"{NODES}/node-1", 405, id="a create with a name"),
        pytest.param("PUT", NODES, 405, id="an update without a name"),
        pytest.param("DELETE", "/api/v1/namespaces", 405, id="all namespaces at once"),
        pytest.param("OPTIONS", NODES, 405, id="a method of another kind"),
    ],
)
def test_what_no_route_serves(client: Client, method: str, path: str, code: int) -> None:
    body = node("node-1") if method in ("POST", "PUT") else None
    assert client.refused(method, path, body)[0] == code


@pytest.mark.parametrize(
    ("path", "kind", "granted"),
    [
        ("/apis/authentication.k8s.io/v1/tokenreviews", "TokenReview", "authenticated"),
        ("/apis/authorization.k8s.io/v1/subjectaccessreviews", "SubjectAccessReview", "allowed"),
        ("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "SelfSubjectAccessReview", "allowed"),
    ],
)
def test_reviews_are_granted(client: Client, path: str, kind: str, granted: str) -> None:
    review = client.post(path, {"spec": {"token": "x"}})
    assert (review["kind"], review["status"][granted]) == (kind, True)


def test_protobuf_bodies_are_refused_and_json_is_spoken_although_protobuf_is_preferred(client: Client) -> None:
    protobuf = "application/vnd.kubernetes.protobuf"
    refused = client.refused("POST", PODS, b"k8s\x00", media=protobuf)
    assert refused[:2] == (415, "UnsupportedMediaType")
    answer = client.request("GET", f"{NODES}/node-1", accept=f"{protobuf},application/json")
    assert (answer.headers["Content-Type"], answer.body["kind"]) == ("application/json", "Node")
    assert client.refused("GET", f"{NODES}/node-1", accept=protobuf)[:2] == (406, "NotAcceptable")


def test_a_yaml_body_is_read(client: Client) -> None:
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata: {x: '1'}\n"
    assert client.request("POST", MAPS, body, media="application/yaml").body["data"] == {"x": "1"}


def test_metadata_alone_can_be_had(client: Client) -> None:
    accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    listed = client.request("GET", NODES, accept=accept).body
    assert listed["kind"] == "PartialObjectMetadataList"
    assert [item.keys() for item in listed["items"]] == [{"kind", "apiVersion", "metadata"}] * 2
