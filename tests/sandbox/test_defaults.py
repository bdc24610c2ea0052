"""The rules that all kinds share: names, uids, generations, fields that never change."""

from __future__ import annotations

from typing import Any

import pytest

from ksched.errors import Refused
from ksched.sandbox.clock import Clock
from ksched.sandbox.defaults import drop_nulls, prepare_create, prepare_update
from ksched.sandbox.ledger import Ledger
from ksched.sandbox.revisions import Revisions
from ksched.sandbox.verbs import Verbs

from .samples import (
    LATER,
    NOW,
    changed,
    create,
    lookup,
    pod,
    stored_pod,
    workload,
)

Json = dict[str, Any]


def test_of_several_global_defaults_the_lowest_counts() -> None:
    clock = Clock(lambda: 0, lambda: 0)
    verbs = Verbs(Revisions(), clock, Ledger(clock))
    verbs.create("Namespace", "", {"metadata": {"name": "default"}})
    for name, value, is_default in (("low", 5, True), ("high", 50, True), ("lowest", 1, False)):
        verbs.create("PriorityClass", "", {"metadata": {"name": name}, "value": value, "globalDefault": is_default})
    spec = verbs.create("Pod", "default", pod()).decode()["spec"]
    assert (spec["priority"], spec["priorityClassName"]) == (5, "low")


def test_a_generated_name_has_five_letters_more() -> None:
    created = create("Pod", {"metadata": {"generateName": "web-" * 20}, "spec": pod()["spec"]})
    assert len(created["metadata"]["name"]) == 63
    other = prepare_create("Pod", {"metadata": {"generateName": "web-"}, "spec": pod()["spec"]}, lookup, NOW)
    assert other["metadata"]["name"].startswith("web-")
    assert len(other["metadata"]["name"]) == len("web-") + 5


def test_uids_differ_and_repeat_with_the_seed() -> None:
    assert stored_pod()["metadata"]["uid"] == stored_pod()["metadata"]["uid"]
    first, second = (prepare_create("Pod", pod(), lookup, NOW)["metadata"]["uid"] for _ in range(2))
    assert first != second
    assert [len(part) for part in first.split("-")] == [8, 4, 4, 4, 12]


@pytest.mark.parametrize(
    ("kind", "obj", "path", "value", "generation"),
    [
        pytest.param("Deployment", workload(), "spec.replicas", 3, 2, id="a scale is a new generation"),
        pytest.param(
            "Deployment", workload(), "metadata.annotations", {"a": "b"}, 2, id="annotations of deployments too"
        ),
        pytest.param(
            "ReplicaSet", workload(), "metadata.annotations", {"a": "b"}, 1, id="but not those of replica sets"
        ),
        pytest.param(
            "Node", {"metadata": {"name": "a"}}, "spec.unschedulable", True, None, id="nodes have no generation"
        ),
    ],
)
def test_generation(kind: str, obj: Json, path: str, value: Any, generation: int | None) -> None:
    old = create(kind, obj)
    updated = prepare_update(kind, old, changed(old, path, value), None, LATER)
    assert updated["metadata"].get("generation") == generation


@pytest.mark.parametrize(
    ("kind", "obj", "path", "value"),
    [
        pytest.param(
            "Deployment", workload(), "spec.selector", {"matchLabels": {"app": "x"}}, id="a deployment's selector"
        ),
        pytest.param("PriorityClass", {"metadata": {"name": "a"}, "value": 1}, "value", 2, id="a priority"),
        pytest.param(
            "StorageClass", {"metadata": {"name": "a"}, "provisioner": "p"}, "provisioner", "q", id="a provisioner"
        ),
        pytest.param(
            "ConfigMap",
            {"metadata": {"name": "a"}, "immutable": True, "data": {}},
            "data",
            {"a": "b"},
            id="sealed data",
        ),
    ],
)
def test_immutable(kind: str, obj: Json, path: str, value: Any) -> None:
    old = create(kind, obj)
    with pytest.raises(Refused) as refused:
        prepare_update(kind, old, changed(old, path, value), None, LATER)
    assert "immutable" in refused.value.message


def test_a_service_keeps_its_address() -> None:
    old = create("Service", {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}})
    new = {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 81}]}}
    assert prepare_update("Service", old, new, None, LATER)["spec"]["clusterIP"] == old["spec"]["clusterIP"]


def test_nulls_are_dropped_at_every_depth() -> None:
    obj = {"a": None, "b": {"c": None, "d": [{"e": None, "f": 1}, None]}}
    drop_nulls(obj)
    assert obj == {"b": {"d": [{"f": 1}, None]}}
