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


class _Tally:
    """What happened in one namespace, kept up so that asking again and again stays cheap."""

    __slots__ = ("bound", "created", "first_bind", "first_create", "last_bind", "last_create", "latencies")

    def __init__(self) -> None:
        self.created = 0
        self.bound = 0
        self.first_create = self.last_create = 0
        self.first_bind = self.last_bind = 0
        self.latencies: list[int] = []
        """Create to first bind, in nanoseconds. Sorted when read: what was sorted before makes that one pass."""

    def note_created(self, now: int) -> None:
        if not self.created:
            self.first_create = now
        self.created += 1
        self.last_create = now

    def note_bound(self, now: int, created: int) -> None:
        if not self.bound:
            self.first_bind = now
        self.bound += 1
        self.last_bind = now
        self.latencies.append(now - created)

    def sorted_latencies(self) -> list[int]:
        self.latencies.sort()
        return self.latencies


class Ledger:
    """A record per pod uid, kept after the pod is gone."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.pods: dict[str, PodRecord] = {}
        self.order: list[PodRecord] = []
        """A record for each binding, in the order in which they took effect."""
        self.bind_conflicts = 0
        self._tallies: dict[str, _Tally] = {}

    @property
    def binds(self) -> int:
        """How many bindings took effect."""
        return len(self.order)

    def created(self, namespace: str, name: str, uid: str) -> None:
        """Note that a pod was created now."""
        self._note_created(namespace, name, uid, self._clock.ticks())

    def bound(self, namespace: str, name: str, uid: str, node: str) -> None:
        """Note that a binding of a pod took effect now."""
        now = self._clock.ticks()
        record = self.pods.get(uid)
        if record is None:  # restored from a journal: its creation was noted by an earlier process
            record = self._note_created(namespace, name, uid, now)
        if not record.binds:
            self._tallies[namespace].note_bound(now, record.created)
        record.bound = now
        record.binds += 1
        record.node = node
        self.order.append(record)

    def placements(self, after: int) -> list[list[str]]:
        """Namespace, name and node of each binding but the first `after`: cheap to ask for again and again."""
        return [[record.namespace, record.name, record.node] for record in self.order[max(0, after) :]]

    def times(self, namespace: str | None = None) -> list[tuple[str, str, int, int]]:
        """Name, node, creation and binding of every pod of a namespace (or all), gone ones included, in Unix
        nanoseconds; node and binding are empty and 0 for one that was never bound. For measuring, after a run."""
        offset = self._clock.offset
        return [
            (record.name, record.node, record.created + offset, record.bound + offset if record.binds else 0)
            for record in self.pods.values()
            if namespace in (None, record.namespace)
        ]

    def timeline(self, namespace: str | None = None) -> dict[str, Any]:
        """First create to last bind of the pods of a namespace (or all), with the latencies between."""
        tallies = [tally for name, tally in self._tallies.items() if namespace in (None, name)]
        bound = [tally for tally in tallies if tally.bound]
        timeline: dict[str, Any] = {
            "namespace": namespace,
            "created": sum(tally.created for tally in tallies),
            "bound": sum(tally.bound for tally in bound),
            "first_create": None,
            "last_create": None,
            "first_bind": None,
            "last_bind": None,
            "seconds": None,
            "pods_per_second": None,
            "latency_seconds": None,
        }
        if tallies:
            first_create = min(tally.first_create for tally in tallies)
            timeline["first_create"] = self._clock.wall(first_create)
            timeline["last_create"] = self._clock.wall(max(tally.last_create for tally in tallies))
        if bound:
            last_bind = max(tally.last_bind for tally in bound)
            seconds = (last_bind - first_create) / 1e9
            latencies = [latency for tally in bound for latency in tally.sorted_latencies()]
            if len(bound) > 1:
                latencies.sort()
            timeline["first_bind"] = self._clock.wall(min(tally.first_bind for tally in bound))
            timeline["last_bind"] = self._clock.wall(last_bind)
            timeline["seconds"] = seconds
            timeline["pods_per_second"] = timeline["bound"] / seconds if seconds > 0 else None
            timeline["latency_seconds"] = _quantiles(latencies)
        return timeline

    def bound_more_than_once(self) -> list[dict[str, Any]]:
        """The pods that two bindings took effect on: always empty unless the server itself is wrong."""
        return [
            {"namespace": record.namespace, "name": record.name, "uid": uid, "binds": record.binds}
            for uid, record in self.pods.items()
            if record.binds > 1
        ]

    def _note_created(self, namespace: str, name: str, uid: str, now: int) -> PodRecord:
        record = self.pods[uid] = PodRecord(namespace, name, now)
        tally = self._tallies.get(namespace)
        if tally is None:
            tally = self._tallies[namespace] = _Tally()
        tally.note_created(now)
        return record


def _quantiles(ordered: list[int]) -> dict[str, float]:
    """Quantiles (nearest rank) in seconds of sorted nanoseconds."""

    def rank(per_mille: int) -> float:
        return ordered[max(0, -(-len(ordered) * per_mille // 1000) - 1)] / 1e9

    return {"p50": rank(500), "p90": rank(900), "p99": rank(990), "max": ordered[-1] / 1e9}
