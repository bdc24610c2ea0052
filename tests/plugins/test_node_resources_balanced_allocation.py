"""NodeResourcesBalancedAllocation: worked examples of upstream's score."""

from __future__ import annotations

from typing import Any

import pytest

from ksched.testing import NodeBuilder, PodBuilder, node, pod
from tests.plugins.asking import raw_scores

GPU = "nvidia.com/gpu"
WITH_GPU: dict[str, Any] = {"resources": [{"name": name, "weight": 1} for name in ("cpu", "memory", GPU)]}


def room(cpu: int, memory: int, gpu: int | None = None) -> NodeBuilder:
    plain = node("n").capacity(cpu=f"{cpu}m", memory=memory)
    return plain if gpu is None else plain.capacity({GPU: gpu})


def asks(cpu: int, memory: int, gpu: int = 0) -> PodBuilder:
    plain = pod("asks").request(cpu=f"{cpu}m", memory=memory)
    return plain.request({GPU: gpu}) if gpu else plain


@pytest.mark.parametrize(
    ("here", "one", "there", "args", "score"),
    [
        pytest.param(room(4000, 10000), asks(3000, 5000), None, {}, 68, id="shares drift apart"),
        pytest.param(room(6000, 10000), asks(3000, 5000), None, {}, 75, id="balance stays"),
        pytest.param(room(10000, 20000), asks(3000, 5000), asks(3000, 0), {}, 73, id="a little worse than before"),
        pytest.param(room(10000, 50000), asks(3000, 5000), asks(3000, 5000), {}, 70, id="worse on a lopsided node"),
        pytest.param(room(3000, 5000), asks(0, 5000), asks(3000, 0), {}, 100, id="the pod evens the node out"),
        pytest.param(room(3000, 5000), asks(0, 5000), None, {}, 50, id="the pod takes all of one resource"),
        pytest.param(room(3500, 40000, 8), asks(0, 0, 1), asks(3000, 5000, 3), WITH_GPU, 75, id="three resources"),
        pytest.param(room(3500, 40000), asks(3000, 5000), None, WITH_GPU, 56, id="a resource nobody has is left out"),
        pytest.param(room(100, 100), asks(0, 68), None, {}, 57, id="65.99999999999999 is truncated to 65"),
    ],
)
def test_score(here: NodeBuilder, one: PodBuilder, there: PodBuilder | None, args: dict[str, Any], score: int) -> None:
    placed = [there.on("n").uid("other")] if there is not None else []
    assert raw_scores("NodeResourcesBalancedAllocation", one, [here], placed, args) == [score]


def test_a_pod_that_asks_for_nothing_gets_no_score() -> None:
    assert raw_scores("NodeResourcesBalancedAllocation", pod(), [room(4000, 10000)]) == "Skip"


def test_overhead_is_added_again_to_a_pod_level_quantity_that_is_held_as_a_decimal() -> None:
    """Upstream adds it in place once per configured resource; 2.9Gi is such a quantity, 3Gi is not."""
    here = node("n").capacity(cpu="2", memory="4Gi")
    drifting = pod().request(cpu="1.94").pod_request(memory="2.9Gi").overhead(cpu="10m", memory="16Mi")
    steady = pod().request(cpu="1.94").pod_request(memory="2969.6Mi").overhead(cpu="10m")
    assert raw_scores("NodeResourcesBalancedAllocation", drifting, [here]) == [69]
    assert raw_scores("NodeResourcesBalancedAllocation", steady, [here]) == [68]
