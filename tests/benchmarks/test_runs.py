"""Whole runs on a sandbox: every operation, every scheduler, and a cluster that is cleaned up afterwards."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import uvloop
import yaml
from click.testing import CliRunner, Result

from benchmarks.errors import RunFailed
from benchmarks.scheduler_perf import cli, executor, gates
from benchmarks.scheduler_perf.cases import load
from benchmarks.scheduler_perf.executor import PERFORM, RunPlan
from benchmarks.scheduler_perf.operations import OPCODES
from benchmarks.scheduler_perf.schedulers import SchedulerChoice
from benchmarks.scheduler_perf.server import ServerChoice
from benchmarks.scheduler_perf.world import Silent
from ksched.sandbox.process import SandboxProcess
from ksched.sandbox.server import SandboxOptions

Json = dict[str, Any]

TEMPLATES = Path(__file__).parent / "templates"

NODES = "- {opcode: createNodes, count: 4, nodeTemplatePath: node.yaml}\n"
PODS = "- {opcode: createPods, count: 40, podTemplatePath: pod.yaml, collectMetrics: true}\n"
LATE_PODS = PODS.replace("pod.yaml", "late.yaml")
MEASURED = NODES + PODS


def case(folder: Path, operations: str) -> Path:
    """A workload file with one case of these operations, beside the tests' templates."""
    shutil.copytree(TEMPLATES, folder, dirs_exist_ok=True)
    path = folder / "performance-config.yaml"
    content = {"name": "Case", "workloadTemplate": yaml.safe_load(operations), "workloads": [{"name": "w"}]}
    path.write_text(yaml.safe_dump([content]))
    return path


def run(
    folder: Path,
    operations: str,
    *,
    scheduler: SchedulerChoice | None = None,
    server: ServerChoice | None = None,
    timeout_seconds: float = 30.0,
) -> Json:
    workload = load(case(folder, operations))[0]
    plan = RunPlan(scheduler or SchedulerChoice(), server or ServerChoice(), timeout_seconds)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(executor.run(workload, plan, gates.decide({}).obeyed, Silent()))


def get(url: str) -> Any:
    with urllib.request.urlopen(url) as answer:
        return json.loads(answer.read())


def names(url: str) -> list[str]:
    return [item["metadata"]["name"] for item in get(url)["items"]]


def test_every_operation_that_reaches_a_run_is_carried_out_by_something() -> None:
    assert {operation.__struct_config__.tag for operation in PERFORM} == set(OPCODES) - {"createPodSets"}


@pytest.mark.parametrize(
    ("scheduler", "tls", "events"),
    [
        pytest.param(SchedulerChoice(), False, 40, id="ksched"),
        pytest.param(SchedulerChoice(), True, 40, id="ksched over TLS"),
        pytest.param(SchedulerChoice("null"), False, 0, id="the null scheduler"),
        pytest.param(SchedulerChoice("null", null_events=True), False, 40, id="the null scheduler with events"),
    ],
)
def test_pods_are_bound_and_measured(tmp_path: Path, scheduler: SchedulerChoice, tls: bool, events: int) -> None:
    found = run(tmp_path, MEASURED, scheduler=scheduler, server=ServerChoice(tls=tls))
    (collection,) = found["collections"]
    assert collection["namespaces"] == ["namespace-1"]
    assert collection["measured_pods"] == 40
    assert collection["acceptance"]["pods_per_second"] > 0
    assert not collection["is_result"]
    assert collection["events"]["sent"] == events
    assert collection["events"]["dropped"] == 0
    assert collection["placement"]["pods"]["largest"] >= 10 / 110
    assert set(collection["cpu_seconds"]) == {"scheduler", "server", "loader", "scheduler_until_events_written"}
    assert collection["memory_bytes"]["scheduler"]["peak"] > 10_000_000
    assert found["clock"] == "server"
    assert found["audit"]["ok"]


def test_the_null_scheduler_goes_round(tmp_path: Path) -> None:
    found = run(tmp_path, MEASURED, scheduler=SchedulerChoice("null"))
    assert found["collections"][0]["placement"]["pods"]["difference"] == 0.0


def test_another_scheduler_is_run_by_its_command(tmp_path: Path) -> None:
    command = f"{sys.executable} -m ksched run --kubeconfig {{kubeconfig}} --config {{config}}"
    choice = SchedulerChoice("command", command, "other")
    assert choice.name == "other"
    assert run(tmp_path, MEASURED, scheduler=choice)["collections"][0]["measured_pods"] == 40


