"""What a configuration is when little is written: the defaults, and how a file's own plugins are merged into them.

MultiPoint is not expanded here (see `expansion`): a merged configuration is still what kube-scheduler would write
with `--write-config-to`.
"""

from __future__ import annotations

from msgspec.structs import asdict, replace

from ksched.config import args as plugin_args
from ksched.config.gates import FeatureGates
from ksched.config.types import (
    ClientConnectionConfiguration,
    Configuration,
    KubeSchedulerProfile,
    LeaderElectionConfiguration,
    Plugin,
    PluginConfig,
    Plugins,
    PluginSet,
)
from ksched.config.write import args_as_written

EVERYTHING = "*"


def with_defaults(configuration: Configuration, gates: FeatureGates) -> Configuration:
    """The configuration with every default filled in and the default plugins merged into every profile."""
    profiles = configuration.profiles or (KubeSchedulerProfile(),)
    contention = configuration.enable_contention_profiling
    connection = configuration.client_connection
    return replace(
        configuration,
        client_connection=replace(
            connection,
            content_type=connection.content_type or ClientConnectionConfiguration().content_type,
            qps=connection.qps or None,
            burst=connection.burst or None,
        ),
        leader_election=_default_leader_election(configuration.leader_election),
        enable_contention_profiling=configuration.enable_profiling if contention is None else contention,
        percentage_of_nodes_to_score=configuration.percentage_of_nodes_to_score or 0,
        profiles=tuple(_default_profile(profile, gates) for profile in profiles),
    )


def default_plugins(gates: FeatureGates) -> Plugins:
    """The plugins that a profile has unless it says otherwise: all under MultiPoint, in kube-scheduler's order."""
    enabled = [
        Plugin(name="SchedulingGates"),
        Plugin(name="PrioritySort"),
        Plugin(name="NodeUnschedulable"),
        Plugin(name="NodeName"),
        Plugin(name="TaintToleration", weight=3),
        Plugin(name="NodeAffinity", weight=2),
        Plugin(name="NodePorts"),
        Plugin(name="NodeResourcesFit", weight=1),
        Plugin(name="VolumeRestrictions"),
        Plugin(name="NodeVolumeLimits"),
        Plugin(name="VolumeBinding"),
        Plugin(name="VolumeZone"),
        Plugin(name="PodTopologySpread", weight=2),
        Plugin(name="InterPodAffinity", weight=2),
        Plugin(name="DynamicResources", weight=2),
        Plugin(name="DefaultPreemption"),
        Plugin(name="NodeResourcesBalancedAllocation", weight=1),
        Plugin(name="ImageLocality", weight=1),
        Plugin(name="DefaultBinder"),
    ]
    if gates.enabled("NodeDeclaredFeatures"):
        enabled.append(Plugin(name="NodeDeclaredFeatures"))
    if gates.enabled("GangScheduling"):
        enabled.append(Plugin(name="GangScheduling"))
    if gates.enabled("TopologyAwareWorkloadScheduling"):
        enabled += [Plugin(name="TopologyPlacementGenerator"), Plugin(name="PodGroupPodsCount", weight=1)]
    return Plugins(multi_point=PluginSet(enabled=tuple(enabled)))


def merged(default: PluginSet, own: PluginSet) -> PluginSet:
    """A default plugin set changed by a profile's own.

    A default plugin that the profile enables again keeps its place and takes the profile's entry; one that is both
    disabled and enabled moves to the end. Repetitions survive: expansion refuses them.
    """
    disabled = {plugin.name for plugin in own.disabled}
    entries = {plugin.name: position for position, plugin in enumerate(own.enabled)}
    placed: set[int] = set()
    enabled: list[Plugin] = []
    for plugin in () if EVERYTHING in disabled else default.enabled:
        if plugin.name in disabled:
            continue
        if plugin.name in entries:
            placed.add(entries[plugin.name])
            enabled.append(own.enabled[entries[plugin.name]])
        else:
            enabled.append(plugin)
    enabled += [plugin for position, plugin in enumerate(own.enabled) if position not in placed]
    return PluginSet(enabled=tuple(enabled), disabled=own.disabled + default.disabled)


def _default_leader_election(election: LeaderElectionConfiguration) -> LeaderElectionConfiguration:
    """An empty text and a duration of zero count as not written."""
    default = LeaderElectionConfiguration()
    written = {name: value for name, value in asdict(election).items() if value not in ("", "0s")}
    return replace(default, **written)


def _default_profile(profile: KubeSchedulerProfile, gates: FeatureGates) -> KubeSchedulerProfile:
    default = default_plugins(gates)
    plugins = Plugins(**{name: merged(getattr(default, name), own) for name, own in asdict(profile.plugins).items()})
    given = {config.name for config in profile.plugin_config}
    missing = sorted(name for name in enabled_anywhere(plugins) if name in plugin_args.KINDS and name not in given)
    added = tuple(_default_args(name, gates) for name in missing)
    return replace(profile, plugins=plugins, plugin_config=profile.plugin_config + added)


def enabled_anywhere(plugins: Plugins) -> frozenset[str]:
    """The names of the plugins that are enabled at any extension point, or at all of them."""
    return frozenset(plugin.name for plugin_set in asdict(plugins).values() for plugin in plugin_set.enabled)


def _default_args(name: str, gates: FeatureGates) -> PluginConfig:
    args = plugin_args.defaulted(plugin_args.KINDS[name](), gates)
    return PluginConfig(name=name, args=args_as_written(args))
