"""Metrics of one scheduler under kube-scheduler's names.

What is counted per pod goes into plain numbers and lists: a prometheus_client counter costs about a microsecond and a
histogram more, a dictionary and a bisection a fraction of that. `Metrics.collect` makes samples of them when somebody
asks; gauges are read from their sources at that moment, so they are never out of step. There is no global registry.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

SCHEDULED = "scheduled"
UNSCHEDULABLE = "unschedulable"
ERROR = "error"


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Upper bounds of `count` buckets, each `factor` times the one before."""
    return tuple(start * factor**step for step in range(count))


class Histogram:
    """How often a value fell into which bucket. `observe` is the hot path."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    @property
    def count(self) -> int:
        """How many values were counted."""
        return sum(self.counts)

    def quantile(self, q: float) -> float:
        """The value below which a share `q` of the values lies, guessed within its bucket; 0 without any values."""
        wanted, seen, lower = q * self.count, 0, 0.0
        for bound, here in zip(self.bounds, self.counts, strict=False):
            if here and seen + here >= wanted:
                return lower + (bound - lower) * (wanted - seen) / here
            seen, lower = seen + here, bound
        return lower if self.count else 0.0

    def buckets(self) -> list[tuple[str, float]]:
        """Cumulative counts by upper bound, as the exposition wants them."""
        total, found = 0, []
        for bound, here in zip((*self.bounds, float("inf")), self.counts, strict=True):
            total += here
            found.append(("+Inf" if bound == float("inf") else repr(float(bound)), float(total)))
        return found


_ATTEMPT_SECONDS = exponential(0.001, 2, 15)
_SLI_SECONDS = exponential(0.01, 2, 20)
_ATTEMPTS = exponential(1, 2, 5)


class Metrics(Collector):
    """Everything that one scheduler counts."""

    def __init__(self) -> None:
        self.attempts: Counter[tuple[str, str]] = Counter()
        """Scheduling attempts by (result, profile)."""
        self.attempt_seconds: dict[tuple[str, str], Histogram] = {}
        self.algorithm_seconds = Histogram(_ATTEMPT_SECONDS)
        self.attempts_of_scheduled = Histogram(_ATTEMPTS)
        self.sli_seconds: dict[str, Histogram] = {}
        self.queue_incoming: Counter[tuple[str, str]] = Counter()
        """Pods that entered a queue by (queue, event)."""
        self.malformed_objects: Counter[str] = Counter()
        """Objects that could be decoded and not be understood, by kind."""
        self.undecodable_objects: Callable[[], Mapping[str, int]] = dict
        self.bind_failures: Counter[str] = Counter()
        """Bindings that failed, by reason."""
        self.pending_pods: Callable[[], Mapping[str, int]] = dict
        self.unschedulable_pods: Callable[[], Mapping[tuple[str, str], int]] = dict
        self.cache_size: Callable[[], Mapping[str, int]] = dict
        self.events_dropped: Callable[[], int] = int
        self.binds_in_flight: Callable[[], int] = int

    # -- counting

    def attempted(self, result: str, profile: str, seconds: float) -> None:
        """An attempt to schedule a pod has ended; `seconds` from the beginning of its cycle."""
        key = (result, profile)
        self.attempts[key] += 1
        histogram = self.attempt_seconds.get(key)
        if histogram is None:
            histogram = self.attempt_seconds[key] = Histogram(_ATTEMPT_SECONDS)
        histogram.observe(seconds)

    def scheduled(self, profile: str, cycle_seconds: float, attempts: int, waited_seconds: float) -> None:
        """A pod is bound: after so many attempts, and so many seconds after it first became active."""
        self.attempted(SCHEDULED, profile, cycle_seconds)
        self.attempts_of_scheduled.observe(attempts)
        label = str(attempts) if attempts < 15 else "15+"
        histogram = self.sli_seconds.get(label)
        if histogram is None:
            histogram = self.sli_seconds[label] = Histogram(_SLI_SECONDS)
        histogram.observe(waited_seconds)

    def incoming(self, queue: str, event: str) -> None:
        """A pod entered a queue."""
        self.queue_incoming[queue, event] += 1

    # -- answering

    def malformed(self) -> Counter[str]:
        """Every object that could not be understood, by kind."""
        return self.malformed_objects + Counter(self.undecodable_objects())

    def snapshot(self) -> dict[str, Any]:
        """The main numbers as a dictionary that can be written as JSON."""
        waited = Histogram(_SLI_SECONDS)
        for histogram in self.sli_seconds.values():
            waited.counts = [one + other for one, other in zip(waited.counts, histogram.counts, strict=True)]
            waited.sum += histogram.sum
        results: Counter[str] = Counter()
        for (result, _), count in self.attempts.items():
            results[result] += count
        return {
            "attempts": {result: results[result] for result in (SCHEDULED, UNSCHEDULABLE, ERROR)},
            "pending": dict(self.pending_pods()),
            "cache": dict(self.cache_size()),
            "algorithm_seconds": _summary(self.algorithm_seconds),
            "waited_seconds": _summary(waited),
            "malformed_objects": dict(self.malformed()),
            "bind_failures": dict(self.bind_failures),
            "binds_in_flight": self.binds_in_flight(),
            "events_dropped": self.events_dropped(),
        }

    def collect(self) -> Iterator[Metric]:
        """Samples for the exposition."""
        yield from self._counters()
        yield from self._histograms()
        yield from self._gauges()

    def _counters(self) -> Iterator[Metric]:
        yield _counter(
            "scheduler_schedule_attempts_total",
            "[STABLE] Number of attempts to schedule pods, by the result. 'unschedulable' means a pod could not be "
            "scheduled, while 'error' means an internal scheduler problem.",
            ("result", "profile"),
            self.attempts,
        )
        yield _counter(
            "scheduler_queue_incoming_pods_total",
            "[STABLE] Number of pods added to scheduling queues by event and queue type.",
            ("queue", "event"),
            self.queue_incoming,
        )
        yield _counter(
            "ksched_malformed_objects_total",
            "[ALPHA] Objects from the API server that could not be understood, by kind.",
            ("kind",),
            {(kind,): count for kind, count in self.malformed().items()},
        )
        yield _counter(
            "ksched_bind_failures_total",
            "[ALPHA] Bindings that failed, by reason.",
            ("reason",),
            {(reason,): count for reason, count in self.bind_failures.items()},
        )
        yield _counter(
            "ksched_events_dropped_total",
            "[ALPHA] Event objects that were not written because too many were waiting.",
            (),
            {(): self.events_dropped()},
        )

    def _histograms(self) -> Iterator[Metric]:
        yield _histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "[STABLE] Scheduling attempt latency in seconds (scheduling algorithm + binding)",
            ("result", "profile"),
            self.attempt_seconds,
        )
        yield _histogram(
            "scheduler_scheduling_algorithm_duration_seconds",
            "[ALPHA] Scheduling algorithm latency in seconds",
            (),
            {(): self.algorithm_seconds},
        )
        yield _histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "[BETA] E2e latency for a pod being scheduled, from the time the pod enters the scheduling queue and "
            "might involve multiple scheduling attempts.",
            ("attempts",),
            {(attempts,): histogram for attempts, histogram in self.sli_seconds.items()},
        )
        yield _histogram(
            "scheduler_pod_scheduling_attempts",
            "[STABLE] Number of attempts to successfully schedule a pod.",
            (),
            {(): self.attempts_of_scheduled},
        )

    def _gauges(self) -> Iterator[Metric]:
        yield _gauge(
            "scheduler_pending_pods",
            "[STABLE] Number of pending pods, by the queue type. 'active' means number of pods in activeQ; "
            "'backoff' means number of pods in backoffQ; 'unschedulable' means number of pods in unschedulablePods "
            "that the scheduler attempted to schedule and failed; 'gated' is the number of unschedulable pods that "
            "the scheduler never attempted to schedule because they are gated.",
            ("queue",),
            {(queue,): count for queue, count in self.pending_pods().items()},
        )
        yield _gauge(
            "scheduler_unschedulable_pods",
            "[BETA] The number of unschedulable pods broken down by plugin name. A pod will increment the gauge for "
            "all plugins that caused it to not schedule and so this metric have meaning only when broken down by "
            "plugin.",
            ("plugin", "profile"),
            self.unschedulable_pods(),
        )
        yield _gauge(
            "scheduler_cache_size",
            "[ALPHA] Number of nodes, pods, and assumed (bound) pods in the scheduler cache.",
            ("type",),
            {(kind,): count for kind, count in self.cache_size().items()},
        )
        yield _gauge(
            "ksched_binds_in_flight",
            "[ALPHA] Pods that have a node and whose binding is not finished.",
            (),
            {(): self.binds_in_flight()},
        )


def _summary(histogram: Histogram) -> dict[str, float]:
    return {
        "count": histogram.count,
        "sum": histogram.sum,
        "p50": histogram.quantile(0.5),
        "p99": histogram.quantile(0.99),
    }


def _counter(name: str, text: str, labels: Sequence[str], values: Mapping[Any, int]) -> Metric:
    family = CounterMetricFamily(name, text, labels=labels)
    for key, value in values.items():
        family.add_metric(key, value)
    return family


def _gauge(name: str, text: str, labels: Sequence[str], values: Mapping[Any, int]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=labels)
    for key, value in values.items():
        family.add_metric(key, value)
    return family


def _histogram(name: str, text: str, labels: Sequence[str], values: Mapping[Any, Histogram]) -> Metric:
    family = HistogramMetricFamily(name, text, labels=labels)
    for key, histogram in values.items():
        family.add_metric(key, histogram.buckets(), histogram.sum)
    return family
