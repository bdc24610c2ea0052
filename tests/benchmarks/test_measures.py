"""The arithmetic of figures: scheduler_perf's throughput and percentiles, windows, latencies, spreads."""

from __future__ import annotations

import pytest

from benchmarks.scheduler_perf import measures
from benchmarks.scheduler_perf.measures import PodTimes

SECOND = 1_000_000_000


def bound_at(*seconds: float) -> list[int]:
    return [round(each * SECOND) for each in seconds]


@pytest.mark.parametrize(
    ("bound", "end", "samples"),
    [
        pytest.param([], 10, [], id="without pods there are no samples"),
        pytest.param([0.5], 5, [], id="the first second with pods gives no sample, and nothing comes after it"),
        pytest.param([0.5, 1.2, 1.4], 2, [2.0], id="the second one does"),
        pytest.param([0.5, 1.2, 2.2, 2.3, 2.4], 2.9, [1.0], id="the last partial second is dropped"),
        pytest.param(
            [0.5, 3.1, 3.2, 3.3], 4, [1.0, 1.0, 1.0], id="empty seconds are filled with the average of the gap"
        ),
        pytest.param([2.5, 3.5], 5, [1.0], id="seconds before the first pod do not count"),
        pytest.param([1.0, 2.0], 2, [1.0], id="a pod bound at a tick belongs to the second that ends there"),
    ],
)
def test_throughput_is_sampled_as_scheduler_perf_does(bound: list[float], end: float, samples: list[float]) -> None:
    assert measures.throughput(bound_at(*bound), 0, round(end * SECOND)) == samples


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [
        pytest.param([1, 2, 3, 4], 50, 2, id="half of four is the second"),
        pytest.param([1, 2, 3], 50, 2, id="half of three is the second, too"),
        pytest.param([1, 2, 3, 4], 99, 4, id="nearly all is the last"),
        pytest.param([7], 90, 7, id="one value is every percentile"),
        pytest.param(list(range(1, 101)), 90, 90, id="ninety of a hundred"),
    ],
)
def test_percentiles_are_those_of_scheduler_perf(values: list[float], percent: int, expected: float) -> None:
    assert measures.upstream_percentile(values, percent) == expected


def test_a_summary_has_upstreams_names_and_none_without_samples() -> None:
    assert measures.throughput_summary([3.0, 1.0]) == {
        "Average": 2.0, "Perc50": 1.0, "Perc90": 3.0, "Perc95": 3.0, "Perc99": 3.0,
    }  # fmt: skip
    assert measures.throughput_summary([]) == {}


def pod(created: float, bound: float) -> PodTimes:
    return PodTimes("ns", f"{created}", "node", round(created * SECOND), round(bound * SECOND))


def test_the_window_is_from_the_first_creation_to_the_last_binding() -> None:
    found = measures.window([pod(1, 2), pod(0.5, 4.5), pod(0.1, 0)])
    assert found is not None
    assert (found.pods, found.seconds, found.pods_per_second) == (2, 4.0, 0.5)


def test_without_a_bound_pod_there_is_no_window() -> None:
    assert measures.window([pod(1, 0)]) is None


def test_latencies_are_nearest_ranks() -> None:
    found = measures.latency_seconds([pod(0, number / 1000) for number in range(1, 1001)])
    assert found == {"p50": 0.5, "p99": 0.99, "p99.9": 0.999, "max": 1.0}


def test_each_second_counts_its_bindings() -> None:
    assert measures.per_second(bound_at(0, 0.9, 1.0, 2.4), 0, round(2.5 * SECOND)) == [2, 1, 1]


def test_the_spread_of_use_is_the_largest_minus_the_smallest_share() -> None:
    found = measures.spread_of_use(
        {"a": {"cpu": 4, "gpu": 0}, "b": {"cpu": 8, "gpu": 2}, "c": {"cpu": 4, "gpu": 2}},
        {"a": {"cpu": 2}, "b": {"cpu": 2, "gpu": 1}},
    )
    assert found["cpu"] == {"largest": 0.5, "smallest": 0.0, "difference": 0.5}
    assert found["gpu"]["difference"] == 0.5  # a node without any does not count


def test_a_resource_nobody_uses_is_left_out() -> None:
    assert measures.spread_of_use({"a": {"cpu": 4}}, {}) == {}


def test_a_spread_is_relative_to_the_median() -> None:
    found = measures.spread([9.0, 10.0, 12.0])
    assert found is not None
    assert (found.median, found.relative) == (10.0, 0.3)
    assert measures.spread([]) is None
