"""How a stored pod may change, and what binding does to it."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from ksched.errors import Refused
from ksched.sandbox.defaults import bind, prepare_update

from .samples import (
    ANTI_AFFINITY,
    LATER,
    NOW,
    REQUIRED,
    changed,
    stored_pod,
)

Json = dict[str, Any]


@pytest.mark.parametrize(
    ("path", "value", "generation"),
    [
        pytest.param("metadata.labels", {"a": "b"}, 1, id="labels may change"),
        pytest.param("spec.containers.0.image", "nginx:2", 2, id="images may change, which is a new generation"),
        pytest.param("spec.tolerations", None, 1, id="tolerations of admission come back"),
        pytest.param("spec.priority", None, 1, id="so does the priority"),
        pytest.param("status.phase", "Running", 1, id="a status is not taken"),
        pytest.param("metadata.creationTimestamp", LATER, 1, id="times of the server stay"),
    ],
)
def test_update_of_a_pod(path: str, value: Any, generation: int) -> None:
    old = stored_pod()
    if path == "spec.tolerations":
        new = changed(old, "spec.tolerations", old["spec"]["tolerations"] + [{"key": "x", "operator": "Exists"}])
        generation = 2
    else:
        new = changed(old, path, value)
    before = copy.deepcopy(old)
    updated = prepare_update("Pod", old, new, None, LATER)
    assert old == before
    assert updated["metadata"]["generation"] == generation
    assert updated["metadata"]["creationTimestamp"] == NOW
    assert updated["status"] == old["status"]
    assert updated["spec"]["priority"] == 0


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        pytest.param(
            "spec.nodeName", "a", "pod updates may not change fields other than", id="only a binding sets the node"
        ),
        pytest.param("spec.nodeSelector", {"a": "b"}, "pod updates may not change", id="a pod without gates is frozen"),
        pytest.param(
            "spec.containers.0.resources",
            {"requests": {"cpu": "1"}},
            "pod updates may not",
            id="resources have a way of their own",
        ),
        pytest.param(
            "spec.tolerations", [], "existing toleration can not be modified", id="tolerations are only added"
        ),
        pytest.param(
            "spec.schedulingGates", [{"name": "x"}], "only deletion is allowed", id="gates are only taken away"
        ),
        pytest.param(
            "metadata.uid", "other", "Precondition failed: UID in precondition: other", id="another pod of the name"
        ),
    ],
)
def test_refused_update_of_a_pod(path: str, value: Any, text: str) -> None:
    old = stored_pod()
    with pytest.raises(Refused) as refused:
        prepare_update("Pod", old, changed(old, path, value), None, LATER)
    assert text in refused.value.message


@pytest.mark.parametrize(
    ("before", "after", "accepted"),
    [
        pytest.param({}, {"schedulingGates": []}, True, id="a gate goes"),
        pytest.param(
            {"nodeSelector": {"a": "b"}}, {"nodeSelector": {"a": "b", "c": "d"}}, True, id="a selector gets narrower"
        ),
        pytest.param(
            {"nodeSelector": {"a": "b"}}, {"nodeSelector": {"c": "d"}}, False, id="a selector may not get wider"
        ),
        pytest.param(
            {},
            {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": []}]}}}},
            True,
            id="affinity may be added",
        ),
        pytest.param({}, {"affinity": ANTI_AFFINITY}, False, id="but not pod affinity"),
    ],
)
def test_a_gated_pod_may_ask_for_fewer_nodes(before: Json, after: Json, accepted: bool) -> None:
    old = stored_pod({"schedulingGates": [{"name": "quota"}], **before})
    new = copy.deepcopy(old)
    new["spec"].update(copy.deepcopy(after))
    if accepted:
        assert prepare_update("Pod", old, new, None, LATER)["spec"] == new["spec"]
    else:
        with pytest.raises(Refused) as refused:
            prepare_update("Pod", old, new, None, LATER)
        assert refused.value.code == 422


def test_a_status_update_keeps_the_spec() -> None:
    old = stored_pod()
    new = changed(changed(old, "spec.nodeName", "a"), "status", {"phase": "Running"})
    updated = prepare_update("Pod", old, new, "status", LATER)
    assert updated["spec"] == old["spec"]
    assert updated["status"] == {"phase": "Running", "qosClass": "BestEffort"}
    assert updated["metadata"]["generation"] == 1


def test_a_resize_changes_resources_and_nothing_else() -> None:
    old = stored_pod()
    resized = prepare_update(
        "Pod", old, changed(old, "spec.containers.0.resources", {"requests": {"cpu": "2"}}), "resize", LATER
    )
    assert resized["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "2"}}
    assert resized["metadata"]["generation"] == 2
    with pytest.raises(Refused, match="only cpu and memory resources are mutable"):
        prepare_update("Pod", old, changed(old, "spec.containers.0.image", "other"), "resize", LATER)


# ---- bind

NODE = {"metadata": {"name": "n", "labels": {"topology.kubernetes.io/zone": "z", "kubernetes.io/arch": "amd64"}}}


def binding(**metadata: Any) -> Json:
    return {"metadata": {"name": "web", **metadata}, "target": {"kind": "Node", "name": "n"}}


def test_a_bound_pod_is_on_its_node_and_takes_the_zone() -> None:
    old = stored_pod({"schedulingGates": []}, labels={"app": "web"})
    old["status"]["nominatedNodeName"] = "n"
    old["status"]["conditions"] = [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastTransitionTime": NOW}
    ]
    before = copy.deepcopy(old)
    bound = bind(old, NODE, binding(uid=old["metadata"]["uid"], annotations={"a": "b"}), LATER)
    assert old == before
    assert bound["spec"]["nodeName"] == "n"
    assert bound["metadata"]["labels"] == {"app": "web", "topology.kubernetes.io/zone": "z"}
    assert bound["metadata"]["annotations"] == {"a": "b"}
    assert "nominatedNodeName" not in bound["status"]
    assert bound["status"]["conditions"] == [
        {
            "type": "PodScheduled",
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": LATER,
            "observedGeneration": 1,
        }
    ]


def test_a_pod_keeps_a_zone_of_its_own() -> None:
    old = stored_pod(labels={"topology.kubernetes.io/zone": "mine"})
    assert bind(old, NODE, binding(), LATER)["metadata"]["labels"] == {"topology.kubernetes.io/zone": "mine"}


@pytest.mark.parametrize(
    ("path", "value", "asked", "text"),
    [
        pytest.param(
            "spec.nodeName", "m", {}, 'on pods/binding "web": pod web is already assigned to node "m"', id="a bound pod"
        ),
        pytest.param("metadata.deletionTimestamp", NOW, {}, "pod web is being deleted", id="a pod that is leaving"),
        pytest.param("spec.schedulingGates", [{"name": "a"}], {}, "non-empty .spec.schedulingGates", id="a gated pod"),
        pytest.param(
            "metadata.labels", {}, {"uid": "other"}, "UID in precondition: other", id="another pod of the name"
        ),
    ],
)
def test_refused_binding(path: str, value: Any, asked: Json, text: str) -> None:
    with pytest.raises(Refused) as refused:
        bind(changed(stored_pod(), path, value), NODE, binding(**asked), LATER)
    assert (refused.value.code, refused.value.reason) == (409, "Conflict")
    assert text in refused.value.message


def test_a_binding_names_a_node() -> None:
    with pytest.raises(Refused, match=r"target\.name: Required value"):
        bind(stored_pod(), NODE, {"metadata": {"name": "web"}, "target": {}}, LATER)
