"""How a profile runs its plugins: kube-scheduler's rules for codes, Skip, normalisation and faults."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
import pytest

from ksched.cache.cluster import Cluster
from ksched.engine.cycle import Cycle, Placement, Unplaced
from ksched.framework import (
    ArrayFilterPlugin,
    ArrayScorePlugin,
    CycleState,
    FilterPlugin,
    NodeInfo,
    Normalization,
    PermitPlugin,
    Plugin,
    PodInfo,
    PostFilterPlugin,
    PostFilterResult,
    PreFilterPlugin,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
    Status,
    Table,
    Wait,
)
from ksched.framework.profile import Profile
from ksched.testing import cluster, handle, node, pod

POINTS: dict[str, tuple[type, ...]] = {
    "pre_filter": (PreFilterPlugin,),
    "filter": (FilterPlugin, ArrayFilterPlugin),
    "post_filter": (PostFilterPlugin,),
    "pre_score": (PreScorePlugin,),
    "score": (ScorePlugin, ArrayScorePlugin),
    "reserve": (ReservePlugin,),
    "permit": (PermitPlugin,),
}


class Order(QueueSortPlugin):
    name = "Order"

    def sort_key(self, pod: PodInfo, timestamp: float) -> Any:
        return timestamp


def profile(here: Cluster, *plugins: Plugin, weights: dict[str, int] | None = None) -> Profile:
    """A profile that runs `plugins` wherever they can be, in this order."""
    enabled: dict[str, Sequence[tuple[Plugin, int]]] = {
        point: [(plugin, (weights or {}).get(plugin.name, 1)) for plugin in plugins if isinstance(plugin, bases)]
        for point, bases in POINTS.items()
    }
    enabled["queue_sort"] = [(Order(None, handle(here)), 0)]
    return Profile("test", here, enabled, native=True)


def schedule(here: Cluster, *plugins: Plugin, **options: Any) -> Placement | Unplaced:
    return Cycle(here, rng=random.Random(7)).schedule(
        profile(here, *plugins, **options), here.shapes.info(pod("web").build()), {}
    )


def pre_filter(plugin_name: str, answer: AbstractSet[str] | Status | None) -> PreFilterPlugin:
    class Answers(PreFilterPlugin):
        name = plugin_name

        def pre_filter(self, state: CycleState, pod: PodInfo, nodes: Table) -> AbstractSet[str] | Status | None:
            return answer

    return Answers(None, handle(cluster([])))


def filters(plugin_name: str, says: Callable[[NodeInfo], Status | None]) -> FilterPlugin:
    class Filters(FilterPlugin):
        name = plugin_name

        def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
            return says(node)

    return Filters(None, handle(cluster([])))


def scores(plugin_name: str, values: dict[str, int], how: Normalization = Normalization.NONE) -> ScorePlugin:
    class Scores(ScorePlugin):
        name = plugin_name
        normalization = how

        def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int | Status:
            return values[node.name]

        def normalize(self, state: CycleState, pod: PodInfo, scores: np.ndarray) -> np.ndarray:
            return scores.max() - scores

    return Scores(None, handle(cluster([])))


AB = [node("a"), node("b")]
NO = Status.unschedulable("not now")
NEVER = Status.unresolvable("never")


@pytest.mark.parametrize(
    ("answers", "message", "plugins"),
    [
        pytest.param([NO], "0/2 nodes are available: not now.", {"P0"}, id="Unschedulable turns the pod down"),
        pytest.param(
            [NO, Status.unschedulable("nor later")],
            "0/2 nodes are available: nor later.",
            {"P1"},
            id="after Unschedulable the rest still runs and the last one's words count",
        ),
        pytest.param(
            [NO, NEVER], "0/2 nodes are available: never.", {"P1"}, id="UnschedulableAndUnresolvable ends it at once"
        ),
        pytest.param(
            [{"c"} & set()],
            "0/2 nodes are available: node(s) didn't satisfy plugin P0.",
            {"P0"},
            id="no node left by one plugin",
        ),
        pytest.param(
            [{"a"}, {"b"}],
            "0/2 nodes are available: node(s) didn't satisfy plugin(s) [P0 P1] simultaneously.",
            {"P0", "P1"},
            id="no node left by two plugins together",
        ),
        pytest.param(
            [{"gone"}],
            "0/2 nodes are available: 2 node(s) didn't satisfy plugin(s) [P0].",
            {"P0"},
            id="names of nodes that do not exist are left out, and the rest did not satisfy the plugin",
        ),
        pytest.param(
            [Status.error("broken")], 'running PreFilter plugin "P0": broken', set(), id="an error ends the cycle"
        ),
    ],
)
def test_pre_filter(answers: list[Any], message: str, plugins: set[str]) -> None:
    here = cluster(AB)
    found = schedule(here, *(pre_filter(f"P{i}", answer) for i, answer in enumerate(answers)))
    assert isinstance(found, Unplaced)
    assert (found.message, found.unschedulable_plugins) == (message, plugins)
    assert here.pod_count == 0


def test_skip_in_pre_filter_leaves_the_filter_out() -> None:
    class Skips(PreFilterPlugin, FilterPlugin):
        name = "Skips"

        def pre_filter(self, state: CycleState, pod: PodInfo, nodes: Table) -> Status | None:
            return Status.skip()

        def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
            return NO

    here = cluster(AB)
    assert isinstance(schedule(here, Skips(None, handle(here))), Placement)


def test_each_node_is_turned_down_by_the_first_filter_that_objects() -> None:
    here = cluster([*AB, node("c")])
    found = schedule(
        here,
        filters("First", lambda info: NO if info.name == "a" else None),
        filters("Second", lambda info: NEVER),
    )
    assert isinstance(found, Unplaced)
    assert found.message == "0/3 nodes are available: 1 not now, 2 never."
    assert found.unschedulable_plugins == {"First", "Second"}


def test_counts_are_sorted_as_text() -> None:
    here = cluster([node(f"n{i}") for i in range(12)])
    found = schedule(here, filters("F", lambda info: NEVER if info.name in ("n0", "n1") else NO))
    assert isinstance(found, Unplaced)
    assert found.message == "0/12 nodes are available: 10 not now, 2 never."


def test_a_pending_plugin_is_told_apart() -> None:
    here = cluster(AB)
    found = schedule(here, filters("Waits", lambda info: Status.pending("something outside")))
    assert isinstance(found, Unplaced)
    assert (found.unschedulable_plugins, found.pending_plugins) == (frozenset(), {"Waits"})


def test_an_array_filter_speaks_through_its_codes() -> None:
    class Codes(ArrayFilterPlugin):
        name = "Codes"
        reasons = (NO, NEVER)

        def filter_array(self, state: CycleState, pod: PodInfo, nodes: Table) -> np.ndarray:
            return np.array([1, 2], dtype=np.uint8)

    here = cluster(AB)
    found = schedule(here, Codes(None, handle(here)))
    assert isinstance(found, Unplaced)
    assert found.message == "0/2 nodes are available: 1 never, 1 not now."


def test_an_error_in_a_filter_fails_the_cycle() -> None:
    here = cluster(AB)
    found = schedule(here, filters("F", lambda info: Status.error(f"{info.name} is broken")))
    assert isinstance(found, Unplaced)
    assert found.message == 'running "F" filter plugin: a is broken'
    assert (found.reason, found.unschedulable_plugins) == ("SchedulerError", frozenset())


@pytest.mark.parametrize("point", ["pre_filter", "filter", "pre_score", "score", "reserve", "permit"])
def test_a_plugin_that_raises_fails_the_cycle_and_nothing_else(point: str, caplog: pytest.LogCaptureFixture) -> None:
    base = POINTS[point][0]

    def explode(*_: Any) -> Any:
        raise RuntimeError("a bug")

    methods = dict.fromkeys(base.__abstractmethods__, explode)
    methods["unreserve"] = lambda *_: None
    plugin = type("Buggy", (base,), {"name": "Buggy", **methods})
    here = cluster(AB)
    found = schedule(here, plugin(None, handle(here)))
    assert isinstance(found, Unplaced)
    assert found.reason == "SchedulerError"
    assert "RuntimeError: a bug" in found.message
    assert here.pod_count == 0
    assert 'plugin failed plugin="Buggy"' in caplog.text


@pytest.mark.parametrize(
    ("how", "raw", "total"),
    [
        pytest.param(Normalization.NONE, {"a": 3, "b": 9}, {"a": 6, "b": 18}, id="raw scores times the weight"),
        pytest.param(Normalization.MAX, {"a": 29, "b": 100}, {"a": 58, "b": 200}, id="a share of the highest"),
        pytest.param(Normalization.MAX, {"a": 1, "b": 3}, {"a": 66, "b": 200}, id="shares are truncated"),
        pytest.param(Normalization.MAX, {"a": 0, "b": 0}, {"a": 0, "b": 0}, id="all zero stays zero"),
        pytest.param(Normalization.REVERSED_MAX, {"a": 1, "b": 3}, {"a": 134, "b": 0}, id="reversed"),
        pytest.param(Normalization.REVERSED_MAX, {"a": 0, "b": 0}, {"a": 200, "b": 200}, id="reversed, all zero: 100"),
        pytest.param(Normalization.CUSTOM, {"a": 1, "b": 3}, {"a": 4, "b": 0}, id="the plugin's own"),
    ],
)
def test_scores_are_normalised_and_weighed(how: Normalization, raw: dict[str, int], total: dict[str, int]) -> None:
    here = cluster(AB)
    found = profile(here, scores("S", raw, how), weights={"S": 2})
    report = Cycle(here, rng=random.Random(7)).evaluate(found, here.shapes.info(pod("web").build()), {})
    assert report.total == total
    assert {name: values["S"] for name, values in report.raw.items()} == raw


@pytest.mark.parametrize("score", [-1, 101])
def test_a_score_out_of_range_fails_the_cycle(score: int) -> None:
    here = cluster(AB)
    found = schedule(here, scores("S", {"a": score, "b": 0}))
    assert isinstance(found, Unplaced)
    assert found.message == (
        f'applying score defaultWeights on Score plugins: plugin "S" returns an invalid score {score}, '
        "it should in the range of [0, 100] after normalizing"
    )


def test_a_single_feasible_node_is_not_scored() -> None:
    here = cluster(AB)
    found = schedule(here, filters("F", lambda info: NO if info.name == "a" else None), scores("S", {"b": -5}))
    assert isinstance(found, Placement)
    assert (found.node_name, found.feasible, found.evaluated) == ("b", 1, 2)


def test_ties_are_broken_evenly_and_by_the_seed() -> None:
    def picks(seed: int) -> list[str]:
        here = cluster([node(f"n{i}").capacity(pods=10_000) for i in range(4)])
        cycle, plain = Cycle(here, rng=random.Random(seed)), profile(here)
        found = []
        for i in range(400):
            placement = cycle.schedule(plain, here.shapes.info(pod(f"p{i}").build()), {})
            assert isinstance(placement, Placement)
            found.append(placement.node_name)
        return found

    assert picks(1) == picks(1)
    assert picks(1) != picks(2)
    assert all(picks(1).count(f"n{i}") > 60 for i in range(4))


def test_reserve_that_fails_is_undone_everywhere() -> None:
    undone: list[str] = []

    def reserve(plugin_name: str, answer: Status | None) -> ReservePlugin:
        class Reserves(ReservePlugin):
            name = plugin_name

            def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
                return answer

            def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
                undone.append(self.name)

        return Reserves(None, handle(cluster([])))

    here = cluster([node("a")])
    found = schedule(here, reserve("R0", None), reserve("R1", NO), reserve("R2", None))
    assert isinstance(found, Unplaced)
    assert found.message == "0/1 nodes are available: 1 not now."
    assert undone == ["R2", "R1", "R0"]
    assert here.pod_count == 0


@pytest.mark.parametrize(
    ("answer", "waits"),
    [
        pytest.param(None, (), id="a pod that is permitted waits for nobody"),
        pytest.param(Wait(3.0), (("P", 3.0),), id="a pod that is to wait is placed and held"),
    ],
)
def test_permit(answer: Wait | None, waits: tuple[tuple[str, float], ...]) -> None:
    class Permits(PermitPlugin):
        name = "P"

        def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | Wait | None:
            return answer

    here = cluster([node("a")])
    found = schedule(here, Permits(None, handle(here)))
    assert isinstance(found, Placement)
    assert found.waits == waits
    assert here.assumed_count == 1


@pytest.mark.parametrize(
    ("answers", "nomination", "message"),
    [
        pytest.param([(PostFilterResult("b"), None)], "b", "0/2 nodes are available: 2 not now.", id="room was made"),
        pytest.param(
            [(None, Status.unschedulable("no victims"))],
            None,
            "0/2 nodes are available: 2 not now. no victims",
            id="a plugin that cannot help adds its words and leaves the nomination",
        ),
        pytest.param(
            [(PostFilterResult(""), Status.unschedulable("one")), (None, Status.unschedulable("two"))],
            "",
            "0/2 nodes are available: 2 not now. one, two",
            id="words are collected, and a nomination is cleared",
        ),
        pytest.param(
            [(None, Status.unresolvable("hopeless")), (PostFilterResult("b"), None)],
            None,
            "0/2 nodes are available: 2 not now. hopeless",
            id="a plugin that knows that nothing helps ends it",
        ),
    ],
)
def test_post_filter(answers: list[Any], nomination: str | None, message: str) -> None:
    def post_filter(plugin_name: str, answer: tuple[PostFilterResult | None, Status | None]) -> PostFilterPlugin:
        class Makes(PostFilterPlugin):
            name = plugin_name

            def post_filter(self, state: CycleState, pod: PodInfo, statuses: Any) -> Any:
                assert set(statuses) == {"a", "b"}
                return answer

        return Makes(None, handle(cluster([])))

    here = cluster(AB)
    found = schedule(
        here, filters("F", lambda info: NO), *(post_filter(f"M{i}", answer) for i, answer in enumerate(answers))
    )
    assert isinstance(found, Unplaced)
    assert (found.nominated_node, found.message) == (nomination, message)
