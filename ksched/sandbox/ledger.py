"""What happened to pods, by the server's own clock: throughput, latency and exactly-once are read from it.

Times are noted when the change is made, before any answer is written, in nanoseconds of the monotonic clock; Unix
times are derived (`clock.py`).
"""

from __future__ import annotations

from typing import Any

from ksched.sandbox.clock import Clock


class PodRecord:
    """One pod's times and the number of times it was bound."""

    __slots__ = ("binds", "bound", "created", "name", "namespace", "node")

    def __init__(self, namespace: str, name: str, created: int) -> None:
        self.namespace = namespace
        self.name = name
        self.created = created
        self.bound = 0
        self.binds = 0
        self.node = ""


class Ledger:
    """A record per pod uid, kept after the pod is gone."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.pods: dict[str, PodRecord] = {}
        self.order: list[PodRecord] = []
        """A record for each binding, in the order in which they took effect."""
        self.binds = 0
        self.bind_conflicts = 0

    def created(self, namespace: str, name: str, uid: str) -> None:
        """Note that a pod was created now."""
        self.pods[uid] = PodRecord(namespace, name, self._clock.ticks())

    def bound(self, namespace: str, name: str, uid: str, node: str) -> None:
        """Note that a binding of a pod took effect now."""
        now = self._clock.ticks()
        record = self.pods.get(uid)
        if record is None:  # restored from a journal: its creation was noted by an earlier process
            record = self.pods[uid] = PodRecord(namespace, name, now)
        record.bound = now
        record.binds += 1
        record.node = node
        self.order.append(record)
        self.binds += 1

    def placements(self, after: int) -> list[list[str]]:
        """Namespace, name and node of each binding but the first `after`: cheap to ask for again and again."""
        return [[record.namespace, record.name, record.node] for record in self.order[max(0, after) :]]

    def timeline(self, namespace: str | None = None) -> dict[str, Any]:
        """First create to last bind of the pods of a namespace (or all), with the latencies between."""
        records = [record for record in self.pods.values() if namespace in (None, record.namespace)]
        bound = [record for record in records if record.binds]
        timeline: dict[str, Any] = {
            "namespace": namespace,
            "created": len(records),
            "bound": len(bound),
            "first_create": None,
            "last_create": None,
            "first_bind": None,
            "last_bind": None,
            "seconds": None,
            "pods_per_second": None,
            "latency_seconds": None,
        }
        if records:
            timeline["first_create"] = self._clock.wall(min(record.created for record in records))
            timeline["last_create"] = self._clock.wall(max(record.created for record in records))
        if bound:
            first_create = min(record.created for record in records)
            last_bind = max(record.bound for record in bound)
            seconds = (last_bind - first_create) / 1e9
            timeline["first_bind"] = self._clock.wall(min(record.bound for record in bound))
            timeline["last_bind"] = self._clock.wall(last_bind)
            timeline["seconds"] = seconds
            timeline["pods_per_second"] = len(bound) / seconds if seconds > 0 else None
            timeline["latency_seconds"] = _latencies(sorted(record.bound - record.created for record in bound))
        return timeline

    def bound_more_than_once(self) -> list[dict[str, Any]]:
        """The pods that two bindings took effect on: always empty unless the server itself is wrong."""
        return [
            {"namespace": record.namespace, "name": record.name, "uid": uid, "binds": record.binds}
            for uid, record in self.pods.items()
            if record.binds > 1
        ]


def _latencies(ordered: list[int]) -> dict[str, float]:
    """Quantiles (nearest rank) in seconds of sorted nanoseconds."""

    def rank(share: float) -> float:
        return ordered[min(len(ordered) - 1, max(0, -(-len(ordered) * round(share * 1000) // 1000) - 1))] / 1e9

    return {"p50": rank(0.5), "p90": rank(0.9), "p99": rank(0.99), "max": ordered[-1] / 1e9}
