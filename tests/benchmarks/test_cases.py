"""Workload files: all of scheduler_perf's own, the project's, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.errors import WorkloadError
from benchmarks.scheduler_perf.cases import load
from benchmarks.scheduler_perf.objects import Bodies, Templates
from benchmarks.scheduler_perf.operations import (
    OPCODES,
    AnyOperation,
    Barrier,
    Churn,
    CreateAny,
    CreateNodes,
    CreatePods,
    UpdateAny,
)
from tests.benchmarks.published import OWN, published

PODS = {"opcode": "createPods", "countParam": "$pods", "collectMetrics": True}
CASE: dict[str, Any] = {
    "name": "Case",
    "workloadTemplate": [{"opcode": "createNodes", "count": 2}, PODS],
    "workloads": [{"name": "few", "params": {"pods": 3}}],
}


def written(folder: Path, *cases: dict[str, Any]) -> Path:
    path = folder / "performance-config.yaml"
    path.write_text(yaml.safe_dump(list(cases)))
    return path


def with_operations(*operations: dict[str, Any], **params: Any) -> dict[str, Any]:
    return {**CASE, "workloadTemplate": list(operations), "workloads": [{"name": "few", "params": params}]}


def test_every_published_file_is_read() -> None:
    workloads = load(published())
    assert len(workloads) == 242
    assert len({workload.topic for workload in workloads}) == 13
    assert sum("performance" in workload.labels for workload in workloads) == 104
    assert sum(bool(workload.lowest_throughput) for workload in workloads) == 61


def test_every_template_of_the_published_files_makes_objects() -> None:
    made = 0
    for workload in load(published()):
        templates = Templates(workload)
        for index, operation in enumerate(workload.operations):
            for template in templates_of(templates, operation, index):
                body = Bodies(template, 3)
                assert body[0]
                assert body[2]
                made += 1
    assert made > 500


def templates_of(templates: Templates, operation: AnyOperation, index: int) -> list[Any]:
    if isinstance(operation, CreatePods):
        return [templates.pod(operation)]
    if isinstance(operation, CreateNodes):
        return [templates.node(operation, index)]
    if isinstance(operation, CreateAny | UpdateAny):
        return [templates.named(operation.template_path)]
    if isinstance(operation, Churn):
        return [templates.named(path) for path in operation.template_paths]
    return []


def test_the_projects_own_files_are_read() -> None:
    workloads = load(OWN)
    assert {workload.topic for workload in workloads} == {"small", "medium"}
    assert any(workload.case == "ReplicaSet" for workload in workloads)


def test_parameters_take_the_place_of_their_names(tmp_path: Path) -> None:
    pods = load(written(tmp_path, CASE))[0].operations[1]
    assert isinstance(pods, CreatePods)
    assert pods.count == 3
    assert pods.collects


def test_an_override_replaces_a_parameter_where_there_is_one(tmp_path: Path) -> None:
    workload = load(written(tmp_path, CASE), {"pods": 8, "others": 1})[0]
    assert workload.params == {"pods": 8}
    assert isinstance(workload.operations[1], CreatePods)
    assert workload.operations[1].count == 8


def test_pod_sets_are_unrolled_and_shift_what_comes_after_them(tmp_path: Path) -> None:
    sets = {
        "opcode": "createPodSets",
        "countParam": "$sets",
        "namespacePrefix": "ns",
        "createPodsOp": {"opcode": "createPods", "countParam": "$each"},
    }
    operations = load(written(tmp_path, with_operations(sets, PODS, sets=2, each=4, pods=1)))[0].operations
    found = [(each.namespace, each.count) for each in operations if isinstance(each, CreatePods)]
    assert found == [("ns-0", 4), ("ns-1", 4), (None, 1)]


def test_a_workloads_gates_win_over_its_cases_and_labels_add_up(tmp_path: Path) -> None:
    workload = {"name": "few", "params": {"pods": 1}, "labels": ["b"], "featureGates": {"B": False}}
    case = {**CASE, "labels": ["a"], "featureGates": {"A": True, "B": True}, "workloads": [workload]}
    found = load(written(tmp_path, case))[0]
    assert found.labels == {"a", "b"}
    assert found.feature_gates == {"A": True, "B": False}


@pytest.mark.parametrize(
    ("threshold", "topic_threshold"),
    [
        pytest.param(270, 270.0, id="a number is every topic's"),
        pytest.param({"misc": 40}, 40.0, id="a map's entry is its topic's"),
        pytest.param({"dra": 40}, 0.0, id="another topic has none"),
    ],
)
def test_thresholds(tmp_path: Path, threshold: Any, topic_threshold: float) -> None:
    (tmp_path / "misc").mkdir()
    workload = {"name": "few", "params": {"pods": 1}, "threshold": threshold}
    written(tmp_path / "misc", {**CASE, "workloads": [workload]})
    assert load(tmp_path)[0].lowest_throughput == topic_threshold


@pytest.mark.parametrize(
    ("case", "complaint"),
    [
        pytest.param(
            with_operations({"opcode": "createChaos"}, PODS, pods=1),
            "operation 0: unknown opcode 'createChaos'; known are createNodes, ",
            id="an unknown opcode, and the known ones are named",
        ),
        pytest.param(
            with_operations({"count": 1}, PODS, pods=1), "unknown opcode None", id="an operation without opcode"
        ),
        pytest.param({**CASE, "colour": "red"}, "unknown field `colour`", id="an unknown field of a case"),
        pytest.param(
            with_operations({**PODS, "colour": "red"}, pods=1),
            "unknown field `colour`",
            id="an unknown field of an operation",
        ),
        pytest.param(
            with_operations(PODS, pods=1, typo=2),
            r"parameters \['typo'\] are defined, but unused",
            id="an unused parameter",
        ),
        pytest.param(with_operations(PODS), "countParam: parameter pods is undefined", id="an undefined parameter"),
        pytest.param(
            with_operations({**PODS, "countParam": "pods"}, pods=1),
            r"must be \$ and a parameter's name",
            id="a parameter without $",
        ),
        pytest.param(
            with_operations(PODS, pods="many"), "Expected `int`, got `str`", id="a parameter of the wrong type"
        ),
        pytest.param(
            with_operations({"opcode": "createNodes", "count": 1}),
            "no operation collects metrics",
            id="nothing is measured",
        ),
        pytest.param(
            with_operations({**PODS, "skipWaitToCompletion": True}, pods=1),
            "collectMetrics and skipWaitToCompletion cannot be true",
            id="measured pods are waited for",
        ),
        pytest.param(
            with_operations({**PODS, "steadyState": True}, pods=1),
            "the test duration must be > 0",
            id="a steady state takes time",
        ),
        pytest.param(
            with_operations(PODS, {"opcode": "sleep", "duration": "soon"}, pods=1),
            "operation 1: duration: ",
            id="a duration that is none",
        ),
        pytest.param(
            with_operations(PODS, {"opcode": "churn", "mode": "recreate", "templatePaths": ["a"]}, pods=1),
            "number: must be at least 1",
            id="recreating needs a number",
        ),
        pytest.param(
            with_operations({"opcode": "startCollectingMetrics", "namespaces": []}),
            "namespaces cannot be empty",
            id="collecting needs namespaces",
        ),
        pytest.param({**CASE, "workloads": []}, "there are no workloads", id="a case without workloads"),
        pytest.param({**CASE, "workloads": CASE["workloads"] * 2}, "few is there twice", id="a name that repeats"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, case: dict[str, Any], complaint: str) -> None:
    with pytest.raises(WorkloadError, match=complaint):
        load(written(tmp_path, case))


def test_cases_have_names_of_their_own(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match="test cases: Case is there twice"):
        load(written(tmp_path, CASE, CASE))


def test_a_folder_without_files_is_said_to_have_none(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match=r"there is no performance-config\.yaml"):
        load(tmp_path)


def test_a_template_that_is_not_there_is_named(tmp_path: Path) -> None:
    workload = load(written(tmp_path, with_operations({**PODS, "podTemplatePath": "gone.yaml"}, pods=1)))[0]
    operation = workload.operations[0]
    assert isinstance(operation, CreatePods)
    with pytest.raises(WorkloadError, match=r"gone\.yaml: cannot be read: No such file"):
        Templates(workload).pod(operation)


def test_every_opcode_of_the_format_is_known() -> None:
    assert set(OPCODES) == {
        "createNodes", "createNamespaces", "createPods", "createPodSets", "deletePods", "churn", "barrier", "sleep",
        "startCollectingMetrics", "stopCollectingMetrics", "createAny", "updateAny", "createResourceClaims",
        "createResourceDriver", "allocResourceClaims",
    }  # fmt: skip


def test_a_barrier_waits_for_scheduling_unless_told_otherwise(tmp_path: Path) -> None:
    barrier = load(written(tmp_path, with_operations({"opcode": "barrier"}, PODS, pods=1)))[0].operations[0]
    assert isinstance(barrier, Barrier)
    assert barrier.stage_requirement == "Scheduled"
