"""Whether a workload can be run at all, and if not, why: found from its templates before anything is started.

Two things can be missing. The sandbox serves no such kind, or has no controller that the workload counts on. Or ksched
lacks a plugin: then its stand-in (`framework.build.MissingPlugin`) knows which field of a pod needs it. Such workloads
are listed as skipped, never as passed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any, cast

import msgspec

from benchmarks.scheduler_perf.cases import Workload
from benchmarks.scheduler_perf.objects import Templates, served_version
from benchmarks.scheduler_perf.operations import (
    AllocResourceClaims,
    Churn,
    CreateAny,
    CreateNodes,
    CreatePods,
    CreateResourceClaims,
    UpdateAny,
)
from ksched.api.decode import DEVICE_CLASS, POD
from ksched.cache.cluster import Cluster
from ksched.config import Configuration, FeatureGates, load
from ksched.config.expansion import expand_all
from ksched.framework.build import MissingPlugin, points_of
from ksched.framework.plugin import Handle
from ksched.model.quantity import parse_quantity
from ksched.plugins.registry import IN_TREE
from ksched.sandbox.audit import pod_amounts
from ksched.sandbox.resources import RESOURCES

Json = dict[str, Any]

_SERVED = frozenset((resource.api_version, resource.kind) for resource in RESOURCES)
PREEMPTION = "DefaultPreemption"
SPREADING = "PodTopologySpread"


def why_not(
    workload: Workload, templates: Templates, *, scheduler: str, sandbox: bool, gates: Mapping[str, bool]
) -> str:
    """Why the workload cannot be run with this scheduler (ksched, null or command); empty when it can."""
    if any(isinstance(each, AllocResourceClaims) for each in workload.operations):
        return (
            "allocResourceClaims needs an allocator of devices with CEL selectors, which neither the runner nor the "
            "sandbox has"
        )
    if sandbox and (reason := _not_served(workload, templates)):
        return reason
    return _missing_plugin(workload, templates, gates) if scheduler == "ksched" else ""


def caveats(workload: Workload, templates: Templates, *, scheduler: str) -> list[str]:
    """What a result of this workload leaves out, though it can be run."""
    if scheduler == "ksched" and _is_missing(SPREADING):
        owned = any(pod["metadata"].get("ownerReferences") for pod in _pods(workload, templates))
        if owned:
            return [f"its pods have owners, whose default spreading needs the {SPREADING} plugin: it is left out"]
    return []


# -- the sandbox


def _not_served(workload: Workload, templates: Templates) -> str:
    for each in _any_objects(workload, templates):
        api_version = served_version(each["apiVersion"])
        if (api_version, each["kind"]) not in _SERVED:
            return f"the sandbox does not serve {each['kind']} of {api_version}"
    for pod in _pods(workload, templates):
        for claim in pod["spec"].get("resourceClaims") or ():
            if claim.get("resourceClaimTemplateName"):
                return "the sandbox has no controller that makes claims from a pod's resource claim templates"
    return ""


def _any_objects(workload: Workload, templates: Templates) -> Iterable[Json]:
    for each in workload.operations:
        if isinstance(each, CreateAny | UpdateAny | CreateResourceClaims):
            if each.count > 0:
                yield templates.named(each.template_path).object(0, each.count)
        elif isinstance(each, Churn):
            for path in each.template_paths:
                yield templates.named(path).object(0, 1)


# -- ksched's plugins


def _missing_plugin(workload: Workload, templates: Templates, gates: Mapping[str, bool]) -> str:
    feature_gates = FeatureGates(gates)
    path = workload.scheduler_config
    configuration = Configuration.default(feature_gates) if path is None else load(path, feature_gates)
    cluster = Cluster(max_nodes=16)
    for each in _any_objects(workload, templates):
        if each["kind"] == "DeviceClass":
            cluster.put_device_class(DEVICE_CLASS.object(msgspec.json.encode(each)))
    # Stand-ins look at the cluster and the gates alone.
    handle = cast(Handle, SimpleNamespace(cluster=cluster, gates=feature_gates))
    missing = _stand_ins(configuration, handle)
    for each in _pods(workload, templates):
        name = each["metadata"].get("name") or f"{each['metadata'].get('generateName', 'pod-')}0"
        named = {**each, "metadata": {**each["metadata"], "name": name, "namespace": "default"}}
        pod = cluster.shapes.info(POD.object(msgspec.json.encode(named)))
        for plugin in missing:
            if field := plugin.used_field(pod):
                return f"its pods use {field}, which needs the {plugin.name} plugin, and ksched does not have it yet"
    if any(plugin.name == SPREADING for plugin in missing) and _has_services(workload, templates):
        return f"its pods belong to a service, whose default spreading needs the {SPREADING} plugin"
    if any(plugin.name == PREEMPTION for plugin in missing) and could_preempt(workload, templates):
        return f"it needs the {PREEMPTION} plugin, and ksched does not have it yet"
    return ""


def _stand_ins(configuration: Configuration, handle: Handle) -> list[MissingPlugin]:
    """The stand-ins that the configuration's profiles use."""
    expanded = expand_all(configuration, {name: points_of(plugin) for name, plugin in IN_TREE.items()})
    enabled = {plugin.name for points in expanded.values() for plugins in points.values() for plugin in plugins}
    return [
        plugin(plugin.Args(), handle)
        for name, plugin in IN_TREE.items()
        if issubclass(plugin, MissingPlugin) and (plugin.always or name in enabled)
    ]


