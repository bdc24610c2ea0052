"""What is drawn, as data: the page and the picture draw the same charts from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

PARTS = ("scheduler", "server", "loader")


@dataclass(frozen=True)
class Line:
    """A named curve; `None` is a gap."""

    name: str
    xs: Sequence[float]
    ys: Sequence[float | None]


@dataclass(frozen=True)
class LineChart:
    """Curves over one axis."""

    title: str
    x_label: str
    y_label: str
    lines: Sequence[Line]
    log_y: bool = False


@dataclass(frozen=True)
class Bar:
    """A bar of parts, one upon the other."""

    name: str
    parts: Sequence[float]


@dataclass(frozen=True)
class BarChart:
    """Stacked bars."""

    title: str
    y_label: str
    part_names: Sequence[str]
    bars: Sequence[Bar]


@dataclass(frozen=True)
class Section:
    """One workload, with the schedulers that ran it."""

    name: str
    charts: Sequence[LineChart | BarChart]
    entries: Sequence[tuple[str, Json]] = field(default_factory=list)
    """Scheduler and the workload's part of its document."""


def sections(documents: Sequence[Json]) -> list[Section]:
    """A section for each workload that was run, in the order of the documents."""
    by_name: dict[str, list[tuple[str, Json]]] = {}
    for document in documents:
        for each in document["workloads"]:
            if each["status"] == "ran" and each["summary"] is not None:
                by_name.setdefault(f"{each['case']}/{each['workload']}", []).append((document["scheduler"], each))
    return [Section(name, _charts(entries), entries) for name, entries in by_name.items()]


def _charts(entries: Sequence[tuple[str, Json]]) -> list[LineChart | BarChart]:
    throughput, latency_in_time, latency, cores, cpu = [], [], [], [], []
    for scheduler, workload in entries:
        run = median_run(workload)
        curves = run["curves"]
        seconds = [second + 0.5 for second in range(len(curves["pods"]))]
        # The last second is a part of one: its count would look like a drop.
        whole = slice(0, max(1, len(seconds) - 1))
        throughput.append(Line(scheduler, seconds[whole], curves["pods"][whole]))
        latency_in_time.append(Line(f"{scheduler} p50", seconds, _millis(curves["p50"])))
        latency_in_time.append(Line(f"{scheduler} p99", seconds, _millis(curves["p99"])))
        cores += [Line(f"{scheduler}: {part}", seconds, used) for part, used in curves["cpu"].items()]
        quantiles = run["latency_quantiles_seconds"]
        latency.append(Line(scheduler, [share for share, _ in quantiles], [1e3 * value for _, value in quantiles]))
        per_pod = 1e3 / run["measured_pods"]
        cpu.append(Bar(scheduler, [run["cpu_seconds"].get(part, 0.0) * per_pod for part in PARTS]))
    return [
        LineChart("Throughput over time", "seconds", "pods bound per second", throughput),
        LineChart("Latency over time, create to bind", "seconds", "ms", latency_in_time, log_y=True),
        LineChart("Latency, create to bind", "percent of pods", "ms", latency, log_y=True),
        LineChart("CPU over time", "seconds", "cores in use", cores),
        BarChart("CPU per pod", "ms", PARTS, cpu),
    ]


def median_run(workload: Json) -> Json:
    """The collection of the run whose rate is the median (the lower one of two)."""
    collections = [
        collection
        for run in workload["runs"]
        for collection in run["collections"][:]
        if collection["acceptance"] is not None
    ]
    ordered = sorted(collections, key=lambda found: found["acceptance"]["pods_per_second"])
    chosen: Json = ordered[(len(ordered) - 1) // 2]
    return chosen


def _millis(values: Sequence[float | None]) -> list[float | None]:
    return [None if value is None else 1e3 * value for value in values]
