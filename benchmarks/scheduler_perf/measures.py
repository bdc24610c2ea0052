"""From times of pods to figures; no I/O.

`throughput` follows scheduler_perf's SchedulingThroughput collector to the letter, quirks included: the first second
with a scheduled pod gives no sample, the last partial second is dropped, and empty seconds are filled with the average
of the gap. Everything else is plain: nearest-rank percentiles of what the server noted.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

SHORTEST_WINDOW_SECONDS = 10.0
"""A run that took less says nothing about a rate: collectors, caches and clocks have not settled."""


class PodTimes(NamedTuple):
    """When a pod was created and bound, in Unix nanoseconds; `bound` is 0 for one without a node."""

    namespace: str
    name: str
    node: str
    created: int
    bound: int


class Window(NamedTuple):
    """From the creation of the first measured pod to the last binding of one."""

    start: int
    end: int
    pods: int

    @property
    def seconds(self) -> float:
        """How long it was."""
        return (self.end - self.start) / 1e9

    @property
    def pods_per_second(self) -> float:
        """The acceptance figure."""
        return self.pods / self.seconds if self.seconds > 0 else 0.0


def window(pods: Iterable[PodTimes]) -> Window | None:
    """The window of the pods that were bound; None where none was."""
    bound = [pod for pod in pods if pod.bound]
    if not bound:
        return None
    return Window(min(pod.created for pod in bound), max(pod.bound for pod in bound), len(bound))


def throughput(bound: Sequence[int], start: int, end: int) -> list[float]:
    """The samples of scheduler_perf's collector, ticking every second from `start`, for bindings at `bound` (ns)."""
    ordered = sorted(bound)
    samples: list[float] = []
    last_count = skipped = at = 0
    last_tick = 0
    seen = False
    for tick in range(start + 1_000_000_000, end + 1, 1_000_000_000):
        while at < len(ordered) and ordered[at] <= tick:
            at += 1
        if at == 0:
            continue
        if not seen:
            seen, last_count, last_tick = True, at, tick
            continue
        new = at - last_count
        if new == 0:
            skipped += 1
            continue
        rate = new / ((tick - last_tick) / 1e9)
        samples += [rate] * (skipped + 1)
        skipped, last_count, last_tick = 0, at, tick
    return samples


def throughput_summary(samples: Sequence[float]) -> dict[str, float]:
    """Average and percentiles under scheduler_perf's names; empty where there are no samples."""
    if not samples:
        return {}
    ordered = sorted(samples)
    summary = {"Average": statistics.fmean(ordered)}
    for percent in (50, 90, 95, 99):
        summary[f"Perc{percent}"] = upstream_percentile(ordered, percent)
    return summary


def upstream_percentile(ordered: Sequence[float], percent: int) -> float:
    """scheduler_perf's percentile of sorted values: the one at ceil(n * percent / 100) - 1."""
    return ordered[math.ceil(len(ordered) * percent / 100) - 1]


def latency_seconds(pods: Iterable[PodTimes]) -> dict[str, float]:
    """Create to bind, by nearest rank."""
    ordered = sorted(pod.bound - pod.created for pod in pods if pod.bound)
    if not ordered:
        return {}
    return {
        "p50": nearest_rank(ordered, 500) / 1e9,
        "p99": nearest_rank(ordered, 990) / 1e9,
        "p99.9": nearest_rank(ordered, 999) / 1e9,
        "max": ordered[-1] / 1e9,
    }


def nearest_rank(ordered: Sequence[int], per_mille: int) -> int:
    """The smallest value that at least so many thousandths of the sorted values do not exceed."""
    return ordered[max(0, -(-len(ordered) * per_mille // 1000) - 1)]


def per_second(bound: Sequence[int], start: int, end: int) -> list[int]:
    """How many bindings there were in each second of a window; the last second may be a part of one."""
    counts = [0] * max(1, math.ceil((end - start) / 1e9))
    for moment in bound:
        if start <= moment <= end:
            counts[min(len(counts) - 1, (moment - start) // 1_000_000_000)] += 1
    return counts


def spread_of_use(
    allocatable: Mapping[str, Mapping[str, int]], requested: Mapping[str, Mapping[str, int]]
) -> dict[str, dict[str, float]]:
    """Per resource: the largest and the smallest share of a node that is used, and their difference.

    Nodes that have nothing of a resource do not count for it; resources that no pod asks for are left out.
    """
    shares: dict[str, list[float]] = {}
    for node, room in allocatable.items():
        used = requested.get(node, {})
        for resource, amount in room.items():
            if amount > 0:
                shares.setdefault(resource, []).append(used.get(resource, 0) / amount)
    return {
        resource: {"largest": max(found), "smallest": min(found), "difference": max(found) - min(found)}
        for resource, found in sorted(shares.items())
        if max(found) > 0
    }


class Spread(NamedTuple):
    """A figure over repeats."""

    median: float
    least: float
    most: float

    @property
    def relative(self) -> float:
        """The difference between the extremes, as a share of the median."""
        return (self.most - self.least) / self.median if self.median else 0.0


def spread(values: Sequence[float]) -> Spread | None:
    """Median and extremes; None where there is nothing."""
    if not values:
        return None
    return Spread(statistics.median(values), min(values), max(values))
