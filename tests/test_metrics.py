"""Metrics: names, buckets and labels as people's dashboards expect them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from ksched.metrics import ERROR, SCHEDULED, UNSCHEDULABLE, Histogram, Metrics, exponential


def exposition(metrics: Metrics) -> dict[str, float]:
    """Sample, as written: its value."""
    registry = CollectorRegistry()
    registry.register(metrics)
    lines = generate_latest(registry).decode().splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}


def busy() -> Metrics:
    metrics = Metrics()
    metrics.scheduled("default-scheduler", 0.003, 1, 0.02)
    metrics.scheduled("default-scheduler", 0.5, 16, 300.0)
    metrics.attempted(UNSCHEDULABLE, "default-scheduler", 0.001)
    metrics.attempted(ERROR, "batch", 0.001)
    metrics.algorithm_seconds.observe(0.0005)
    metrics.incoming("active", "UnschedulablePodAdd")
    metrics.malformed_objects["Node"] += 1
    metrics.bind_failures["Conflict"] += 2
    metrics.pending_pods = lambda: {"active": 3, "backoff": 0, "unschedulable": 1, "gated": 2}
    metrics.unschedulable_pods = lambda: {("NodeResourcesFit", "default-scheduler"): 1}
    metrics.cache_size = lambda: {"nodes": 5, "pods": 4, "assumed_pods": 1}
    metrics.events_dropped = lambda: 7
    return metrics


@pytest.mark.parametrize(
    ("sample", "value"),
    [
        ('scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"}', 2),
        ('scheduler_schedule_attempts_total{profile="default-scheduler",result="unschedulable"}', 1),
        ('scheduler_schedule_attempts_total{profile="batch",result="error"}', 1),
        ("scheduler_scheduling_algorithm_duration_seconds_count", 1),
        ('scheduler_scheduling_algorithm_duration_seconds_bucket{le="0.001"}', 1),
        ('scheduler_pod_scheduling_attempts_bucket{le="1.0"}', 1),
        ('scheduler_pod_scheduling_attempts_bucket{le="8.0"}', 1),
        ('scheduler_pod_scheduling_attempts_bucket{le="16.0"}', 2),
        ('scheduler_pod_scheduling_sli_duration_seconds_count{attempts="1"}', 1),
        ('scheduler_pod_scheduling_sli_duration_seconds_sum{attempts="15+"}', 300),
        ('scheduler_queue_incoming_pods_total{event="UnschedulablePodAdd",queue="active"}', 1),
        ('scheduler_pending_pods{queue="gated"}', 2),
        ('scheduler_unschedulable_pods{plugin="NodeResourcesFit",profile="default-scheduler"}', 1),
        ('scheduler_cache_size{type="assumed_pods"}', 1),
        ('ksched_malformed_objects_total{kind="Node"}', 1),
        ('ksched_bind_failures_total{reason="Conflict"}', 2),
        ("ksched_events_dropped_total", 7),
    ],
)
def test_every_number_is_found_under_its_name(sample: str, value: float) -> None:
    assert exposition(busy())[sample] == value


def test_gauges_are_read_when_they_are_asked_for() -> None:
    metrics = busy()
    active = {"active": 3}
    metrics.pending_pods = lambda: active
    active["active"] = 9
    assert exposition(metrics)['scheduler_pending_pods{queue="active"}'] == 9


def test_two_schedulers_in_one_process_count_apart() -> None:
    one, other = Metrics(), Metrics()
    one.attempted(SCHEDULED, "default-scheduler", 0.1)
    assert not other.attempts


def test_snapshot_says_the_main_numbers_in_plain_values() -> None:
    snapshot = busy().snapshot()
    assert snapshot["attempts"] == {"scheduled": 2, "unschedulable": 1, "error": 1}
    assert snapshot["pending"]["unschedulable"] == 1
    assert snapshot["waited_seconds"]["count"] == 2


def test_a_value_on_the_bound_of_a_bucket_belongs_to_it() -> None:
    histogram = Histogram(exponential(1, 2, 3))
    for value in (1, 1.5, 2, 4, 5):
        histogram.observe(value)
    assert histogram.buckets() == [("1.0", 1), ("2.0", 3), ("4.0", 4), ("+Inf", 5)]
    assert histogram.sum == 13.5


@pytest.mark.parametrize(
    ("q", "value"),
    [
        pytest.param(0.0, 1.0, id="nothing lies below the bucket of the smallest"),
        pytest.param(0.5, 1.5, id="within a bucket values count as spread evenly"),
        pytest.param(1.0, 2.0, id="all lie below the bound of the last bucket used"),
    ],
)
def test_quantile_is_guessed_within_its_bucket(q: float, value: float) -> None:
    histogram = Histogram(exponential(1, 2, 4))
    for _ in range(10):
        histogram.observe(1.7)
    assert histogram.quantile(q) == pytest.approx(value)


def test_quantile_of_nothing_is_nothing() -> None:
    assert Histogram(exponential(1, 2, 4)).quantile(0.5) == 0.0


MEASURED = Path(__file__).parents[2] / "shared" / "measured" / "metrics" / "exposition.json"


@pytest.mark.skipif(not MEASURED.exists(), reason=f"no measured exposition in {MEASURED}")
def test_families_are_those_of_kube_scheduler() -> None:
    measured = {family["name"]: family for family in json.loads(MEASURED.read_text())["metrics"]["families"]}
    wrong = []
    for family in busy().collect():
        if not family.name.startswith("scheduler_"):
            continue
        name = family.name + ("_total" if family.type == "counter" else "")
        labels = sorted({label for sample in family.samples for label in sample.labels} - {"le"})
        stability = family.documentation.partition("]")[0].lstrip("[")
        expected = measured[name]
        if (family.type, stability, labels) != (expected["type"], expected["stability"], expected["labels"]):
            wrong.append((name, family.type, stability, labels, expected))
    assert wrong == []
