"""NodeResourcesFit: what is short, whether for good, and how nodes with room are scored."""

from __future__ import annotations

from typing import Any

import pytest

from ksched.errors import ConfigurationError
from ksched.testing import PodBuilder, cluster, node, pod
from tests.plugins.asking import KEPT, Outcome, plugin_of, raw_scores, verdict

GPU, FPGA = "example.com/gpu", "example.com/fpga"
NODE = node("n").capacity({GPU: 2}, cpu="2", memory="4Gi", pods=3)
HALF = pod("half").request(cpu="1", memory="2Gi").on("n")


def short(*reasons: str) -> Outcome:
    return "Unschedulable", list(reasons)


def never(*reasons: str) -> Outcome:
    return "UnschedulableAndUnresolvable", list(reasons)


@pytest.mark.parametrize(
    ("one", "placed", "expected"),
    [
        pytest.param(pod().request(cpu="2", memory="4Gi"), [], KEPT, id="a pod that takes all of an empty node fits"),
        pytest.param(pod().request(cpu="1001m"), [HALF], short("Insufficient cpu"), id="too full now"),
        pytest.param(pod().request(cpu="2001m"), [], never("Insufficient cpu"), id="too small for good"),
        pytest.param(
            pod().request(cpu="1500m", memory="5Gi"),
            [HALF],
            never("Insufficient cpu", "Insufficient memory"),
            id="every resource is named, and one that is short for good makes the whole unresolvable",
        ),
        pytest.param(pod().request({GPU: 3}), [], never(f"Insufficient {GPU}"), id="extended resources count"),
        pytest.param(pod().request({FPGA: 1}), [], never(f"Insufficient {FPGA}"), id="a resource that the node lacks"),
        pytest.param(pod().request({FPGA: 0}), [], KEPT, id="asking for nothing of a resource that the node lacks"),
        pytest.param(
            pod().request({"hugepages-2Mi": "2Mi"}), [], never("Insufficient hugepages-2Mi"), id="huge pages count"
        ),
        pytest.param(
            pod().request({"ephemeral-storage": "1Gi"}),
            [],
            never("Insufficient ephemeral-storage"),
            id="so does storage",
        ),
        pytest.param(
            pod(), [pod(f"p{i}").on("n") for i in range(3)], short("Too many pods"), id="the pod count is a limit"
        ),
        pytest.param(
            pod().request(cpu="3"),
            [pod(f"p{i}").on("n") for i in range(3)],
            never("Too many pods", "Insufficient cpu"),
            id="too many pods and too small",
        ),
        pytest.param(
            pod().init_container("i").request(cpu="2").sidecar("s").request(cpu="1"),
            [HALF],
            short("Insufficient cpu"),
            id="init containers count by their peak",
        ),
        pytest.param(
            pod().request(cpu="1").overhead(cpu="1m"), [HALF], short("Insufficient cpu"), id="overhead counts"
        ),
        pytest.param(
            pod().request(cpu="1m").pod_request(cpu="1500m"),
            [HALF],
            short("Insufficient cpu"),
            id="pod-level requests count",
        ),
        pytest.param(
            pod().request({f"example.com/r{i}": 1 for i in range(25)}),
            [],
            never(*(f"Insufficient example.com/r{i}" for i in range(25))),
            id="a pod may ask for more resources than a native code has bits for",
        ),
    ],
)
def test_filter(one: PodBuilder, placed: list[PodBuilder], expected: Outcome) -> None:
    assert verdict("NodeResourcesFit", one, NODE, *placed) == expected


@pytest.mark.parametrize(
    ("args", "resource", "expected"),
    [
        pytest.param({"ignoredResources": [FPGA]}, FPGA, KEPT, id="an ignored resource"),
        pytest.param({"ignoredResourceGroups": ["example.com"]}, FPGA, KEPT, id="an ignored group"),
        pytest.param({"ignoredResources": [GPU]}, FPGA, never(f"Insufficient {FPGA}"), id="another resource"),
        pytest.param(
            {"ignoredResources": ["hugepages-2Mi"]},
            "hugepages-2Mi",
            never("Insufficient hugepages-2Mi"),
            id="only extended resources can be ignored",
        ),
    ],
)
def test_ignored_resources(args: dict[str, Any], resource: str, expected: Outcome) -> None:
    assert verdict("NodeResourcesFit", pod().request({resource: 1}), NODE, args=args) == expected


