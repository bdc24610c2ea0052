"""What becomes of feature gates, and which workloads cannot be run and why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.scheduler_perf import gates, needs
from benchmarks.scheduler_perf.cases import Workload, load
from benchmarks.scheduler_perf.objects import Templates
from ksched.config import FeatureGates
from tests.benchmarks.published import OWN, published


@pytest.mark.parametrize(
    ("asked", "obeyed", "recorded"),
    [
        pytest.param(
            {"SchedulerAsyncAPICalls": True}, {"SchedulerAsyncAPICalls": True}, {}, id="a free gate is obeyed"
        ),
        pytest.param(
            {"SchedulerQueueingHints": False},
            {},
            {"SchedulerQueueingHints": "false was asked for; locked to true"},
            id="a locked gate is recorded",
        ),
        pytest.param(
            {"DynamicResourceAllocation": True},
            {},
            {"DynamicResourceAllocation": "true was asked for; locked to true"},
            id="also where it is locked to what was asked for",
        ),
        pytest.param(
            {"FlyingPods": True},
            {},
            {"FlyingPods": "true was asked for; Kubernetes 1.36 has no such gate"},
            id="a gate that nobody knows is recorded",
        ),
    ],
)
def test_gates(asked: dict[str, bool], obeyed: dict[str, bool], recorded: dict[str, str]) -> None:
    found = gates.decide(asked)
    assert (found.obeyed, found.recorded) == (obeyed, recorded)


def test_what_depends_on_a_gate_goes_off_with_it() -> None:
    found = gates.decide({"NodeDeclaredFeatures": False})
    assert found.obeyed["InPlacePodLevelResourcesVerticalScaling"] is False
    assert "it depends on NodeDeclaredFeatures" in found.recorded["InPlacePodLevelResourcesVerticalScaling"]
    FeatureGates(found.obeyed)  # which ksched accepts


@pytest.mark.parametrize(
    ("asked", "off"),
    [
        pytest.param({}, True, id="batching is off unless it is mentioned"),
        pytest.param({"OpportunisticBatching": True}, False, id="mentioned, it is what was asked for"),
        pytest.param({"SchedulerQueueingHints": False}, False, id="nor is it touched without queueing hints"),
    ],
)
def test_a_foreign_scheduler_gets_batching_as_from_scheduler_perf(asked: dict[str, bool], off: bool) -> None:
    assert (gates.decide(asked, foreign=True).obeyed.get("OpportunisticBatching") is False) is off


def test_every_published_workload_is_run_or_skipped_with_a_reason() -> None:
    reasons = {}
    for workload in load(published()):
        decision = gates.decide(workload.feature_gates)
        reasons[workload.full_name] = needs.why_not(
            workload, Templates(workload), scheduler="ksched", sandbox=True, gates=decision.obeyed
        )
    for name in (
        "SchedulingBasic/5000Nodes_10000Pods",
        "SchedulingNodeAffinity/5000Nodes_10000Pods",
        "SchedulingDaemonset/15000Nodes",
        "SchedulingWithMixedChurn/5000Nodes_10000Pods",
        "Unschedulable/5kNodes/100Init/10kPods",
        "SchedulingBasic/5000Nodes_50000Pods_NodeDeclaredFeaturesDisabled",
    ):
        assert reasons[name] == ""
    assert "allocResourceClaims" in reasons["SteadyStateClusterResourceClaimTemplate/full_500nodes"]
    assert "makes claims" in reasons["SchedulingWithResourceClaimTemplate/5000pods_500nodes"]
    assert "DeviceTaintRule" in reasons["DeviceTaintToleration/fast"]


def test_what_the_sandbox_lacks_is_no_reason_on_a_cluster() -> None:
    workload = next(each for each in load(published()) if each.case == "DeviceTaintToleration")
    assert needs.why_not(workload, Templates(workload), scheduler="command", sandbox=False, gates={}) == ""


def test_the_projects_own_workloads_are_run() -> None:
    for workload in load(OWN):
        assert needs.why_not(workload, Templates(workload), scheduler="ksched", sandbox=True, gates={}) == ""


# -- made-up plugins that are missing


def workload_of(folder: Path, **templates: dict[str, Any]) -> Workload:
    """A workload with a node of 4 CPUs and pods from templates, the last one measured."""
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"generateName": "n-"},
        "status": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
    }
    (folder / "node.yaml").write_text(yaml.safe_dump(node))
    operations: list[dict[str, Any]] = [{"opcode": "createNodes", "count": 1, "nodeTemplatePath": "node.yaml"}]
    for name, content in templates.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(content))
        operations.append({"opcode": "createPods", "count": 1, "podTemplatePath": f"{name}.yaml"})
    operations[-1]["collectMetrics"] = True
    case = {"name": "Case", "workloadTemplate": operations, "workloads": [{"name": "w"}]}
    (folder / "performance-config.yaml").write_text(yaml.safe_dump([case]))
    return load(folder)[0]


def pod(cpu: str, priority: int = 0) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "p-"},
        "spec": {"priority": priority, "containers": [container]},
    }


@pytest.mark.parametrize(
    ("templates", "could"),
    [
        pytest.param({"a": pod("3"), "b": pod("3", 10)}, True, id="a pod that outranks another and fits may preempt"),
        pytest.param({"a": pod("3"), "b": pod("9", 10)}, False, id="one that fits no empty node never does"),
        pytest.param({"a": pod("3", 5), "b": pod("3", 5)}, False, id="nor one of the same rank"),
        pytest.param({"b": pod("3", 10)}, False, id="nor one that is alone"),
    ],
)
def test_what_could_preempt(tmp_path: Path, templates: dict[str, Any], could: bool) -> None:
    workload = workload_of(tmp_path, **templates)
    assert needs.could_preempt(workload, Templates(workload)) is could
