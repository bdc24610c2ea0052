"""The arguments of the in-tree plugins: what they may be, and what they are when nothing is written.

A plugin's `Args` is the class here that bears its name. `kinds` knows which plugin has which; `defaulted` fills in
what Kubernetes fills in; what is wrong with arguments is told by `args_validation`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from ksched.config.durations import seconds
from ksched.config.gates import FeatureGates
from ksched.config.types import ConfigStruct, Duration, Int32, Int64
from ksched.model.pod import NodeAffinity, TopologySpreadConstraint


class PluginArgs(ConfigStruct, frozen=True):
    """Arguments of a plugin, as written under `pluginConfig`."""


class ResourceSpec(ConfigStruct, frozen=True):
    """A resource that counts in a score, and how much (a weight of 0 is not given: 1)."""

    name: str = ""
    weight: Int64 = 0


CPU_AND_MEMORY = (ResourceSpec(name="cpu", weight=1), ResourceSpec(name="memory", weight=1))


class UtilizationShapePoint(ConfigStruct, frozen=True):
    """At `utilization` per cent a node gets `score`, 0 to 10; between points the score is linear."""

    utilization: Int32 = 0
    score: Int32 = 0


class RequestedToCapacityRatioParam(ConfigStruct, frozen=True):
    """The function from utilization to score."""

    shape: tuple[UtilizationShapePoint, ...] = ()


class ScoringStrategy(ConfigStruct, frozen=True):
    """How NodeResourcesFit scores: LeastAllocated, MostAllocated or RequestedToCapacityRatio. `type` has no default."""

    type: str = ""
    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = None


class DefaultPreemptionArgs(PluginArgs, frozen=True):
    """How many nodes preemption looks at."""

    min_candidate_nodes_percentage: Int32 = 10
    min_candidate_nodes_absolute: Int32 = 100


class DynamicResourcesArgs(PluginArgs, frozen=True):
    """How long filtering devices for one node and waiting for devices may take; None while the gates for it are off."""

    filter_timeout: Duration | None = None
    binding_timeout: Duration | None = None

    @property
    def filter_timeout_seconds(self) -> float | None:
        """None or 0: no limit."""
        return None if self.filter_timeout is None else seconds(self.filter_timeout)

    @property
    def binding_timeout_seconds(self) -> float | None:
        """None: the gates that it needs are off."""
        return None if self.binding_timeout is None else seconds(self.binding_timeout)


class InterPodAffinityArgs(PluginArgs, frozen=True):
    """How required affinity counts in the score, and whether the preferences of pods that run already do."""

    hard_pod_affinity_weight: Int32 = 1
    ignore_preferred_terms_of_existing_pods: bool = False


class NodeAffinityArgs(PluginArgs, frozen=True):
    """Affinity that every pod of the profile gets on top of its own."""

    added_affinity: NodeAffinity | None = None


class NodeResourcesBalancedAllocationArgs(PluginArgs, frozen=True):
    """The resources whose use should grow in step."""

    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY


class NodeResourcesFitArgs(PluginArgs, frozen=True):
    """The resources that are not looked at, and how nodes with room are scored."""

    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy(type="LeastAllocated")


class PodTopologySpreadArgs(PluginArgs, frozen=True):
    """Constraints of pods that have none of their own: the system's, or those listed."""

    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: str = "System"


class VolumeBindingArgs(PluginArgs, frozen=True):
    """How long binding volumes may take; `shape` scores by free storage, None while StorageCapacityScoring is off."""

    bind_timeout_seconds: Int64 = 600
    shape: tuple[UtilizationShapePoint, ...] | None = None


KINDS: Mapping[str, type[PluginArgs]] = {
    kind.__name__.removesuffix("Args"): kind
    for kind in (
        DefaultPreemptionArgs,
        DynamicResourcesArgs,
        InterPodAffinityArgs,
        NodeAffinityArgs,
        NodeResourcesBalancedAllocationArgs,
        NodeResourcesFitArgs,
        PodTopologySpreadArgs,
        VolumeBindingArgs,
    )
}
"""Plugin name: the class of its arguments."""

A = TypeVar("A", bound=PluginArgs)


def defaulted(args: A, gates: FeatureGates) -> A:
    """`args` with what Kubernetes fills in: empty lists, weights of 0, and fields that depend on feature gates."""
    match args:
        case DynamicResourcesArgs():
            return replace(
                args,
                filter_timeout=args.filter_timeout or ("10s" if gates.enabled("DRASchedulerFilterTimeout") else None),
                binding_timeout=args.binding_timeout or ("10m0s" if _waits_for_devices(gates) else None),
            )
        case NodeResourcesBalancedAllocationArgs():
            return replace(args, resources=_weighted(args.resources))
        case NodeResourcesFitArgs():
            strategy = args.scoring_strategy
            return replace(args, scoring_strategy=replace(strategy, resources=_weighted(strategy.resources)))
        case PodTopologySpreadArgs():
            return replace(args, defaulting_type=args.defaulting_type or "System")
        case VolumeBindingArgs() if not args.shape and gates.enabled("StorageCapacityScoring"):
            falling = (UtilizationShapePoint(utilization=0, score=10), UtilizationShapePoint(utilization=100, score=0))
            return replace(args, shape=falling)
    return args


def from_written(plugin_name: str, written: Mapping[str, Any]) -> PluginArgs:
    """The arguments of an in-tree plugin from what stands in a configuration."""
    body = {key: value for key, value in written.items() if key not in ("apiVersion", "kind")}
    return msgspec.convert(body, KINDS[plugin_name])


def _waits_for_devices(gates: FeatureGates) -> bool:
    return gates.enabled("DRADeviceBindingConditions") and gates.enabled("DRAResourceClaimDeviceStatus")


def _weighted(resources: tuple[ResourceSpec, ...]) -> tuple[ResourceSpec, ...]:
    return tuple(replace(spec, weight=spec.weight or 1) for spec in resources) or CPU_AND_MEMORY
