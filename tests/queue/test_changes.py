"""Which events an update amounts to. The measured cases are in `tests.conformance`; these are the rules, one by one."""

from __future__ import annotations

import pytest

from ksched.model.requests import RequestRules
from ksched.queue.changes import node_changes, pod_changes
from ksched.testing import NodeBuilder, PodBuilder, node, pod

NODE = node("n").capacity(cpu="4")
POD = pod("p").request(cpu="1", memory="1Gi")
READY = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(NODE, NODE, [], id="nothing"),
        pytest.param(NODE, NODE.capacity(cpu="4000m"), [], id="the same amount, written in another way"),
        pytest.param(NODE, NODE.capacity(cpu="8"), ["UpdateNodeAllocatable"], id="another amount"),
        pytest.param(NODE, NODE.capacity(cpu="odd"), ["UpdateNodeAllocatable"], id="an amount that cannot be read"),
        pytest.param(NODE, NODE.capacity({"example.com/gpu": 1}), ["UpdateNodeAllocatable"], id="another resource"),
        pytest.param(NODE, NODE.label(a="b"), ["UpdateNodeLabel"], id="a label"),
        pytest.param(NODE, NODE.annotation(a="b"), ["UpdateNodeAnnotation"], id="an annotation"),
        pytest.param(NODE, NODE.taint("gpu"), ["UpdateNodeTaint"], id="a taint that comes"),
        pytest.param(NODE.taint("gpu"), NODE, ["UpdateNodeTaint"], id="a taint that goes"),
        pytest.param(NODE, NODE.unschedulable(), [], id="cordoned: helps nobody"),
        pytest.param(NODE.unschedulable(), NODE, ["UpdateNodeTaint"], id="uncordoned"),
        pytest.param(
            NODE.status(conditions=[READY]),
            NODE.status(conditions=[{**READY, "lastTransitionTime": "2026-02-01T00:00:00Z", "reason": "x"}]),
            [],
            id="a heartbeat",
        ),
        pytest.param(
            NODE.status(conditions=[READY]),
            NODE.status(conditions=[{**READY, "status": "False"}]),
            ["UpdateNodeCondition"],
            id="a condition that changes",
        ),
        pytest.param(NODE, NODE.feature("GuaranteedQoSPodCPUResize"), ["UpdateNodeDeclaredFeature"], id="a feature"),
        pytest.param(
            NODE.unschedulable(),
            NODE.taint("gpu").label(a="b"),
            ["UpdateNodeTaint", "UpdateNodeLabel", "UpdateNodeTaint"],
            id="several, in upstream's order, and taints twice when both say so",
        ),
    ],
)
def test_node_changes(old: NodeBuilder, new: NodeBuilder, expected: list[str]) -> None:
    found = node_changes(old.build(), new.build())
    assert [event.label for event in found] == [f"Node{name}" for name in expected]


def test_declared_features_do_not_count_where_the_gate_is_off() -> None:
    assert node_changes(NODE.build(), NODE.feature("X").build(), declared_features=False) == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(POD, POD, ["Update"], id="nothing in particular is a general update"),
        pytest.param(POD, POD.label(a="b"), ["UpdatePodLabel"], id="a label"),
        pytest.param(POD, POD.request(cpu="500m"), ["UpdatePodScaleDown"], id="asks for less"),
        pytest.param(POD, POD.request(cpu="2"), ["Update"], id="asks for more"),
        pytest.param(POD, POD.request(cpu="1000m"), ["Update"], id="asks for the same in other words"),
        pytest.param(POD, POD.request(cpu="odd"), ["UpdatePodScaleDown"], id="nobody knows what it asks for"),
        pytest.param(POD.gate("g"), POD, ["UpdatePodSchedulingGatesEliminated"], id="its last gate is gone"),
        pytest.param(POD.gate("g", "h"), POD.gate("g"), ["Update"], id="one of its gates is gone"),
        pytest.param(POD, POD.tolerate("gpu"), ["UpdatePodToleration"], id="a toleration"),
        pytest.param(
            POD.gate("g"),
            POD.label(a="b").tolerate("gpu").request(cpu="1m"),
            ["UpdatePodLabel", "UpdatePodScaleDown", "UpdatePodSchedulingGatesEliminated", "UpdatePodToleration"],
            id="several, in upstream's order",
        ),
        pytest.param(
            POD.status(containerStatuses=[{"name": "main"}]),
            POD,
            ["Update"],
            id="statuses that say nothing of resources",
        ),
        pytest.param(
            POD.status(containerStatuses=[{"name": "main", "resources": {"requests": {"cpu": "2"}}}]),
            POD.status(containerStatuses=[{"name": "main", "resources": {"requests": {"cpu": "1"}}}]),
            ["UpdatePodScaleDown"],
            id="an in-place resize that has been carried out",
        ),
    ],
)
def test_pod_changes(old: PodBuilder, new: PodBuilder, expected: list[str]) -> None:
    found = pod_changes(old.build(), new.build(), RequestRules())
    assert [event.label for event in found] == [f"UnschedulablePod{name}" for name in expected]


def test_a_pod_on_a_node_gives_events_of_assigned_pods() -> None:
    (found,) = pod_changes(POD.on("n").build(), POD.on("n").label(a="b").build(), RequestRules())
    assert found.label == "AssignedPodUpdatePodLabel"
