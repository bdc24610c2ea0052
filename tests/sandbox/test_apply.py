"""Server-side apply: who owns what, and what happens when two want the same."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksched.errors import ApplyConflict, PatchError, Refused
from ksched.sandbox.apply import _from_fields_v1, _to_fields_v1, record_update, server_side_apply
from ksched.sandbox.clock import Clock
from ksched.sandbox.ledger import Ledger
from ksched.sandbox.revisions import Revisions
from ksched.sandbox.verbs import PatchRequest, Verbs

Json = dict[str, Any]

NOW = "2026-12-01T02:21:04Z"
LATER = "2026-12-01T03:00:00Z"


def deployment(replicas: int | None = 1, image: str = "nginx:1", **metadata: Any) -> Json:
    containers = [{"name": "main", "image": image}]
    spec: Json = {"template": {"spec": {"containers": containers}}, "selector": {"matchLabels": {"app": "web"}}}
    if replicas is not None:
        spec["replicas"] = replicas
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", **metadata}, "spec": spec}


def apply(live: Json | None, applied: Json, manager: str = "kubectl", *, force: bool = False, now: str = NOW) -> Json:
    before = copy.deepcopy((live, applied))
    result = server_side_apply(live, applied, manager=manager, force=force, kind=applied["kind"], now=now)
    assert (live, applied) == before
    return result


def owners(obj: Json) -> dict[str, Json]:
    return {entry["manager"]: entry["fieldsV1"] for entry in obj["metadata"].get("managedFields", [])}


def test_applying_to_nothing_creates() -> None:
    created = apply(None, deployment())
    assert created["spec"] == deployment()["spec"]
    entry = created["metadata"]["managedFields"][0]
    assert (entry["manager"], entry["operation"], entry["apiVersion"], entry["time"]) == (
        "kubectl",
        "Apply",
        "apps/v1",
        NOW,
    )
    assert entry["fieldsV1"] == {
        "f:spec": {
            "f:replicas": {},
            "f:selector": {},
            "f:template": {
                "f:spec": {"f:containers": {'k:{"name":"main"}': {".": {}, "f:name": {}, "f:image": {}}}},
            },
        }
    }


def test_applying_the_same_again_changes_nothing() -> None:
    created = apply(None, deployment(labels={"a": "b"}))
    assert apply(created, deployment(labels={"a": "b"}), now=LATER) == created


@pytest.mark.parametrize(
    ("first", "second", "removed", "kept"),
    [
        pytest.param(
            deployment(labels={"a": "1", "b": "2"}),
            deployment(labels={"b": "2"}),
            "a",
            "b",
            id="a label that is not applied any more goes",
        ),
        pytest.param(deployment(annotations={"a": "1"}), deployment(), "a", "", id="with the map, if it was the last"),
    ],
)
def test_fields_that_are_given_up(first: Json, second: Json, removed: str, kept: str) -> None:
    found = apply(apply(None, first), second)["metadata"]
    entries = {**found.get("labels", {}), **found.get("annotations", {})}
    assert removed not in entries
    assert list(entries) == ([kept] if kept else [])
    assert ("labels" in found, "annotations" in found) == (bool(kept), False)


def test_an_entry_that_is_given_up_goes_whole() -> None:
    both = deployment()
    both["spec"]["template"]["spec"]["containers"].append({"name": "side", "image": "p"})
    live = apply(None, both)
    live["spec"]["template"]["spec"]["containers"][1]["terminationMessagePath"] = "/dev/termination-log"
    containers = apply(live, deployment())["spec"]["template"]["spec"]["containers"]
    assert [container["name"] for container in containers] == ["main"]


def test_what_others_own_is_kept() -> None:
    live = apply(apply(None, deployment(labels={"a": "1"})), deployment(None, labels={"a": "1"}), "other")
    given_up = apply(live, deployment(3))
    assert given_up["metadata"]["labels"] == {"a": "1"}
    assert "f:replicas" not in owners(given_up)["other"]["f:spec"]


def test_two_managers_of_different_fields_do_not_meet() -> None:
    live = apply(apply(None, deployment()), {**deployment(), "spec": {"paused": True}}, "other")
    assert live["spec"]["paused"] is True
    assert owners(live)["other"] == {"f:spec": {"f:paused": {}}}


@pytest.mark.parametrize(
    ("theirs", "text", "fields"),
    [
        pytest.param(
            deployment(5),
            'Apply failed with 1 conflict: conflict with "kubectl": .spec.replicas',
            [".spec.replicas"],
            id="one field",
        ),
        pytest.param(
            deployment(5, "nginx:2"),
            'Apply failed with 2 conflicts: conflicts with "kubectl":\n- .spec.replicas\n'
            '- .spec.template.spec.containers[name="main"].image',
            [".spec.replicas", '.spec.template.spec.containers[name="main"].image'],
            id="two fields",
        ),
    ],
)
def test_a_field_of_another_manager_is_a_conflict(theirs: Json, text: str, fields: list[str]) -> None:
    live = apply(None, deployment())
    with pytest.raises(ApplyConflict) as conflict:
        apply(live, theirs, "other")
    assert conflict.value.message == text
    assert [cause["field"] for cause in conflict.value.causes] == fields
    assert {cause["reason"] for cause in conflict.value.causes} == {"FieldManagerConflict"}


def test_equal_values_are_shared() -> None:
    live = apply(apply(None, deployment()), deployment(), "other")
    assert owners(live)["kubectl"] == owners(live)["other"]


def test_force_takes_the_field() -> None:
    live = apply(apply(None, deployment()), deployment(5), "other", force=True)
    assert live["spec"]["replicas"] == 5
    assert "f:replicas" not in owners(live)["kubectl"]["f:spec"]
    assert "f:replicas" in owners(live)["other"]["f:spec"]


def test_who_writes_without_applying_takes_the_field() -> None:
    old = apply(None, deployment())
    new = copy.deepcopy(old)
    new["spec"]["replicas"] = 7
    scaled = record_update(old, new, manager="kubectl-scale", subresource="scale", kind="Deployment", now=LATER)
    assert owners(scaled)["kubectl-scale"] == {"f:spec": {"f:replicas": {}}}
    with pytest.raises(ApplyConflict, match='"kubectl-scale" with subresource "scale" using apps/v1'):
        apply(scaled, deployment())
    assert apply(scaled, deployment(None))["spec"]["replicas"] == 7


def test_objects_that_nobody_applied_are_not_tracked() -> None:
    old, new = deployment(), deployment(2)
    assert record_update(old, new, manager="m", subresource="", kind="Deployment", now=NOW) is new


def test_an_update_that_changes_nothing_is_not_recorded() -> None:
    old = apply(None, deployment())
    new = copy.deepcopy(old)
    assert record_update(old, new, manager="m", subresource="", kind="Deployment", now=LATER) is new


@pytest.mark.parametrize(
    ("first", "second", "ports"),
    [
        pytest.param(
            [{"containerPort": 53, "protocol": "UDP"}, {"containerPort": 53}],
            [{"containerPort": 53, "protocol": "TCP", "name": "dns"}],
            [{"containerPort": 53, "protocol": "TCP", "name": "dns"}],
            id="a port is its number and protocol, which is TCP by default",
        ),
    ],
)
def test_entries_with_two_keys(first: list[Json], second: list[Json], ports: list[Json]) -> None:
    def pod(ports: list[Json]) -> Json:
        containers = [{"name": "main", "image": "a", "ports": ports}]
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": containers}}

    assert apply(apply(None, pod(first)), pod(second))["spec"]["containers"][0]["ports"] == ports


def test_finalizers_are_a_set() -> None:
    live = apply(apply(None, deployment(finalizers=["a"])), deployment(finalizers=["b"]), "other")
    assert live["metadata"]["finalizers"] == ["a", "b"]
    assert apply(live, deployment())["metadata"]["finalizers"] == ["b"]


@pytest.mark.parametrize(
    ("applied", "text"),
    [
        pytest.param([], "is an object, got list", id="a list"),
        pytest.param({"metadata": {"managedFields": [{}]}}, "managedFields must be nil", id="with managed fields"),
        pytest.param(
            {"spec": {"containers": [{"image": "a"}]}}, "an entry without name", id="an entry without its key"
        ),
        pytest.param({"spec": {"containers": ["a"]}}, "entries must be objects", id="an entry that is no object"),
    ],
)
def test_what_cannot_be_applied(applied: Any, text: str) -> None:
    with pytest.raises(PatchError, match=text):
        server_side_apply(None, applied, manager="m", force=False, kind="Pod", now=NOW)


def test_a_patch_of_another_manager_is_noticed_by_the_next_apply() -> None:
    clock = Clock(lambda: 0, lambda: 0)
    verbs = Verbs(Revisions(), clock, Ledger(clock))
    verbs.create("Namespace", "", {"metadata": {"name": "default"}})
    wanted = deployment()
    wanted["spec"]["template"]["metadata"] = {"labels": {"app": "web"}}
    applied = PatchRequest("application/apply-patch+yaml", wanted, "kubectl")
    verbs.patch("Deployment", "default", "web", applied)
    scaled = PatchRequest("application/merge-patch+json", {"spec": {"replicas": 9}}, "scaler")
    verbs.patch("Deployment", "default", "web", scaled)
    with pytest.raises(Refused, match=r"conflict with \"scaler\" using apps/v1: \.spec\.replicas") as refused:
        verbs.patch("Deployment", "default", "web", applied)
    assert refused.value.code == 409


_STEPS = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"y"'])


@given(st.sets(st.lists(_STEPS, min_size=1, max_size=4).map(tuple), max_size=8))
def test_field_sets_survive_being_written(paths: set[tuple[str, ...]]) -> None:
    assert _from_fields_v1(_to_fields_v1(paths)) == paths


_LABELS = st.dictionaries(st.sampled_from("abc"), st.sampled_from("12"), max_size=3)


@given(st.lists(_LABELS, min_size=1, max_size=5))
def test_a_single_manager_gets_what_it_applied_last(configurations: list[dict[str, str]]) -> None:
    live: Json | None = None
    for labels in configurations:
        live = apply(live, deployment(labels=labels))
    assert live is not None
    assert live["metadata"].get("labels", {}) == configurations[-1]
