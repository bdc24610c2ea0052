"""Pods through the engine's cycle, on clusters of growing size: what one costs, whatever stands behind it.

Time is that of `Cycle.schedule` alone, assuming included. Pods stay where they are put: they ask for little, so the
smallest cluster here takes all of them.
"""

from __future__ import annotations

import gc
import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec

from ksched.api.decode import NODE, POD
from ksched.cache.cluster import Cluster
from ksched.cache.shapes import PodInfo
from ksched.config import Configuration, FeatureGates
from ksched.engine.cycle import Cycle, Placement
from ksched.framework.build import build_profiles
from ksched.framework.plugin import Handle
from ksched.framework.profile import Profile
from ksched.plugins.registry import IN_TREE

Json = dict[str, Any]

WARM_UP = 2000
SAMPLES = 5
ZONES = 3


@dataclass(frozen=True)
class CycleCase:
    """One kind of load."""

    name: str
    pods: Callable[[int], Sequence[Json]]
    """The specs of the pods that come in turns, for a cluster of so many nodes."""
    calls: int = 4000


def plain(nodes: int) -> Sequence[Json]:
    """Identical pods, as SchedulingBasic's."""
    return [_spec()]


def shapes_1000(nodes: int) -> Sequence[Json]:
    """A thousand shapes in turns."""
    return [_spec(mebibytes=1 + number % 100, cpu_millis=1 + number // 100) for number in range(1000)]


def zone_affinity(nodes: int) -> Sequence[Json]:
    """Pods that ask for one of two zones, as SchedulingNodeAffinity's."""
    return [_spec(affinity=_terms(matchExpressions=[_in("topology.kubernetes.io/zone", "zone-0", "zone-1")]))]


def pinned(nodes: int) -> Sequence[Json]:
    """Pods that name their node, as DaemonSet pods do."""
    names = [f"node-{number * (nodes // 1000 or 1) % nodes:06d}" for number in range(1000)]
    return [_spec(affinity=_terms(matchFields=[_in("metadata.name", name)])) for name in names]


CASES = (
    CycleCase("one shape", plain),
    CycleCase("1000 shapes in turns", shapes_1000),
    CycleCase("zone affinity", zone_affinity),
    CycleCase("pinned to a node", pinned),
)


@dataclass(frozen=True)
class CycleTiming:
    """Microseconds per pod, and what the process holds afterwards."""

    case: str
    nodes: int
    median_us: float
    least_us: float
    most_us: float
    rss_bytes: int
    grown_bytes: int
    """By how much the process grew while pods were scheduled: boards, and the pods themselves."""


class Engine:
    """A cluster with a default profile and a cycle."""

    def __init__(self, nodes: int) -> None:
        gates = FeatureGates()
        self.cluster = Cluster(max_nodes=max(16, nodes))
        # Only binding needs more of a handle than this, and nothing is bound here.
        handle = cast(Handle, SimpleNamespace(cluster=self.cluster, gates=gates))
        self.profile: Profile = next(
            iter(build_profiles(Configuration.default(gates), gates, handle, IN_TREE).values())
        )
        self.cycle = Cycle(self.cluster, rng=random.Random(1))
        for number in range(nodes):
            self.cluster.put_node(NODE.object(msgspec.json.encode(_node(number))))
        self._made = 0

    def infos(self, specs: Sequence[Json], count: int) -> list[PodInfo]:
        """So many pods of the specs in turns, as the queue would hand them out."""
        made = []
        for number in range(count):
            self._made += 1
            name = f"pod-{self._made}"
            pod = {"metadata": {"name": name, "namespace": "default", "uid": name}, "spec": specs[number % len(specs)]}
            made.append(self.cluster.shapes.info(POD.object(msgspec.json.encode(pod))))
        return made

    def schedule(self, pod: PodInfo) -> None:
        """One pod finds its node."""
        outcome = self.cycle.schedule(self.profile, pod, {})
        if not isinstance(outcome, Placement):
            raise AssertionError(f"a pod that fits was not placed: {outcome.message}")


def timed(case: CycleCase, nodes: int, calls: int | None = None) -> CycleTiming:
    """Run one case at one size."""
    engine = Engine(nodes)
    specs = case.pods(nodes)
    before = _rss_bytes()
    _run(engine, engine.infos(specs, WARM_UP if calls is None else calls))
    found = []
    for _ in range(SAMPLES):
        pods = engine.infos(specs, calls or case.calls)
        gc.collect()
        gc.disable()
        try:
            found.append(_run(engine, pods) / len(pods) / 1e3)
        finally:
            gc.enable()
    rss = _rss_bytes()
    return CycleTiming(case.name, nodes, statistics.median(found), min(found), max(found), rss, rss - before)


def _run(engine: Engine, pods: Sequence[PodInfo]) -> int:
    """Nanoseconds within `schedule`."""
    total = 0
    clock = time.perf_counter_ns
    for pod in pods:
        start = clock()
        engine.schedule(pod)
        total += clock() - start
    return total


def _node(number: int) -> Json:
    name = f"node-{number:06d}"
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{number % ZONES}"}
    amounts = {"cpu": "4", "memory": "32Gi", "pods": "110"}
    return {
        "metadata": {"name": name, "uid": name, "labels": labels},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def _spec(*, cpu_millis: int = 1, mebibytes: int = 1, affinity: Json | None = None) -> Json:
    requests = {"cpu": f"{cpu_millis}m", "memory": f"{mebibytes}Mi"}
    spec: Json = {"containers": [{"name": "pause", "image": "pause", "resources": {"requests": requests}}]}
    return spec | ({"affinity": {"nodeAffinity": affinity}} if affinity else {})


def _terms(**term: Any) -> Json:
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}


def _in(key: str, *values: str) -> Json:
    return {"key": key, "operator": "In", "values": list(values)}


def _rss_bytes() -> int:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("/proc/self/status has no VmRSS")