def test_what_blocks_pods_is_waited_for_and_taken_away(tmp_path: Path) -> None:
    """Barriers, updates of nodes and pods, and a collection that selects by labels."""
    found = run(
        tmp_path,
        """
        - {opcode: startCollectingMetrics, name: late, namespaces: [a, b], labelSelector: {type: late}}
        - {opcode: createNodes, count: 2, nodeTemplatePath: cordoned.yaml}
        - {opcode: createPods, count: 6, podTemplatePath: late.yaml, namespace: a, skipWaitToCompletion: true}
        - {opcode: createPods, count: 3, podTemplatePath: gated.yaml, namespace: b, skipWaitToCompletion: true}
        - {opcode: barrier, stageRequirement: Attempted}
        - {opcode: updateAny, templatePath: opened.yaml, count: 2, updatePerSecond: 100}
        - {opcode: barrier, namespaces: [a], labelSelector: {type: late}}
        - {opcode: updateAny, templatePath: freed.yaml, namespace: b, count: 3}
        - {opcode: barrier}
        - {opcode: stopCollectingMetrics}
        """,
    )
    (collection,) = found["collections"]
    assert collection["name"] == "late"
    assert collection["measured_pods"] == 6
    assert collection["events"]["sent"] == 6


def test_a_workload_of_many_operations(tmp_path: Path) -> None:
    """Namespaces and pod sets, strategies of nodes, churn, deletion, sleep, any kind, devices and claims."""
    found = run(
        tmp_path,
        """
        - {opcode: createNamespaces, prefix: set, count: 2, namespaceTemplatePath: namespace.yaml}
        - opcode: createNodes
          count: 4
          nodeTemplatePath: node.yaml
          labelNodePrepareStrategy: {labelKey: zone, labelValues: [a, b]}
        - opcode: createNodes
          count: 4
          uniqueNodeLabelStrategy: {labelKey: id}
        - opcode: createPodSets
          count: 2
          namespacePrefix: set
          createPodsOp: {opcode: createPods, count: 3}
        - {opcode: createAny, templatePath: service.yaml, namespace: set-0}
        - {opcode: createAny, templatePath: class.yaml, count: 2}
        - {opcode: createResourceDriver, driverName: d, maxClaimsPerNode: 2, nodes: big-*}
        - {opcode: createResourceClaims, count: 2, namespace: set-0, templatePath: claim.yaml}
        - opcode: churn
          mode: recreate
          number: 2
          templatePaths: [churned.yaml, pod.yaml]
          intervalMilliseconds: 20
        - {opcode: churn, mode: create, number: 3, templatePaths: [pod.yaml], intervalMilliseconds: 5}
        - {opcode: sleep, duration: 100ms}
        - {opcode: deletePods, namespace: set-0, deletePodsPerSecond: 200}
        - {opcode: deletePods, namespace: set-1, skipWaitToCompletion: true}
        - {opcode: createPods, count: 10, collectMetrics: true}
        - opcode: createPods
          count: 5
          podTemplatePath: pod.yaml
          steadyState: true
          duration: 300ms
          collectMetrics: true
        """,
    )
    plain, steady = found["collections"]
    assert plain["measured_pods"] == 10
    assert plain["namespaces"] == ["namespace-14"]  # the pod sets are two operations
    assert steady["measured_pods"] > 5


def test_pods_with_volumes(tmp_path: Path) -> None:
    found = run(
        tmp_path,
        """
        - opcode: createNodes
          count: 4
          nodeAllocatableStrategy:
            nodeAllocatable: {attachable-volumes-csi-d.example.com: 39}
            csiNodeAllocatable: {d.example.com: {count: 39}}
            migratedPlugins: [kubernetes.io/aws-ebs]
        - opcode: createPods
          count: 40
          podTemplatePath: pod.yaml
          collectMetrics: true
          persistentVolumeTemplatePath: volume.yaml
          persistentVolumeClaimTemplatePath: volume-claim.yaml
        """,
        scheduler=SchedulerChoice("null"),
    )
    assert found["collections"][0]["measured_pods"] == 40


def test_a_cluster_that_is_there_is_measured_by_a_watch_and_cleaned_up(tmp_path: Path) -> None:
    with SandboxProcess(SandboxOptions(agent=False, deployments=False)) as cluster:
        before = names(f"{cluster.url}/api/v1/namespaces")
        found = run(
            tmp_path,
            """
            - {opcode: createNodes, count: 4, nodeTemplatePath: node.yaml}
            - {opcode: churn, mode: create, templatePaths: [churned.yaml], number: 1, intervalMilliseconds: 5}
            - {opcode: sleep, duration: 50ms}
            - {opcode: createPods, count: 40, podTemplatePath: pod.yaml, collectMetrics: true}
            """,
            server=ServerChoice(kubeconfig=cluster.kubeconfig, pids=(cluster.pid,)),
        )
        collection = found["collections"][0]
        assert found["clock"] == "loader's watch"
        assert collection["measured_pods"] == 40
        assert collection["latency_seconds"]["p50"] > 0
        assert found["audit"] is None
        assert names(f"{cluster.url}/api/v1/nodes") == []
        assert names(f"{cluster.url}/api/v1/pods") == []
        assert names(f"{cluster.url}/api/v1/namespaces") == before


