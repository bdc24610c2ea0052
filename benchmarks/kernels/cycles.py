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
from ksched.model.pod import Pod
from ksched.plugins.registry import IN_TREE

Json = dict[str, Any]
Template = tuple[Json, Json]
"""A pod's labels and its spec."""

WARM_UP = 2000
SAMPLES = 5
ZONES = 3
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True)
class CycleCase:
    """One kind of load."""

    name: str
    pods: Callable[[int], Sequence[Template]]
    """The pods that come in turns, for a cluster of so many nodes."""
    calls: int = 4000
    placed_per_node: int = 0
    """Such pods that are on every node before."""


def plain(nodes: int) -> Sequence[Template]:
    """Identical pods, as SchedulingBasic's."""
    return [_spec()]


def shapes_1000(nodes: int) -> Sequence[Template]:
    """A thousand shapes in turns."""
    return [_spec(mebibytes=1 + number % 100, cpu_millis=1 + number // 100) for number in range(1000)]


def zone_affinity(nodes: int) -> Sequence[Template]:
    """Pods that ask for one of two zones, as SchedulingNodeAffinity's."""
    return [_spec(affinity=_terms(matchExpressions=[_in(ZONE, "zone-0", "zone-1")]))]


def pinned(nodes: int) -> Sequence[Template]:
    """Pods that name their node, as DaemonSet pods do."""
    names = [f"node-{number * (nodes // 1000 or 1) % nodes:06d}" for number in range(1000)]
    return [_spec(affinity=_terms(matchFields=[_in("metadata.name", name)])) for name in names]


def away_from_its_kind(nodes: int) -> Sequence[Template]:
    """A thousand deployments in turns, of which each keeps its pods on different nodes."""
    return [_of_kind(f"app-{number}", "podAntiAffinity", _REQUIRED, HOST) for number in range(1000)]


def near_its_kind(nodes: int) -> Sequence[Template]:
    """Pods that must be in one zone."""
    return [_of_kind("app", "podAffinity", _REQUIRED, ZONE)]


def rather_near_its_kind(nodes: int) -> Sequence[Template]:
    """Pods that would like to be on one node, as SchedulingPreferredPodAffinity's."""
    return [_of_kind("app", "podAffinity", _PREFERRED, HOST)]


CASES = (
    CycleCase("one shape", plain),
    CycleCase("1000 shapes in turns", shapes_1000),
    CycleCase("zone affinity", zone_affinity),
    CycleCase("pinned to a node", pinned),
    CycleCase("away from its kind, 1000 kinds", away_from_its_kind),
    CycleCase("near its kind in a zone", near_its_kind),
    CycleCase("near its kind in a zone, 16 a node before", near_its_kind, placed_per_node=16),
    CycleCase("rather near its kind", rather_near_its_kind),
    CycleCase("rather near its kind, 2 a node before", rather_near_its_kind, placed_per_node=2),
    CycleCase("rather near its kind, 16 a node before", rather_near_its_kind, placed_per_node=16),
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

    def infos(self, templates: Sequence[Template], count: int) -> list[PodInfo]:
        """So many pods of the templates in turns, as the queue would hand them out."""
        return [self.cluster.shapes.info(self._pod(*templates[number % len(templates)], "")) for number in range(count)]

    def place(self, templates: Sequence[Template], per_node: int) -> None:
        """Put pods of the templates on every node."""
        for number, node in enumerate([*self.cluster.nodes()] * per_node):
            self.cluster.put_pod(self._pod(*templates[number % len(templates)], node.name))

    def _pod(self, labels: Json, spec: Json, node_name: str) -> Pod:
        self._made += 1
        name = f"pod-{self._made}"
        metadata = {"name": name, "namespace": "default", "uid": name, "labels": labels}
        made: Pod = POD.object(msgspec.json.encode({"metadata": metadata, "spec": {**spec, "nodeName": node_name}}))
        return made

    def schedule(self, pod: PodInfo) -> None:
        """One pod finds its node."""
        outcome = self.cycle.schedule(self.profile, pod, {})
        if not isinstance(outcome, Placement):
            raise AssertionError(f"a pod that fits was not placed: {outcome.message}")


def timed(case: CycleCase, nodes: int, calls: int | None = None) -> CycleTiming:
    """Run one case at one size."""
    engine = Engine(nodes)
    templates = case.pods(nodes)
    engine.place(templates, case.placed_per_node)
    before = _rss_bytes()
    _run(engine, engine.infos(templates, WARM_UP if calls is None else calls))
    found = []
    for _ in range(SAMPLES):
        pods = engine.infos(templates, calls or case.calls)
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
    labels = {HOST: name, ZONE: f"zone-{number % ZONES}"}
    amounts = {"cpu": "4", "memory": "32Gi", "pods": "110"}
    return {
        "metadata": {"name": name, "uid": name, "labels": labels},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def _spec(*, cpu_millis: int = 1, mebibytes: int = 1, affinity: Json | None = None) -> Template:
    requests = {"cpu": f"{cpu_millis}m", "memory": f"{mebibytes}Mi"}
    spec: Json = {"containers": [{"name": "pause", "image": "pause", "resources": {"requests": requests}}]}
    return {}, spec | ({"affinity": {"nodeAffinity": affinity}} if affinity else {})


def _of_kind(app: str, affinity: str, how: str, topology_key: str) -> Template:
    """A pod with an affinity term about pods of its own app."""
    term: Json = {"topologyKey": topology_key, "labelSelector": {"matchLabels": {"app": app}}}
    if how == _PREFERRED:
        term = {"weight": 1, "podAffinityTerm": term}
    _, spec = _spec()
    return {"app": app}, spec | {"affinity": {affinity: {how: [term]}}}


def _terms(**term: Any) -> Json:
    return {_REQUIRED: {"nodeSelectorTerms": [term]}}


def _in(key: str, *values: str) -> Json:
    return {"key": key, "operator": "In", "values": list(values)}


def _rss_bytes() -> int:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("/proc/self/status has no VmRSS")
