"""Made-up clusters: the same for the same seed, with pods that always fit but for those that cannot."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ksched.errors import ClusterTooSmall, SandboxError
from ksched.model.node import Node
from ksched.model.pod import Pod
from ksched.model.ports import host_ports
from ksched.model.quantity import millis, units
from ksched.model.requests import RequestRules, requested, to_fit
from ksched.model.selectors import first_untolerated, required_node_affinity
from ksched.sandbox.clusters import POOL_LABEL, alibaba, cluster, doubts, node, workload
from ksched.sandbox.clusters.nodes import pool_sizes
from ksched.sandbox.clusters.trace import NODE_FILE, POD_FILE
from ksched.sandbox.defaults import prepare_create

Json = dict[str, Any]

NOW = "2026-12-01T02:21:04Z"
TRACE = Path(__file__).parents[3] / "shared" / "traces" / "alibaba-gpu-2023"


class Room:
    """A node as a scheduler sees it: what is free, and which host ports are taken."""

    def __init__(self, encoded: Json) -> None:
        self.node = msgspec.convert(encoded, Node)
        allocatable = self.node.status.allocatable
        self.free = {name: millis(has) if name == "cpu" else units(has) for name, has in allocatable.items()}
        self.ports: set[Any] = set()

    def takes(self, pod: Pod, needs: dict[str, int]) -> bool:
        if any(amount > self.free.get(name, 0) for name, amount in needs.items()):
            return False
        if first_untolerated(self.node.spec.taints, pod.spec.tolerations, False):
            return False
        if self.ports & set(host_ports(pod)):
            return False
        return required_node_affinity(pod).matches(self.node.labels, self.node.name)

    def put(self, pod: Pod, needs: dict[str, int]) -> None:
        for name, amount in needs.items():
            self.free[name] -= amount
        self.ports.update(host_ports(pod))


Choice = Callable[[list[Room], random.Random], Room]
SCHEDULERS: dict[str, Choice] = {
    "spreads": lambda rooms, rng: max(rooms, key=lambda room: (room.free["cpu"], room.node.name)),
    "packs": lambda rooms, rng: min(rooms, key=lambda room: (room.free["cpu"], room.node.name)),
    "packs memory": lambda rooms, rng: min(rooms, key=lambda room: (room.free["memory"], room.node.name)),
    "guesses": lambda rooms, rng: rng.choice(rooms),
    "takes the first": lambda rooms, rng: rooms[0],
}


def unplaced(nodes: list[Json], pods: list[Json], choose: Choice, seed: int = 0) -> set[str]:
    rooms, rng = [Room(each) for each in nodes], random.Random(seed)
    left: set[str] = set()
    for encoded in pods:
        pod = msgspec.convert(encoded, Pod)
        needs = {**requested(pod, to_fit(RequestRules())), "pods": 1}
        feasible = [room for room in rooms if room.takes(pod, needs)]
        if feasible:
            choose(feasible, rng).put(pod, needs)
        else:
            left.add(pod.name)
    return left


@pytest.mark.parametrize("choose", SCHEDULERS.values(), ids=list(SCHEDULERS))
@pytest.mark.parametrize(
    ("nodes", "pods", "unschedulable"),
    [
        pytest.param(3, 12, 2, id="a few nodes"),
        pytest.param(40, 90, 5, id="large pods"),
        pytest.param(30, 600, 12, id="small pods"),
    ],
)
def test_every_scheduler_places_all_but_those_that_cannot_fit(
    nodes: int, pods: int, unschedulable: int, choose: Choice
) -> None:
    made = cluster(nodes, 7)
    load = workload(pods, made, 7, unschedulable)
    assert len(load.pods) == pods
    assert len(load.cannot_fit) == unschedulable
    assert unplaced(made, load.pods, choose) == set(load.cannot_fit)


@settings(max_examples=15, deadline=None)
@given(st.integers(2, 30), st.integers(1, 12), st.integers(0, 1000), st.sampled_from(sorted(SCHEDULERS)), st.booleans())
def test_certainty_is_certain(nodes: int, pods_per_node: int, seed: int, scheduler: str, largest_first: bool) -> None:
    made = cluster(nodes, seed)
    load = workload(nodes * pods_per_node, made, seed, 0)
    pods = sorted(load.pods, key=_cpu, reverse=largest_first)
    assert unplaced(made, pods, SCHEDULERS[scheduler], seed) == set()


def _cpu(pod: Json) -> int:
    return sum(millis(container["resources"]["requests"]["cpu"]) for container in pod["spec"]["containers"])


def test_pools_are_used_by_about_two_thirds() -> None:
    made = cluster(200, 1)
    load = workload(3000, made, 1, 0)
    by_name = {each["metadata"]["name"]: each["metadata"]["labels"][POOL_LABEL] for each in made}
    rooms, rng = [Room(each) for each in made], random.Random(1)
    used: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for room in rooms:
        total[by_name[room.node.name]] += room.free["cpu"]
    for encoded in load.pods:
        pod = msgspec.convert(encoded, Pod)
        needs = {**requested(pod, to_fit(RequestRules())), "pods": 1}
        room = SCHEDULERS["spreads"]([each for each in rooms if each.takes(pod, needs)], rng)
        room.put(pod, needs)
        used[by_name[room.node.name]] += needs["cpu"]
    shares = {pool: used[pool] / total[pool] for pool in total}
    # GPU machines are filled by GPUs, not by cpu.
    assert all(0.5 <= share <= 0.72 for pool, share in shares.items() if pool != "gpu"), shares


def test_the_same_seed_gives_the_same_cluster() -> None:
    assert cluster(50, 3) == cluster(50, 3)
    assert cluster(50, 3) != cluster(50, 4)
    made = cluster(50, 3)
    assert workload(200, made, 3, 4) == workload(200, made, 3, 4)
    assert workload(200, made, 3, 4) != workload(200, made, 5, 4)


def test_every_object_is_one_that_the_server_takes() -> None:
    made = cluster(60, 2)
    load = workload(500, made, 2, 10)
    classes = {each["metadata"]["name"]: each for each in load.priority_classes}

    def lookup(kind: str, namespace: str, name: str) -> Json | None:
        return classes.get(name) if kind == "PriorityClass" else None

    for each in made:
        prepare_create("Node", each, lookup, NOW)
    for each in load.priority_classes:
        prepare_create("PriorityClass", each, lookup, NOW)
    for each in load.pods:
        prepare_create("Pod", each, lookup, NOW)


def test_names_are_unique() -> None:
    made = cluster(100, 2)
    load = workload(2000, made, 2, 25)
    names = [each["metadata"]["name"] for each in load.pods]
    assert len(set(names)) == len(names) == 2000
    assert set(load.cannot_fit) <= set(names)
    assert len({each["metadata"]["name"] for each in made}) == 100
    addresses = [each["status"]["addresses"][0]["address"] for each in made]
    assert len(set(addresses)) == 100


def test_reasons_for_not_fitting_differ() -> None:
    load = workload(50, cluster(20, 1), 1, 10)
    assert len(set(load.cannot_fit.values())) == 10


def test_a_large_cluster_has_everything() -> None:
    made = cluster(300, 1)
    pools = Counter(each["metadata"]["labels"][POOL_LABEL] for each in made)
    assert set(pools) == {"general", "compute", "spot", "memory", "gpu", "arm64", "infra"}
    assert sum(pools.values()) == 300
    assert {each["metadata"]["labels"]["topology.kubernetes.io/zone"][-1] for each in made} == set("abc")
    assert {each["status"]["allocatable"]["pods"] for each in made} == {"110", "250"}
    assert any("hugepages-2Mi" in each["status"]["allocatable"] for each in made)
    assert any("declaredFeatures" in each["status"] for each in made)
    specs = [each["spec"] for each in workload(1500, made, 1, 0).pods]
    assert any(spec.get("affinity") for spec in specs)
    assert any(container.get("restartPolicy") for spec in specs for container in spec.get("initContainers", ()))
    assert any("hostPort" in port for spec in specs for port in spec["containers"][0].get("ports", ()))


@given(st.integers(0, 2000))
def test_pool_sizes_add_up(nodes: int) -> None:
    sizes = pool_sizes(nodes)
    assert sum(count for _, count in sizes) == nodes
    assert all(abs(count - pool.share * nodes) < 1 for pool, count in sizes)


@pytest.mark.parametrize(
    ("pods", "nodes", "unschedulable", "text"),
    [
        pytest.param(5, cluster(3, 1), 6, r"expected 0 to 5 \(all pods\), got 6", id="more than all cannot fit"),
        pytest.param(
            5000,
            cluster(3, 1),
            0,
            "5,000 pods are too many for 3 nodes, which have room for",
            id="more pods than the nodes can hold",
        ),
        pytest.param(
            5, [node("a")], 0, "node a: label example.com/pool: expected one of general", id="nodes without pools"
        ),
        pytest.param(5, [], 0, "needs nodes in the general pool", id="no nodes"),
    ],
)
def test_workload_that_is_impossible(pods: int, nodes: list[Json], unschedulable: int, text: str) -> None:
    with pytest.raises(SandboxError, match=text):
        workload(pods, nodes, 1, unschedulable)


@pytest.mark.parametrize("nodes", [1, 3, 50])
def test_a_cluster_that_is_too_small_has_room_for_as_many_pods_as_it_says(nodes: int) -> None:
    made = cluster(nodes, 1)
    with pytest.raises(ClusterTooSmall) as raised:
        workload(6000, made, 1, 5)
    room = int(str(raised.value).rpartition(" ")[2].replace(",", ""))
    assert len(workload(room, made, 1, 5).pods) == room > 5
    with pytest.raises(ClusterTooSmall):
        workload(room * 11 // 10, made, 1, 5)


# ---- the argument itself


def small_pod(cpu: str, **spec: Any) -> Json:
    containers = [{"name": "main", "image": "a", "resources": {"requests": {"cpu": cpu}}}]
    return {"metadata": {"name": "p", "namespace": "default"}, "spec": {"containers": containers, **spec}}


PORT = {"containers": [{"name": "main", "image": "a", "ports": [{"containerPort": 80, "hostPort": 80}]}]}


@pytest.mark.parametrize(
    ("pods", "certain"),
    [
        pytest.param([small_pod("1")] * 7, True, id="pods of a quarter: two nodes surely take seven"),
        pytest.param([small_pod("2")] * 3, True, id="pods of a half: two nodes surely take three"),
        pytest.param([small_pod("3")] * 3, False, id="one more has no place"),
        pytest.param(
            [small_pod("1")] * 4 + [small_pod("3")], False, id="small pods may break up what the large one needs"
        ),
        pytest.param([small_pod("5")], False, id="a pod larger than the nodes"),
        pytest.param([small_pod("1", nodeSelector={"a": "b"})], False, id="a pod for other nodes"),
        pytest.param([small_pod("1", **PORT)] * 2, True, id="a host port on each of two nodes"),
        pytest.param([small_pod("1", **PORT)] * 3, False, id="a host port too many"),
    ],
)
def test_doubts(pods: list[Json], certain: bool) -> None:
    assert (doubts([node("a"), node("b")], pods) == []) == certain


def test_selecting_by_hostname_is_not_covered() -> None:
    with pytest.raises(SandboxError, match="hostname"):
        doubts([node("a")], [small_pod("1", nodeSelector={"kubernetes.io/hostname": "a"})])


# ---- the trace

NODE_HEADER = "sn,cpu_milli,memory_mib,gpu,model\n"
POD_HEADER = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos\n"


def trace(folder: Path, nodes: str = "n1,96000,786432,8,T4\n", pods: str = "p1,1000,2048,1,500,T4|G2,LS\n") -> Path:
    (folder / NODE_FILE).write_text(NODE_HEADER + nodes)
    (folder / POD_FILE).write_text(POD_HEADER + pods)
    return folder


def test_trace(tmp_path: Path) -> None:
    nodes, pods = alibaba(
        trace(tmp_path, "n1,96000,786432,8,T4\nn2,32000,1024,0,\n", "p1,1000,2048,1,500,T4|G2,LS\np2,500,64,0,0,,BE\n")
    )
    first, second = nodes
    assert first["status"]["allocatable"]["nvidia.com/gpu"] == "8"
    assert first["metadata"]["labels"]["nvidia.com/gpu.product"] == "T4"
    assert "nvidia.com/gpu" not in second["status"]["allocatable"]
    with_gpu, without = pods
    resources = {
        "requests": {"cpu": "1000m", "memory": "2048Mi", "nvidia.com/gpu": "1"},
        "limits": {"nvidia.com/gpu": "1"},
    }
    assert with_gpu["spec"]["containers"][0]["resources"] == resources
    affinity = required_node_affinity(msgspec.convert(with_gpu, Pod))
    assert affinity.matches({"nvidia.com/gpu.product": "G2"}, "x")
    assert not affinity.matches({"nvidia.com/gpu.product": "P100"}, "x")
    assert without["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "500m", "memory": "64Mi"}}
    assert "affinity" not in without["spec"]


@pytest.mark.parametrize(
    ("nodes", "pods", "text"),
    [
        pytest.param(
            "n1,lots,1,0,\n",
            "",
            r"node_list_all_node.csv, line 2, column cpu_milli: expected a whole number .*got 'lots'",
            id="no number",
        ),
        pytest.param(
            "n1,1,-1,0,\n",
            "",
            "line 2, column memory_mib: expected a whole number that is not negative",
            id="a negative one",
        ),
        pytest.param("n1,1,1,8,\n", "", "line 2, column model: expected the model of the GPUs", id="GPUs of no model"),
        pytest.param("n1,1,1,0,\n,1,1,0,\n", "", "line 3, column sn: expected a name", id="no name"),
        pytest.param(
            "n1,1,1,0,\nn1,1,1,0,\n",
            "",
            "line 3, column sn: expected a name that is not on an earlier line",
            id="a name twice",
        ),
        pytest.param("n1,1\n", "", "line 2: expected 5 values", id="too few values"),
        pytest.param("n1,1,1,0,,x\n", "", "line 2: expected 5 values", id="too many values"),
        pytest.param(
            "n1,1,1,0,\n", "p1,1,1,one,0,,LS\n", "pod_list_default.csv, line 2, column num_gpu", id="in the pods"
        ),
    ],
)
def test_trace_that_cannot_be_used(tmp_path: Path, nodes: str, pods: str, text: str) -> None:
    with pytest.raises(SandboxError, match=text):
        alibaba(trace(tmp_path, nodes, pods))


def test_trace_without_a_column(tmp_path: Path) -> None:
    trace(tmp_path)
    (tmp_path / NODE_FILE).write_text("sn,cpu_milli\n")
    with pytest.raises(SandboxError, match="line 1: expected a column memory_mib, got sn, cpu_milli"):
        alibaba(tmp_path)


def test_trace_that_is_not_there(tmp_path: Path) -> None:
    trace(tmp_path)
    (tmp_path / POD_FILE).unlink()
    with pytest.raises(SandboxError) as raised:
        alibaba(tmp_path)
    assert str(raised.value) == f"{tmp_path}: expected the files {NODE_FILE} and {POD_FILE}, no {POD_FILE} there"


def test_trace_that_is_no_file(tmp_path: Path) -> None:
    trace(tmp_path)
    (tmp_path / POD_FILE).unlink()
    (tmp_path / POD_FILE).mkdir()
    with pytest.raises(SandboxError) as raised:
        alibaba(tmp_path)
    assert str(raised.value) == f"{tmp_path / POD_FILE}: cannot be read: Is a directory"


@pytest.mark.skipif(not TRACE.is_dir(), reason=f"the trace is not at {TRACE}")
def test_the_real_trace() -> None:
    nodes, pods = alibaba(TRACE)
    assert (len(nodes), len(pods)) == (1523, 8152)
    gpus = sum(int(each["status"]["allocatable"].get("nvidia.com/gpu", 0)) for each in nodes)
    assert gpus == 6212
