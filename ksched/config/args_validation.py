"""What may stand in the arguments of the in-tree plugins: kube-scheduler's rules, in its order, with its sentences.

Paths are relative to the arguments: validation of a whole configuration puts the place in front, a plugin that is
made by itself does not.
"""

from __future__ import annotations

from collections.abc import Iterator

from ksched.config.args import (
    KINDS,
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PluginArgs,
    PodTopologySpreadArgs,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
    VolumeBindingArgs,
)
from ksched.config.durations import nanoseconds
from ksched.config.gates import FeatureGates
from ksched.config.problems import Problem, aggregated, duplicate, forbidden, invalid, required, unsupported
from ksched.errors import ConfigurationError
from ksched.model.label_syntax import key_faults
from ksched.model.objects import NodeSelector, NodeSelectorTerm
from ksched.model.pod import NodeAffinity, TopologySpreadConstraint
from ksched.model.selectors import lazy_node_selector

_SECOND = 10**9
_STRATEGIES = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")


def args_problems(args: PluginArgs, gates: FeatureGates) -> list[Problem]:
    """Everything that is wrong with the arguments of an in-tree plugin."""
    match args:
        case DefaultPreemptionArgs():
            return list(_default_preemption(args))
        case DynamicResourcesArgs():
            return list(_dynamic_resources(args, gates))
        case InterPodAffinityArgs():
            return list(_percentage("hardPodAffinityWeight", args.hard_pod_affinity_weight))
        case NodeAffinityArgs(added_affinity=NodeAffinity() as affinity):
            return list(_added_affinity(affinity))
        case NodeResourcesBalancedAllocationArgs():
            return list(_balanced_resources(args.resources))
        case NodeResourcesFitArgs():
            return fit_args_problems(args)
        case PodTopologySpreadArgs():
            return list(_topology_spread(args))
        case VolumeBindingArgs():
            return list(_volume_binding(args, gates))
    return []


def check_args(plugin_name: str, args: object, gates: FeatureGates) -> None:
    """Raise ConfigurationError, in kube-scheduler's words, if `args` are not right for making the in-tree plugin."""
    if not isinstance(args, KINDS[plugin_name]):
        raise ConfigurationError(f"want args to be of type {KINDS[plugin_name].__name__}, got {type(args).__name__}")
    problems = args_problems(args, gates)
    if problems:
        raise ConfigurationError(aggregated(str(problem) for problem in problems))


def fit_args_problems(args: NodeResourcesFitArgs) -> list[Problem]:
    """What is wrong with the arguments of NodeResourcesFit; no feature gate changes it."""
    return [*_ignored(args), *_scoring_strategy(args.scoring_strategy)]


def _percentage(path: str, value: int) -> Iterator[Problem]:
    if not 0 <= value <= 100:
        yield invalid(path, value, "not in valid range [0, 100]")


def _default_preemption(args: DefaultPreemptionArgs) -> Iterator[Problem]:
    percentage, absolute = args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute
    yield from _percentage("minCandidateNodesPercentage", percentage)
    if absolute < 0:
        yield invalid("minCandidateNodesAbsolute", absolute, "not in valid range [0, inf)")
    if percentage == 0 and absolute == 0:
        same_time = "cannot be zero at the same time as"
        yield invalid("minCandidateNodesPercentage", percentage, f"{same_time} minCandidateNodesAbsolute")
        yield invalid("minCandidateNodesAbsolute", absolute, f"{same_time} minCandidateNodesPercentage")


def _dynamic_resources(args: DynamicResourcesArgs, gates: FeatureGates) -> Iterator[Problem]:
    if args.filter_timeout is not None:
        if not gates.enabled("DRASchedulerFilterTimeout"):
            yield forbidden("filterTimeout", "DRASchedulingFilterTimeout feature gate is disabled")
        elif nanoseconds(args.filter_timeout) < 0:
            yield invalid("filterTimeout", args.filter_timeout, "must be zero or positive")
    if args.binding_timeout is not None:
        if not (gates.enabled("DRADeviceBindingConditions") and gates.enabled("DRAResourceClaimDeviceStatus")):
            gate_names = "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus"
            yield forbidden("bindingTimeout", f"{gate_names} feature gate is disabled")
        elif nanoseconds(args.binding_timeout) < _SECOND:
            yield invalid("bindingTimeout", args.binding_timeout, "must be at least 1 second")


def _balanced_resources(resources: tuple[ResourceSpec, ...]) -> Iterator[Problem]:
    seen: set[str] = set()
    for i, resource in enumerate(resources):
        if resource.name in seen:
            yield duplicate(f"resources[{i}].name", resource.name)
        seen.add(resource.name)
        if resource.weight != 1:
            yield invalid(f"resources[{i}].weight", resource.weight, "must be 1")


def _ignored(args: NodeResourcesFitArgs) -> Iterator[Problem]:
    for i, name in enumerate(args.ignored_resources):
        yield from _label_name(f"ignoredResources[{i}]", name)
    for i, group in enumerate(args.ignored_resource_groups):
        path = f"ignoredResourceGroups[{i}]"
        if "/" in group:
            yield invalid(path, group, "resource group name can't contain '/'")
        yield from _label_name(path, group)


