"""A case brought to life: ksched's decoding, cache, configuration, plugins and cycle, without the engine around.

Pods are decided one after the other; after each, the node that kube-scheduler chose is assumed, whatever ksched said.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

import msgspec

from ksched.api.decode import (
    DEVICE_CLASS,
    NAMESPACE,
    NODE,
    POD,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    SERVICE,
    STATEFUL_SET,
)
from ksched.cache.cluster import Cluster
from ksched.cache.shapes import PodInfo
from ksched.config.expansion import expand_all
from ksched.config.gates import FeatureGates
from ksched.config.load import parse
from ksched.config.types import Configuration
from ksched.engine.cycle import Cycle, Evaluation, Placement
from ksched.engine.pipeline import request_rules
from ksched.framework.build import MissingPlugin, build_profiles, points_of
from ksched.framework.plugin import Plugin
from ksched.framework.profile import Profile
from ksched.framework.status import Status
from ksched.model.pod import Pod
from ksched.plugins.registry import IN_TREE
from ksched.testing import handle
from tests.conformance.cases import Case, Decision, Verdict
from tests.conformance.comparison import Plugins

MAX_NODES = 1 << 10
"""Slots of a case's cluster; the largest case has a few dozen nodes."""

_SCORE_DEVICES = frozenset({"NodeResourcesFit", "NodeResourcesBalancedAllocation"})
"""Plugins that score devices behind an extended resource by what DynamicResources knows of them."""

BEING_DELETED = "pod is being deleted"
NO_PROFILE = "no profile for scheduler name"


def has_plugin(name: str) -> bool:
    """Whether ksched has a plugin, and not just a stand-in for it."""
    return name in IN_TREE and not issubclass(IN_TREE[name], MissingPlugin)


def lenient(registry: Mapping[str, type[Plugin]]) -> dict[str, type[Plugin]]:
    """The same plugins, but the stand-ins for lacking ones never turn a pod down."""
    return {name: _without_objection(plugin) for name, plugin in registry.items()}


def _without_objection(plugin: type[Plugin]) -> type[Plugin]:
    if not issubclass(plugin, MissingPlugin):
        return plugin
    return type(plugin.__name__, (plugin,), {"used_field": lambda self, pod: None})


@dataclass(frozen=True)
class Answer:
    """What ksched says of one pod. `turned_down_for` is the lacking plugin that it needs, see `comparison.compare`."""

    decision: Decision
    plugins: Plugins
    turned_down_for: str | None = None