@pytest.mark.parametrize(
    ("operations", "complaint"),
    [
        pytest.param(
            NODES + LATE_PODS,
            r"namespace-1: 0 of 40 pods got a node within 1 s; late-\d+ was told: 0/4 nodes are available",
            id="pods that find no node, with what one was told",
        ),
        pytest.param(
            "- {opcode: createAny, templatePath: service.yaml}\n" + MEASURED,
            r"service\.yaml: Service: expected a namespace, got ''",
            id="a namespace that is missing",
        ),
        pytest.param(
            "- {opcode: barrier, namespaces: [gone]}\n" + MEASURED,
            "operation 0: barrier: unknown namespace gone",
            id="a namespace that nobody made",
        ),
        pytest.param(
            "- {opcode: stopCollectingMetrics}\n" + MEASURED,
            "nothing is being collected",
            id="an end without a beginning",
        ),
        pytest.param(
            "- {opcode: startCollectingMetrics, namespaces: [a]}\n" + MEASURED,
            "metrics collection is overlapping",
            id="two collections at once",
        ),
        pytest.param(
            "- {opcode: createResourceDriver, driverName: d, maxClaimsPerNode: 1, nodes: x-*}\n" + MEASURED,
            r"no node is called x-\*",
            id="a driver without nodes",
        ),
        pytest.param(
            "- {opcode: churn, mode: create, templatePaths: [cordoned.yaml], intervalMilliseconds: 1}\n" + LATE_PODS,
            'in the background: nodes "cordoned-0" already exists',
            id="a fault in the background",
        ),
    ],
)
def test_a_run_that_cannot_go_on_says_why(tmp_path: Path, operations: str, complaint: str) -> None:
    with pytest.raises(RunFailed, match=complaint):
        run(tmp_path, operations, timeout_seconds=1.0)


def test_a_scheduler_that_ends_is_told_with_its_last_words(tmp_path: Path) -> None:
    choice = SchedulerChoice("command", f"{sys.executable} -c \"raise SystemExit('no, thanks')\"")
    with pytest.raises(RunFailed, match="the scheduler ended with code 1:\nno, thanks"):
        run(tmp_path, MEASURED, scheduler=choice)


# -- the command


def command(*arguments: str) -> Result:
    return CliRunner().invoke(cli.main, list(arguments))


def test_the_command_runs_and_writes_everything(tmp_path: Path) -> None:
    out, page, logs = tmp_path / "out.json", tmp_path / "out.html", tmp_path / "logs"
    files = ["--json", str(out), "--html", str(page), "--logs", str(logs)]
    shown = command("--config", str(case(tmp_path, MEASURED)), "--select", "Case/w", "--repeat", "2", *files)
    assert shown.exit_code == 0, shown.output
    (workload,) = json.loads(out.read_bytes())["workloads"]
    assert workload["status"] == "ran"
    assert len(workload["runs"]) == 2
    assert not workload["summary"]["is_result"]
    assert "2 of 2 windows were under 10 s" in shown.output
    assert page.stat().st_size > 1000
    assert len(list(logs.iterdir())) == 2


def test_a_failed_run_is_told_and_ends_with_code_1(tmp_path: Path) -> None:
    config, out = case(tmp_path, NODES + LATE_PODS), tmp_path / "out.json"
    shown = command("--config", str(config), "--select", "Case/w", "--timeout", "0.5", "--json", str(out))
    assert shown.exit_code == 1
    (workload,) = json.loads(out.read_bytes())["workloads"]
    assert workload["status"] == "failed"
    assert "0 of 40 pods got a node" in workload["reason"]


def test_a_list_shows_what_is_skipped_and_runs_nothing(tmp_path: Path) -> None:
    config = case(tmp_path, "- {opcode: allocResourceClaims, namespace: a}\n" + MEASURED)
    shown = command("--config", str(config), "--label-filter", "", "--list")
    assert shown.exit_code == 0
    assert "Case/w  skipped: allocResourceClaims needs an allocator" in shown.output
    assert "0 to run, 1 skipped" in shown.output


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        pytest.param(["--select", "Case/x"], "no such workload among 1; near: Case/w", id="a name that nobody has"),
        pytest.param(["--label-filter", "x"], "no workload has the labels 'x'", id="labels that nobody has"),
        pytest.param(["--select", "Case/w", "--param", "a=1"], "there is no such parameter", id="nobody's parameter"),
    ],
)
def test_wrong_choices_are_named(tmp_path: Path, arguments: list[str], complaint: str) -> None:
    shown = command("--config", str(case(tmp_path, MEASURED)), *arguments)
    assert shown.exit_code == 1
    assert complaint in shown.output
