"""Made-up result documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.processes import Usage
from benchmarks.scheduler_perf import collecting, results
from benchmarks.scheduler_perf.cases import Workload
from benchmarks.scheduler_perf.measures import PodTimes
from benchmarks.scheduler_perf.results import Outcome
from benchmarks.scheduler_perf.world import Collection, Meters

START = 1_800_000_000
SECOND = 1_000_000_000


def workload(name: str = "w", **changes: Any) -> Workload:
    fields: dict[str, Any] = {"params": {"pods": 3}, "labels": frozenset()}
    return Workload("topic", "Case", name, feature_gates={}, folder=Path(), operations=[], **{**fields, **changes})


def run(rate: float, seconds: int = 20, *, audit: dict[str, Any] | None = None) -> dict[str, Any]:
    """A run in which pods were bound at an even rate, a tenth of a second after their creation."""
    count = round(rate * seconds)
    collection = Collection("ns", ["ns"], {}, START * SECOND)
    for number in range(count):
        created = START * SECOND + round(number / rate * SECOND)
        collection.pods.append(PodTimes("ns", f"pod-{number}", "node", created, created + SECOND // 10))
    collection.ended = START * SECOND + seconds * SECOND + SECOND // 5
    collection.placement = {"cpu": {"largest": 0.5, "smallest": 0.25, "difference": 0.25}}
    collection.events = {"expected": True, "objects": count, "sent": count, "dropped": 0}
    collection.events_complete = START + seconds + 2.0
    meters = Meters([1], [2])
    for series, share in ((meters.scheduler, 0.5), (meters.server, 0.25), (meters.loader, 0.125)):
        for second in range(seconds + 4):
            series.times.append(float(START + second))
            series.samples.append(Usage(second * share, 100_000_000 + second, 200_000_000))
    return {"clock": "server", "collections": [collecting.figures(collection, meters)], "audit": audit or {"ok": True}}


def document(scheduler: str, *outcomes: Outcome, server: str = "sandbox, HTTP") -> dict[str, Any]:
    return results.document(list(outcomes), scheduler=scheduler, server=server, command=["scheduler_perf"])
