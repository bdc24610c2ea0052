"""What may stand in a configuration: kube-scheduler's rules, in its order, with its sentences.

`args_validation` knows the rules of the in-tree plugins' arguments. Some of kube-scheduler's checks have gaps (they
are marked): a file that it accepts must be accepted here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ksched.config import args as plugin_args
from ksched.config.args_validation import args_problems
from ksched.config.durations import nanoseconds
from ksched.config.gates import FeatureGates
from ksched.config.problems import Problem, duplicate, invalid, required
from ksched.config.types import (
    API_VERSION,
    Configuration,
    Extender,
    KubeSchedulerProfile,
    LeaderElectionConfiguration,
    PluginSet,
)
from ksched.model import resource_names
from ksched.model.label_syntax import key_faults

_OUT_OF_PERCENT = "not in valid range [0-100]"
_REMOVED_PLUGINS = frozenset({"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"})
_REMOVED_IN = "v1"
_CHECKED_FOR_REMOVED = (
    "pre_enqueue",
    "queue_sort",
    "pre_filter",
    "filter",
    "post_filter",
    "pre_score",
    "score",
    "reserve",
    "permit",
    "pre_bind",
    "bind",
    "post_bind",
)
"""Not `multi_point` and the placement points: a removed plugin there is found later, as one that does not exist."""


def problems_of(configuration: Configuration, gates: FeatureGates) -> list[Problem]:
    """Everything that is wrong with a decoded and defaulted configuration, in kube-scheduler's order."""
    return [
        *_client_connection(configuration),
        *_leader_election(configuration.leader_election),
        *_parallelism(configuration),
        *_profiles(configuration.profiles, gates),
        *_percentage("percentageOfNodesToScore", configuration.percentage_of_nodes_to_score),
        *_backoff(configuration),
        *_extenders(configuration.extenders),
    ]


def _client_connection(configuration: Configuration) -> Iterator[Problem]:
    burst = configuration.client_connection.burst
    if burst is not None and burst < 0:
        yield invalid("clientConnection.burst", burst, "must be non-negative")


def _leader_election(election: LeaderElectionConfiguration) -> Iterator[Problem]:
    if not election.leader_elect:
        return
    times = {
        "leaseDuration": election.lease_duration,
        "renewDeadline": election.renew_deadline,
        "retryPeriod": election.retry_period,
    }
    for name, duration in times.items():
        if nanoseconds(duration) <= 0:
            yield invalid(f"leaderElection.{name}", duration, "must be greater than zero")
    if nanoseconds(election.lease_duration) <= nanoseconds(election.renew_deadline):
        # The value shown is the deadline's, as kube-scheduler shows it.
        yield invalid("leaderElection.leaseDuration", election.renew_deadline, "must be greater than `RenewDeadline`")
    if election.resource_lock != "leases":
        yield invalid("leaderElection.resourceLock", election.resource_lock, 'resourceLock value must be "leases"')


def _parallelism(configuration: Configuration) -> Iterator[Problem]:
    if configuration.parallelism <= 0:
        yield invalid("parallelism", configuration.parallelism, "should be an integer value greater than zero")


def _profiles(profiles: tuple[KubeSchedulerProfile, ...], gates: FeatureGates) -> Iterator[Problem]:
    if not profiles:
        yield required("profiles")
    names: set[str] = set()
    for i, profile in enumerate(profiles):
        path = f"profiles[{i}]"
        yield from _profile(path, profile, gates)
        if profile.scheduler_name in names:
            # kube-scheduler gives the earlier field's path as the value; its printer shows {} for a path.
            yield duplicate(f"{path}.schedulerName", {})
        names.add(profile.scheduler_name)
    yield from _common_queue_sort(profiles)


def _profile(path: str, profile: KubeSchedulerProfile, gates: FeatureGates) -> Iterator[Problem]:
    if not profile.scheduler_name:
        yield required(f"{path}.schedulerName")
    yield from _percentage(f"{path}.percentageOfNodesToScore", profile.percentage_of_nodes_to_score)
    for point in _CHECKED_FOR_REMOVED:
        yield from _removed_plugins(f"{path}.plugins.{_camel(point)}", getattr(profile.plugins, point))
    yield from _plugin_config(path, profile, gates)


def _removed_plugins(path: str, plugin_set: PluginSet) -> Iterator[Problem]:
    for j, plugin in enumerate(plugin_set.enabled):
        if plugin.name in _REMOVED_PLUGINS:
            yield _removed(f"{path}.enabled[{j}]", plugin.name)