def _scoring_strategy(strategy: ScoringStrategy) -> Iterator[Problem]:
    path, ratio = "scoringStrategy.requestedToCapacityRatio", strategy.requested_to_capacity_ratio
    if strategy.type not in _STRATEGIES:
        yield unsupported("scoringStrategy.type", strategy.type, _STRATEGIES)
    for i, resource in enumerate(strategy.resources):
        if not 0 < resource.weight <= 100:
            detail = f"resource weight of {resource.name} not in valid range (0, 100]"
            yield invalid(f"scoringStrategy.resources[{i}].weight", resource.weight, detail)
    if strategy.type == "RequestedToCapacityRatio":
        if ratio is None:
            yield required(path, "must be specified when type is RequestedToCapacityRatio")
        else:
            yield from _shape(f"{path}.shape", ratio.shape)
    elif ratio is not None and strategy.type in _STRATEGIES:
        yield forbidden(path, "must be nil when type is not RequestedToCapacityRatio")


def _shape(path: str, shape: tuple[UtilizationShapePoint, ...]) -> Iterator[Problem]:
    if not shape:
        yield required(path, "at least one point must be specified")
        return
    for i in range(1, len(shape)):
        if shape[i].utilization <= shape[i - 1].utilization:
            yield invalid(f"{path}[{i}].utilization", shape[i].utilization, "values must be sorted in increasing order")
            break
    for i, point in enumerate(shape):
        yield from _percentage(f"{path}[{i}].utilization", point.utilization)
        if not 0 <= point.score <= 10:
            yield invalid(f"{path}[{i}].score", point.score, "not in valid range [0, 10]")


def _topology_spread(args: PodTopologySpreadArgs) -> Iterator[Problem]:
    if args.defaulting_type not in ("System", "List"):
        yield unsupported("defaultingType", args.defaulting_type, ("System", "List"))
    if args.defaulting_type == "System" and args.default_constraints:
        yield invalid("defaultingType", args.defaulting_type, "when .defaultConstraints are not empty")
        return
    seen: set[tuple[str, str]] = set()
    for i, constraint in enumerate(args.default_constraints):
        path = f"defaultConstraints[{i}]"
        yield from _default_constraint(path, constraint)
        key = (constraint.topology_key, constraint.when_unsatisfiable)
        if key in seen:
            yield duplicate(path, f"{{{key[0]}, {key[1]}}}")
        seen.add(key)


def _default_constraint(path: str, constraint: TopologySpreadConstraint) -> Iterator[Problem]:
    if constraint.max_skew <= 0:
        yield invalid(f"{path}.maxSkew", constraint.max_skew, "not in valid range (0, inf)")
    if not constraint.topology_key:
        yield required(f"{path}.topologyKey", "can not be empty")
    else:
        yield from _label_name(f"{path}.topologyKey", constraint.topology_key)
    if not constraint.when_unsatisfiable:
        yield required(f"{path}.whenUnsatisfiable", "can not be empty")
    elif constraint.when_unsatisfiable not in ("DoNotSchedule", "ScheduleAnyway"):
        choices = ("DoNotSchedule", "ScheduleAnyway")
        yield unsupported(f"{path}.whenUnsatisfiable", constraint.when_unsatisfiable, choices)
    if constraint.label_selector is not None:
        detail = "constraint must not define a selector, as they deduced for each pod"
        yield forbidden(f"{path}.labelSelector", detail)


def _volume_binding(args: VolumeBindingArgs, gates: FeatureGates) -> Iterator[Problem]:
    if args.bind_timeout_seconds < 0:
        detail = "invalid BindTimeoutSeconds, should not be a negative value"
        yield invalid("bindTimeoutSeconds", args.bind_timeout_seconds, detail)
    if gates.enabled("StorageCapacityScoring"):
        yield from _shape("shape", args.shape or ())
    elif args.shape is not None:
        points = [{"Utilization": point.utilization, "Score": point.score} for point in args.shape]
        detail = "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"
        yield invalid("shape", points, detail)


def _label_name(path: str, name: str) -> Iterator[Problem]:
    return (invalid(path, name, fault) for fault in key_faults(name))


def _added_affinity(affinity: NodeAffinity) -> Iterator[Problem]:
    required_path = "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
    preferred_path = "addedAffinity.preferredDuringSchedulingIgnoredDuringExecution"
    if affinity.required is not None:
        yield from _term_problems(required_path, affinity.required.node_selector_terms)
    # Like an empty term, a preference without a weight is not looked at.
    weighed = [term.preference if term.weight else NodeSelectorTerm() for term in affinity.preferred or []]
    yield from _term_problems(preferred_path, weighed)


def _term_problems(path: str, terms: list[NodeSelectorTerm]) -> Iterator[Problem]:
    for error in lazy_node_selector(NodeSelector(node_selector_terms=terms)).errors:
        place, _, mistake = error.removeprefix("nodeSelectorTerms").partition(": ")
        yield Problem(path + place, mistake)