class World:
    """The cluster of one case, and the scheduler in it."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.gates = FeatureGates(case.feature_gates)
        self.cluster = Cluster(rules=request_rules(self.gates), max_nodes=MAX_NODES)
        self.configuration = _configuration(case.config, self.gates)
        self.profiles = self._profiles(IN_TREE)
        self._lenient_profiles = self._profiles(lenient(IN_TREE))
        self._order = expand_all(self.configuration, {name: points_of(plugin) for name, plugin in IN_TREE.items()})
        self._cycle = Cycle(self.cluster, rng=Random(0))
        self._nominated: dict[str, PodInfo] = {}
        self._silent = _silent_scorers([*case.objects, *case.pods])
        self._fill(case)

    def decide(self, pod: Pod) -> Answer:
        """What becomes of a pod in the cluster as it is now."""
        profile = self.profiles.get(pod.scheduler_name)
        if pod.is_terminating:
            return self._skipped(pod, BEING_DELETED)
        if profile is None:
            return self._skipped(pod, NO_PROFILE)
        info = self.cluster.shapes.info(pod)
        gated = profile.pre_enqueue(info)
        if gated is not None:
            return Answer(Decision(pod=pod.key, pre_enqueue=_verdict(gated)), self._plugins(pod))
        strict = self._evaluate(profile, info)
        self._check_schedule(profile, info, strict)
        if strict.pre_filter is None or has_plugin(strict.pre_filter.plugin):
            return Answer(decision_of(pod, strict), self._plugins(pod))
        open_minded = self._evaluate(self._lenient_profiles[pod.scheduler_name], info)
        return Answer(decision_of(pod, open_minded), self._plugins(pod), strict.pre_filter.plugin)

    def place(self, pod: Pod, node_name: str) -> None:
        """Assume a pod where kube-scheduler put it."""
        self._nominated.pop(pod.uid, None)
        self.cluster.assume(self.cluster.shapes.info(pod), node_name)

    def pods(self) -> list[Pod]:
        """The pods to schedule, in order."""
        return [_decoded_pod(raw) for raw in self.case.pods]

    def _profiles(self, registry: Mapping[str, type[Plugin]]) -> dict[str, Profile]:
        return build_profiles(self.configuration, self.gates, handle(self.cluster, self.gates), registry)

    def _evaluate(self, profile: Profile, pod: PodInfo) -> Evaluation:
        return self._cycle.evaluate(profile, pod, self._nominations())

    def _check_schedule(self, profile: Profile, pod: PodInfo, found: Evaluation) -> None:
        """Schedule the pod as a scheduler would, to see that it comes to what `evaluate` found; then undo it."""
        scheduled = self._cycle.schedule(profile, pod, self._nominations())
        if isinstance(scheduled, Placement):
            self.cluster.forget(pod.uid)
            assert scheduled.node_name in found.best, f"{scheduled.node_name} was chosen among {found.best}"
            assert scheduled.feasible == len(found.feasible), f"{scheduled.feasible} feasible, found {found.feasible}"
        else:
            message = found.message if found.error is None else found.error.message
            assert scheduled.message == message, f"pod is told {scheduled.message!r}, found {message!r}"

    def _nominations(self) -> dict[str, list[PodInfo]]:
        """The pods that are nominated and not yet placed, by node."""
        nominated: dict[str, list[PodInfo]] = {}
        for other in self._nominated.values():
            nominated.setdefault(other.pod.status.nominated_node_name, []).append(other)
        return nominated

    def _plugins(self, pod: Pod) -> Plugins:
        expanded = self._order.get(pod.scheduler_name, {})
        order = {point: tuple(plugin.name for plugin in plugins) for point, plugins in expanded.items()}
        silent = frozenset(name for name in self._silent if not has_plugin(name))
        return Plugins(has_plugin, order, silent, _SCORE_DEVICES if self._asks_for_devices(pod) else frozenset())

    def _asks_for_devices(self, pod: Pod) -> bool:
        """Whether an extended resource of the pod stands for devices, which only DynamicResources can count."""
        asked = self.cluster.shapes.info(pod).shape.asked.scalars
        return not has_plugin("DynamicResources") and any(map(self.cluster.is_device_resource, asked))

    def _skipped(self, pod: Pod, why: str) -> Answer:
        return Answer(Decision(pod=pod.key, skip=why), self._plugins(pod))

    def _fill(self, case: Case) -> None:
        """Objects in their order, then the nominations of everything that waits."""
        waiting: list[Pod] = []
        for raw in case.objects:
            kind = _kind_of(raw)
            if kind == "Node":
                self.cluster.put_node(NODE.object(_with_uid(raw)))
            elif kind == "DeviceClass":
                self.cluster.put_device_class(DEVICE_CLASS.object(raw))
            elif kind == "Namespace":
                self.cluster.put_namespace(NAMESPACE.object(raw))
            elif kind in _SELECT:
                self.cluster.put_selector_source(_SELECT[kind].object(raw))
            elif kind == "Pod":
                pod = _decoded_pod(raw)
                if pod.node_name:
                    self.cluster.put_pod(pod)
                elif not pod.is_finished:
                    waiting.append(pod)
        for pod in [*waiting, *self.pods()]:
            if pod.status.nominated_node_name:
                self._nominated[pod.uid] = self.cluster.shapes.info(pod)


def decision_of(pod: Pod, found: Evaluation) -> Decision:
    """What the cycle found, in the words of a vector. PostFilter is not among it: ksched has no plugin for it yet."""
    return Decision(
        pod=pod.key,
        pre_filter=_verdict(found.pre_filter),
        pre_filter_nodes=None if found.pre_filter_nodes is None else tuple(sorted(found.pre_filter_nodes)),
        filter={node: verdict for node, status in found.rejected.items() if (verdict := _verdict(status)) is not None},
        feasible=tuple(found.feasible),
        nominated_node_hit=found.nominated_hit,
        raw=found.raw,
        scores=found.scores,
        total=found.total,
        best=tuple(found.best),
        message=found.message,
        error=None if found.error is None else found.error.message,
    )


def _verdict(status: Status | None) -> Verdict | None:
    return None if status is None else Verdict(status.plugin, str(status.code), tuple(sorted(status.reasons)))


def _configuration(written: Mapping[str, Any] | None, gates: FeatureGates) -> Configuration:
    return Configuration.default(gates) if written is None else parse(json.dumps(written), gates)


class _Kind(msgspec.Struct):
    kind: str


_kind = msgspec.json.Decoder(_Kind)


def _kind_of(raw: msgspec.Raw) -> str:
    return _kind.decode(raw).kind


def _decoded_pod(raw: msgspec.Raw) -> Pod:
    return POD.object(_with_uid(raw))


def _with_uid(raw: msgspec.Raw) -> bytes:
    """The object, with the filler uid that kube-scheduler was given where there is none."""
    decoded = msgspec.json.decode(raw)
    metadata = decoded["metadata"]
    if metadata.get("uid"):
        return bytes(raw)
    metadata["uid"] = f"uid-{metadata.get('namespace', '')}-{metadata['name']}"
    return msgspec.json.encode(decoded)


_SELECT = {decoder.kind: decoder for decoder in (SERVICE, REPLICATION_CONTROLLER, REPLICA_SET, STATEFUL_SET)}


def _silent_scorers(objects: Iterable[msgspec.Raw]) -> frozenset[str]:
    """Plugins that may have scored pods which do not use their fields, by those of pods that run."""
    found: set[str] = set()
    for raw in objects:
        if _kind_of(raw) == "Pod":
            affinity = _decoded_pod(raw).spec.affinity
            if affinity is not None and (affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None):
                found.add("InterPodAffinity")
    return frozenset(found)