def test_an_overcommitted_node_takes_a_pod_that_asks_for_nothing() -> None:
    crowd = pod("big").request(cpu="3").on("n")
    assert verdict("NodeResourcesFit", pod(), NODE, crowd) == KEPT
    assert verdict("NodeResourcesFit", pod().request(cpu="1m"), NODE, crowd) == short("Insufficient cpu")


FOUR, SIX = node("four").capacity(cpu="4000", memory="10000"), node("six").capacity(cpu="6000", memory="10000")
ASKS = pod().request(cpu="3000", memory="5000")


def strategy(type_: str, shape: dict[int, int] | None = None, **weights: int) -> dict[str, Any]:
    chosen: dict[str, Any] = {"type": type_}
    if weights:
        chosen["resources"] = [{"name": name, "weight": weight} for name, weight in weights.items()]
    if shape is not None:
        points = [{"utilization": at, "score": score} for at, score in shape.items()]
        chosen["requestedToCapacityRatio"] = {"shape": points}
    return {"scoringStrategy": chosen}


@pytest.mark.parametrize(
    ("args", "one", "expected"),
    [
        pytest.param(strategy("LeastAllocated"), ASKS, [37, 50], id="least allocated: (25 + 50) / 2 truncated"),
        pytest.param(strategy("MostAllocated"), ASKS, [62, 50], id="most allocated: (75 + 50) / 2 truncated"),
        pytest.param(strategy("MostAllocated", cpu=1, memory=2), ASKS, [58, 50], id="weights"),
        pytest.param(
            strategy("LeastAllocated", cpu=1), pod().request(cpu="5000"), [0, 16], id="over-committed scores nothing"
        ),
        pytest.param(
            strategy("MostAllocated", cpu=1), pod().request(cpu="5000"), [100, 83], id="over-committed counts as full"
        ),
        pytest.param(
            strategy("RequestedToCapacityRatio", {0: 10, 100: 0}), ASKS, [38, 50], id="a ratio, rounded half up"
        ),
        pytest.param(
            strategy("RequestedToCapacityRatio", {0: 10, 100: 0}),
            pod().request(cpu="4000", memory="5000"),
            [50, 42],
            id="a resource whose score is 0 has no weight",
        ),
        pytest.param(
            strategy("RequestedToCapacityRatio", {0: 0, 100: 10}, cpu=1),
            pod().request(cpu="2000"),
            [50, 33],
            id="an increasing shape",
        ),
        pytest.param(
            strategy("LeastAllocated", **{GPU: 1}), ASKS, [0, 0], id="a resource that nobody asks for is left out"
        ),
    ],
)
def test_score(args: dict[str, Any], one: PodBuilder, expected: list[int]) -> None:
    assert raw_scores("NodeResourcesFit", one, [FOUR, SIX], args=args) == expected


def test_pods_without_requests_count_as_a_tenth_of_a_cpu_and_200_mebibytes() -> None:
    """4000 m / 16 Gi with ten best-effort pods, and one more: (4000-1100)*100/4000 = 72, memory 86."""
    here = node("n").capacity(cpu="4", memory="16Gi")
    assert raw_scores("NodeResourcesFit", pod(), [here], [pod(f"p{i}").on("n") for i in range(10)]) == [79]


def test_pod_level_requests_do_not_count_in_the_score_of_the_pod_itself() -> None:
    assert raw_scores("NodeResourcesFit", ASKS.pod_request(cpu="1", memory="1"), [FOUR]) == [37]


def test_a_node_without_a_resource_is_scored_by_the_others() -> None:
    assert raw_scores("NodeResourcesFit", ASKS, [node("n").allocatable(cpu="4000", memory="0")]) == [25]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        pytest.param(strategy("Tightest"), "scoringStrategy.type: Unsupported value", id="an unknown strategy"),
        pytest.param(strategy("LeastAllocated", cpu=101), "not in valid range", id="a weight above 100"),
        pytest.param(
            strategy("RequestedToCapacityRatio"),
            "must be specified when type is RequestedToCapacityRatio",
            id="no shape",
        ),
    ],
)
def test_arguments_are_checked(args: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        plugin_of("NodeResourcesFit", cluster([]), args)