def _is_missing(name: str) -> bool:
    return issubclass(IN_TREE[name], MissingPlugin)


def _has_services(workload: Workload, templates: Templates) -> bool:
    """Whether a service selects one of the pods."""
    services = [each for each in _any_objects(workload, templates) if each["kind"] == "Service"]
    return any(
        selector.items() <= (pod["metadata"].get("labels") or {}).items()
        for pod in _pods(workload, templates)
        for service in services
        if (selector := (service.get("spec") or {}).get("selector") or {})
    )


def could_preempt(workload: Workload, templates: Templates) -> bool:
    """Whether some pod outranks another one and would fit on an empty node: only then has preemption anything to do."""
    pods = [(int(pod["spec"].get("priority") or 0), pod_amounts(pod)) for pod in _pods(workload, templates)]
    if not pods:
        return False
    lowest = min(priority for priority, _ in pods)
    rooms = [_room(node) for node in _nodes(workload, templates)]
    return any(
        priority > lowest and any(all(room.get(name, 0) >= amount for name, amount in asked.items()) for room in rooms)
        for priority, asked in pods
    )


def _room(node: Json) -> dict[str, int]:
    state = node.get("status") or {}
    return {
        name: parse_quantity(str(amount)).milli_value()
        for name, amount in (state.get("allocatable") or state.get("capacity") or {}).items()
    }


def _nodes(workload: Workload, templates: Templates) -> Iterable[Json]:
    for index, each in enumerate(workload.operations):
        if isinstance(each, CreateNodes) and each.count > 0:
            yield templates.node(each, index).object(0, each.count)


def _pods(workload: Workload, templates: Templates) -> Iterable[Json]:
    """A pod of every kind that the workload makes; copies differ in names of resources at most."""
    for each in workload.operations:
        if isinstance(each, CreatePods) and each.count > 0:
            pod = templates.pod(each).object(0, each.count)
            if each.persistent_volume_claim_template_path is not None:
                claim = {"name": "vol", "persistentVolumeClaim": {"claimName": "pvc-0"}}
                pod["spec"] = {**pod["spec"], "volumes": [claim]}
            yield pod
        elif isinstance(each, Churn):
            yield from (
                pod for path in each.template_paths if (pod := templates.named(path).object(0, 1))["kind"] == "Pod"
            )