def _removed(path: str, name: str) -> Problem:
    detail = f'was invalid in version "{_REMOVED_IN}" (KubeSchedulerConfiguration is version "{API_VERSION}")'
    return invalid(path, name, detail)


def _plugin_config(path: str, profile: KubeSchedulerProfile, gates: FeatureGates) -> Iterator[Problem]:
    seen: set[str] = set()
    for j, config in enumerate(profile.plugin_config):
        place = f"{path}.pluginConfig[{j}]"
        if config.name in seen:
            yield duplicate(place, config.name)
        seen.add(config.name)
        if config.name in _REMOVED_PLUGINS:
            yield _removed(place, config.name)
        elif config.name in plugin_args.KINDS and config.name != "NodeResourcesFit":
            # NodeResourcesFit's are looked at when plugins are expanded: in kube-scheduler's table of rules they have a
            # wrong name, so that only the plugin itself finds what is wrong.
            args = plugin_args.from_written(config.name, config.args)
            yield from (problem.under(f"{place}.args") for problem in args_problems(args, gates))


def _common_queue_sort(profiles: tuple[KubeSchedulerProfile, ...]) -> Iterator[Problem]:
    """All profiles share one queue. What comes from MultiPoint is not seen here, but when plugins are expanded."""
    if not profiles:
        return
    first = profiles[0].plugins.queue_sort
    if len(first.enabled) > 1:
        path = "profiles[0].plugins.queueSort.Enabled"
        yield invalid(path, len(first.enabled), "only one queue sort plugin can be enabled")
    name = first.enabled[0].name if first.enabled else ""
    args = _args(profiles[0], name)
    for i, profile in enumerate(profiles[1:], start=1):
        own = profile.plugins.queue_sort
        if own != first:
            path = f"profiles[{i}].plugins.queueSort"
            yield invalid(path, _internal_form(own), "must be the same for all profiles")
        for config in profile.plugin_config:
            if config.name == name and config.args != args:
                path = f"profiles[{i}].pluginConfig.args"
                yield invalid(path, config.args, "queueSort must be the same for all profiles")


def _args(profile: KubeSchedulerProfile, name: str) -> Any:
    return next((config.args for config in profile.plugin_config if name and config.name == name), None)


def _internal_form(plugin_set: PluginSet) -> dict[str, Any]:
    """A plugin set as kube-scheduler's messages show it."""

    def shown(plugins: tuple[Any, ...]) -> list[dict[str, Any]] | None:
        return [{"Name": plugin.name, "Weight": plugin.weight} for plugin in plugins] or None

    return {"Enabled": shown(plugin_set.enabled), "Disabled": shown(plugin_set.disabled)}


def _percentage(path: str, percentage: int | None) -> Iterator[Problem]:
    if percentage is not None and not 0 <= percentage <= 100:
        yield invalid(path, percentage, _OUT_OF_PERCENT)


def _backoff(configuration: Configuration) -> Iterator[Problem]:
    initial, longest = configuration.pod_initial_backoff_seconds, configuration.pod_max_backoff_seconds
    if initial <= 0:
        yield invalid("podInitialBackoffSeconds", initial, "must be greater than 0")
    if longest < initial:
        detail = "must be greater than or equal to PodInitialBackoffSeconds"
        yield invalid("podMaxBackoffSeconds", longest, detail)


def _extenders(extenders: tuple[Extender, ...]) -> Iterator[Problem]:
    managed: set[str] = set()
    for i, extender in enumerate(extenders):
        path = f"extenders[{i}]"
        if extender.prioritize_verb and extender.weight <= 0:
            yield invalid(f"{path}.weight", extender.weight, "must have a positive weight applied to it")
        for j, resource in enumerate(extender.managed_resources):
            name_path = f"{path}.managedResources[{j}].name"
            yield from _extended_resource_name(name_path, resource.name)
            if resource.name in managed:
                yield invalid(name_path, resource.name, "duplicate extender managed resource name")
            managed.add(resource.name)
    binders = sum(1 for extender in extenders if extender.bind_verb)
    if binders > 1:
        value = f"found {binders} extenders implementing bind"
        yield invalid("extenders", value, "only one extender can implement bind")


def _extended_resource_name(path: str, name: str) -> Iterator[Problem]:
    faults = key_faults(name)
    if faults:
        yield from (invalid(path, name, fault) for fault in faults)
    elif not resource_names.is_extended(name):
        yield invalid(path, name, "is an invalid extended resource name")


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
