"""What a configuration is when little is written, and how a profile's plugins are merged into the default ones."""

from __future__ import annotations

import pytest

from ksched.config.defaults import default_plugins, enabled_anywhere, merged, with_defaults
from ksched.config.gates import FeatureGates
from ksched.config.types import (
    ClientConnectionConfiguration,
    Configuration,
    KubeSchedulerProfile,
    LeaderElectionConfiguration,
    Plugin,
    Plugins,
    PluginSet,
    args_for,
)

DEFAULT = [
    "SchedulingGates",
    "PrioritySort",
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
    "DynamicResources",
    "DefaultPreemption",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
    "DefaultBinder",
    "NodeDeclaredFeatures",
]

GANG = {"GenericWorkload": True, "GangScheduling": True}


def names(*plugins: str) -> tuple[Plugin, ...]:
    return tuple(Plugin(name=name) for name in plugins)


@pytest.mark.parametrize(
    ("gates", "last"),
    [
        pytest.param({}, ["NodeDeclaredFeatures"], id="features of nodes are compared by default"),
        pytest.param(
            {"NodeDeclaredFeatures": False, "InPlacePodLevelResourcesVerticalScaling": False}
            | {"ExtendWebSocketsToKubelet": False, "InPlacePodVerticalScalingInitContainers": False}
            | {"RestartAllContainersOnContainerExits": False},
            [],
            id="without its gate the plugin is not there",
        ),
        pytest.param(GANG, ["NodeDeclaredFeatures", "GangScheduling"], id="gangs come after"),
        pytest.param(
            GANG | {"TopologyAwareWorkloadScheduling": True},
            ["NodeDeclaredFeatures", "GangScheduling", "TopologyPlacementGenerator", "PodGroupPodsCount"],
            id="topologies of workloads come last",
        ),
    ],
)
def test_default_plugins(gates: dict[str, bool], last: list[str]) -> None:
    plugins = default_plugins(FeatureGates(gates))
    assert [plugin.name for plugin in plugins.multi_point.enabled] == DEFAULT[:-1] + last
    assert enabled_anywhere(plugins) == set(DEFAULT[:-1] + last)


@pytest.mark.parametrize(
    ("default", "own", "result"),
    [
        pytest.param(names("A", "B"), PluginSet(), "A0 B0", id="a profile that says nothing has the default"),
        pytest.param(names("A", "B"), PluginSet(disabled=names("A")), "B0", id="a disabled plugin is left out"),
        pytest.param(names("A", "B"), PluginSet(disabled=names("*")), "", id="a star disables everything"),
        pytest.param(names("A"), PluginSet(enabled=names("B")), "A0 B0", id="a plugin of its own comes last"),
        pytest.param(
            names("A", "B"),
            PluginSet(enabled=(Plugin(name="A", weight=7),)),
            "A7 B0",
            id="a default plugin enabled again keeps its place and takes the new weight",
        ),
        pytest.param(
            names("A", "B"),
            PluginSet(enabled=names("A"), disabled=names("A")),
            "B0 A0",
            id="one that is disabled and enabled moves to the end",
        ),
        pytest.param(
            names("A", "B"),
            PluginSet(enabled=(Plugin(name="A", weight=1), Plugin(name="A", weight=2))),
            "A2 B0 A1",
            id="of a repeated entry the last one takes the place and the first survives",
        ),
        pytest.param(
            names("A", "B"),
            PluginSet(enabled=names("C"), disabled=names("*")),
            "C0",
            id="a star and plugins of its own",
        ),
    ],
)
def test_merged(default: tuple[Plugin, ...], own: PluginSet, result: str) -> None:
    plugins = merged(PluginSet(enabled=default, disabled=names("Z")), own)
    assert " ".join(f"{plugin.name}{plugin.weight}" for plugin in plugins.enabled) == result
    assert plugins.disabled == own.disabled + names("Z")


def test_a_configuration_without_a_file_has_one_profile_with_all_arguments() -> None:
    configuration = Configuration.default(FeatureGates())
    (profile,) = configuration.profiles
    assert profile.scheduler_name == "default-scheduler"
    assert [config.name for config in profile.plugin_config] == sorted(
        [
            "DefaultPreemption",
            "DynamicResources",
            "InterPodAffinity",
            "NodeAffinity",
            "NodeResourcesBalancedAllocation",
            "NodeResourcesFit",
            "PodTopologySpread",
            "VolumeBinding",
        ]
    )
    assert args_for(profile, "DefaultPreemption") == {
        "minCandidateNodesPercentage": 10,
        "minCandidateNodesAbsolute": 100,
    }
    assert args_for(profile, "NodeName") == {}


def test_only_enabled_plugins_get_default_arguments() -> None:
    own = Plugins(multi_point=PluginSet(enabled=names("NodeAffinity", "NodeName"), disabled=names("*")))
    configuration = Configuration(profiles=(KubeSchedulerProfile(plugins=own),))
    (profile,) = with_defaults(configuration, FeatureGates()).profiles
    assert [config.name for config in profile.plugin_config] == ["NodeAffinity"]


@pytest.mark.parametrize(
    ("profiling", "contention", "result"),
    [
        pytest.param(True, None, True, id="contention is profiled with the rest"),
        pytest.param(False, None, False, id="or not at all"),
        pytest.param(False, True, True, id="unless it is said"),
        pytest.param(True, False, False, id="either way"),
    ],
)
def test_contention_profiling(profiling: bool, contention: bool | None, result: bool) -> None:
    written = Configuration(enable_profiling=profiling, enable_contention_profiling=contention)
    assert with_defaults(written, FeatureGates()).enable_contention_profiling is result


def test_empty_texts_and_zero_durations_count_as_not_written() -> None:
    written = LeaderElectionConfiguration(leader_elect=False, lease_duration="0s", resource_lock="", retry_period="3s")
    election = with_defaults(Configuration(leader_election=written), FeatureGates()).leader_election
    assert election == LeaderElectionConfiguration(leader_elect=False, retry_period="3s")


def test_a_limit_of_zero_is_no_limit_of_ones_own() -> None:
    written = ClientConnectionConfiguration(qps=0.0, burst=0, content_type="")
    connection = with_defaults(Configuration(client_connection=written), FeatureGates()).client_connection
    assert (connection.qps, connection.burst) == (None, None)
    assert connection.content_type == "application/vnd.kubernetes.protobuf"
    kept = ClientConnectionConfiguration(qps=12.5, burst=33)
    assert with_defaults(Configuration(client_connection=kept), FeatureGates()).client_connection == kept
