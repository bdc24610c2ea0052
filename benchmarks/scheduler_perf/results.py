"""What a session of runs leaves behind: one JSON document, with every run and a summary over repeats.

docs/performance.md describes the document. A workload is `ran`, `skipped` (with the reason) or `failed`; only a
summary whose every run had a long enough window is a result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from benchmarks import machine
from benchmarks.errors import BenchmarkError
from benchmarks.scheduler_perf import measures
from benchmarks.scheduler_perf.cases import Workload
from benchmarks.scheduler_perf.gates import GateDecision

Json = dict[str, Any]

VERSION = 1

SUMMARY: Mapping[str, Callable[[Json], Any]] = {
    "acceptance.pods_per_second": lambda found: found["acceptance"]["pods_per_second"],
    "acceptance.seconds": lambda found: found["acceptance"]["seconds"],
    "SchedulingThroughput.Average": lambda found: found["SchedulingThroughput"].get("Average"),
    "SchedulingThroughput.Perc50": lambda found: found["SchedulingThroughput"].get("Perc50"),
    "SchedulingThroughput.Perc90": lambda found: found["SchedulingThroughput"].get("Perc90"),
    "SchedulingThroughput.Perc95": lambda found: found["SchedulingThroughput"].get("Perc95"),
    "SchedulingThroughput.Perc99": lambda found: found["SchedulingThroughput"].get("Perc99"),
    "latency_seconds.p50": lambda found: found["latency_seconds"]["p50"],
    "latency_seconds.p99": lambda found: found["latency_seconds"]["p99"],
    "latency_seconds.p99.9": lambda found: found["latency_seconds"]["p99.9"],
    "scheduler_cpu_ms_per_pod": lambda found: found["scheduler_cpu_ms_per_pod"],
    "scheduler_cpu_ms_per_pod_with_late_events": lambda found: found["scheduler_cpu_ms_per_pod_with_late_events"],
    "cpu_seconds.scheduler": lambda found: found["cpu_seconds"].get("scheduler"),
    "cpu_seconds.server": lambda found: found["cpu_seconds"].get("server"),
    "cpu_seconds.loader": lambda found: found["cpu_seconds"].get("loader"),
    "memory_bytes.scheduler.peak": lambda found: found["memory_bytes"]["scheduler"]["peak"],
    "memory_bytes.scheduler.steady": lambda found: found["memory_bytes"]["scheduler"]["steady"],
    "events.sent": lambda found: found["events"]["sent"],
    "events.dropped": lambda found: found["events"]["dropped"],
}
"""The figures that are summed up over repeats, and where each is in a collection."""

_PLACEMENT = ("cpu", "memory", "pods")


@dataclass
class Outcome:
    """What became of one workload."""

    workload: Workload
    status: str
    """ran, skipped or failed"""
    reason: str = ""
    gates: GateDecision = field(default_factory=lambda: GateDecision({}, {}))
    caveats: Sequence[str] = ()
    runs: list[Json] = field(default_factory=list)

    def to_json(self) -> Json:
        """As the document has it."""
        workload = self.workload
        return {
            "topic": workload.topic,
            "case": workload.case,
            "workload": workload.name,
            "status": self.status,
            "reason": self.reason,
            "labels": sorted(workload.labels),
            "params": dict(workload.params),
            "feature_gates": {"obeyed": dict(self.gates.obeyed), "recorded": dict(self.gates.recorded)},
            "caveats": list(self.caveats),
            "summary": summary(self.runs, workload),
            "runs": self.runs,
        }


def summary(runs: Sequence[Json], workload: Workload) -> Json | None:
    """Median and spread over runs of the first collection in which pods were bound."""
    collections = [found for run in runs if (found := _main(run)) is not None]
    if not collections:
        return None
    reasons = _too_short([found["acceptance"]["seconds"] for found in collections])
    faults = sorted({fault for run in runs for fault in audit_faults(run)})
    if dropped := sum(found["events"]["dropped"] for found in collections):
        faults.append(f"events dropped: {dropped}")
    figures: Json = {}
    for name, read in SUMMARY.items():
        if (spread := _spread([read(found) for found in collections])) is not None:
            figures[name] = spread
    for resource in _PLACEMENT:
        values = [found["placement"].get(resource, {}).get("difference") for found in collections]
        if (spread := _spread(values)) is not None:
            figures[f"placement.{resource}.difference"] = spread
    return {
        "runs": len(collections),
        "measured_pods": collections[0]["measured_pods"],
        "is_result": not reasons and not faults,
        "why_no_result": "; ".join([*faults, *reasons]),
        "figures": figures,
        "threshold": _threshold(figures, workload),
    }


def _too_short(seconds: Sequence[float]) -> list[str]:
    shortest = measures.SHORTEST_WINDOW_SECONDS
    short = [each for each in seconds if each < shortest]
    if not short:
        return []
    return [
        f"{len(short)} of {len(seconds)} windows were under {shortest:g} s (the shortest {min(short):.1f} s): "
        "raise the counts with --param"
    ]


def _main(run: Json) -> Json | None:
    return next((found for found in run["collections"] if found["acceptance"] is not None), None)


def audit_faults(run: Json) -> list[str]:
    """What the server's audit found wrong in a run."""
    audit = run["audit"] or {}
    return [
        f"{what}: {len(audit[key])}"
        for key, what in (("overcommitted", "nodes over-committed"), ("bound_more_than_once", "pods bound twice"))
        if audit.get(key)
    ]


def _spread(values: Sequence[float | None]) -> Json | None:
    spread = measures.spread([value for value in values if value is not None])
    if spread is None:
        return None
    return {"median": spread.median, "least": spread.least, "most": spread.most, "spread": spread.relative}


def _threshold(figures: Json, workload: Workload) -> Json | None:
    """scheduler_perf's own check of its threshold, on the median; without samples it cannot be checked."""
    want = workload.lowest_throughput
    selector = workload.threshold_selector
    if not want:
        return None
    got = figures.get(f"{selector.name}.{selector.data_bucket}", {}).get("median")
    passed = None if got is None else (got < want if selector.expect_lower else got > want)
    return {"metric": f"{selector.name}.{selector.data_bucket}", "want": want, "got": got, "passed": passed}


def document(outcomes: Sequence[Outcome], *, scheduler: str, server: str, command: Sequence[str]) -> Json:
    """The whole document."""
    return {
        "version": VERSION,
        "scheduler": scheduler,
        "server": server,
        "command": list(command),
        "machine": machine.describe(),
        "workloads": [outcome.to_json() for outcome in outcomes],
    }


def write(path: Path, content: Json) -> None:
    """Write a document."""
    try:
        path.write_bytes(msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n")
    except OSError as error:
        raise BenchmarkError(f"{path}: cannot be written: {error.strerror}") from error


def read(path: Path) -> Json:
    """Read a document. Raises BenchmarkError for a file that is none."""
    try:
        content = msgspec.json.decode(path.read_bytes())
    except OSError as error:
        raise BenchmarkError(f"{path}: cannot be read: {error.strerror}") from error
    except msgspec.DecodeError as error:
        raise BenchmarkError(f"{path}: not JSON: {error}") from error
    if not isinstance(content, dict) or content.get("version") != VERSION or "workloads" not in content:
        raise BenchmarkError(f"{path}: expected a result file of version {VERSION}")
    return content
