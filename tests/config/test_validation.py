"""What may stand in a configuration, field by field."""

from __future__ import annotations

import pytest

from ksched.config.defaults import with_defaults
from ksched.config.gates import FeatureGates
from ksched.config.types import (
    ClientConnectionConfiguration,
    Configuration,
    Extender,
    ExtenderManagedResource,
    KubeSchedulerProfile,
    LeaderElectionConfiguration,
    Plugin,
    PluginConfig,
    Plugins,
    PluginSet,
)
from ksched.config.validation import problems_of

GATES = FeatureGates()


def plugin_set(*names: str) -> PluginSet:
    return PluginSet(enabled=tuple(Plugin(name=name) for name in names))


def profiles(*plugins: Plugins, args: tuple[object, ...] = (), sort: str = "") -> Configuration:
    """One profile for each of `plugins`, named a, b, ..., with arguments of the plugin `sort`."""
    return Configuration(
        profiles=tuple(
            KubeSchedulerProfile(
                scheduler_name="abcdef"[i],
                plugins=own,
                plugin_config=(PluginConfig(name=sort, args=args[i]),) if args else (),
            )
            for i, own in enumerate(plugins)
        )
    )


def election(**fields: str | bool) -> Configuration:
    return Configuration(leader_election=LeaderElectionConfiguration(**fields))  # type: ignore[arg-type]


def manages(*names: str) -> Extender:
    return Extender(managed_resources=tuple(ExtenderManagedResource(name=name) for name in names))


NAME_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
REMOVED = 'was invalid in version "v1" (KubeSchedulerConfiguration is version "kubescheduler.config.k8s.io/v1")'


@pytest.mark.parametrize(
    ("configuration", "problems"),
    [
        pytest.param(Configuration(), [], id="the default is valid"),
        pytest.param(
            Configuration(parallelism=0),
            ["parallelism: Invalid value: 0: should be an integer value greater than zero"],
            id="no parallelism",
        ),
        pytest.param(Configuration(percentage_of_nodes_to_score=100), [], id="100 per cent"),
        pytest.param(
            Configuration(percentage_of_nodes_to_score=-1),
            ["percentageOfNodesToScore: Invalid value: -1: not in valid range [0-100]"],
            id="less than nothing",
        ),
        pytest.param(
            Configuration(profiles=(KubeSchedulerProfile(percentage_of_nodes_to_score=101),)),
            ["profiles[0].percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]"],
            id="more than everything, in a profile",
        ),
        pytest.param(
            Configuration(pod_initial_backoff_seconds=0),
            ["podInitialBackoffSeconds: Invalid value: 0: must be greater than 0"],
            id="no back-off",
        ),
        pytest.param(
            Configuration(pod_max_backoff_seconds=0),
            ["podMaxBackoffSeconds: Invalid value: 0: must be greater than or equal to PodInitialBackoffSeconds"],
            id="the longest back-off is shorter than the first",
        ),
        pytest.param(
            Configuration(client_connection=ClientConnectionConfiguration(burst=-1, qps=-1)),
            ["clientConnection.burst: Invalid value: -1: must be non-negative"],
            id="a negative burst, though a negative rate is one way to say no limit",
        ),
        pytest.param(
            election(lease_duration="-1s", renew_deadline="-2s", retry_period="-3s"),
            [
                'leaderElection.leaseDuration: Invalid value: "-1s": must be greater than zero',
                'leaderElection.renewDeadline: Invalid value: "-2s": must be greater than zero',
                'leaderElection.retryPeriod: Invalid value: "-3s": must be greater than zero',
            ],
            id="times of the election must be positive",
        ),
        pytest.param(
            election(lease_duration="10s"),
            ['leaderElection.leaseDuration: Invalid value: "10s": must be greater than `RenewDeadline`'],
            id="the lease must outlast its renewal",
        ),
        pytest.param(
            election(resource_lock="configmaps"),
            ['leaderElection.resourceLock: Invalid value: "configmaps": resourceLock value must be "leases"'],
            id="the lock is a lease",
        ),
        pytest.param(
            election(leader_elect=False, lease_duration="1s", resource_lock="x"),
            [],
            id="without an election nothing of it is looked at",
        ),
        pytest.param(
            Configuration(profiles=(KubeSchedulerProfile(scheduler_name=""),)),
            ["profiles[0].schedulerName: Required value"],
            id="a profile without a name",
        ),
        pytest.param(
            Configuration(profiles=(KubeSchedulerProfile(), KubeSchedulerProfile())),
            ["profiles[1].schedulerName: Duplicate value: {}"],
            id="a name twice",
        ),
        pytest.param(
            profiles(Plugins(filter=plugin_set("NodeName", "EBSLimits"))),
            [f'profiles[0].plugins.filter.enabled[1]: Invalid value: "EBSLimits": {REMOVED}'],
            id="a plugin that was removed",
        ),
        pytest.param(
            profiles(Plugins(multi_point=plugin_set("EBSLimits"))), [], id="under MultiPoint it is found later"
        ),
        pytest.param(
            profiles(Plugins(), args=({},), sort="CinderLimits"),
            [f'profiles[0].pluginConfig[0]: Invalid value: "CinderLimits": {REMOVED}'],
            id="arguments of a plugin that was removed",
        ),
        pytest.param(
            Configuration(
                profiles=(KubeSchedulerProfile(plugin_config=(PluginConfig(name="X"), PluginConfig(name="X"))),)
            ),
            ['profiles[0].pluginConfig[1]: Duplicate value: "X"'],
            id="arguments twice",
        ),
        pytest.param(
            profiles(Plugins(), args=({"hardPodAffinityWeight": 500},), sort="InterPodAffinity"),
            ["profiles[0].pluginConfig[0].args.hardPodAffinityWeight: Invalid value: 500: not in valid range [0, 100]"],
            id="arguments that are wrong, with their place",
        ),
        pytest.param(
            profiles(Plugins(), args=({"scoringStrategy": {"type": "Best"}},), sort="NodeResourcesFit"),
            [],
            id="those of NodeResourcesFit are found when the plugin is made",
        ),
        pytest.param(
            profiles(Plugins(queue_sort=plugin_set("PrioritySort", "X"))),
            ["profiles[0].plugins.queueSort.Enabled: Invalid value: 2: only one queue sort plugin can be enabled"],
            id="two orders of the queue",
        ),
        pytest.param(
            profiles(Plugins(), Plugins(queue_sort=PluginSet(disabled=(Plugin(name="*"),)))),
            [
                'profiles[1].plugins.queueSort: Invalid value: {"Enabled":null,"Disabled":[{"Name":"*","Weight":0}]}: '
                "must be the same for all profiles"
            ],
            id="another order in another profile",
        ),
        pytest.param(
            profiles(*[Plugins(queue_sort=plugin_set("S"))] * 2, args=({"x": 1}, {"x": 2}), sort="S"),
            ['profiles[1].pluginConfig.args: Invalid value: {"x":2}: queueSort must be the same for all profiles'],
            id="the same order with other arguments",
        ),
        pytest.param(
            Configuration(extenders=(Extender(prioritize_verb="p"),)),
            ["extenders[0].weight: Invalid value: 0: must have a positive weight applied to it"],
            id="an extender that scores without a weight",
        ),
        pytest.param(Configuration(extenders=(Extender(weight=-5),)), [], id="one that does not score needs none"),
        pytest.param(
            Configuration(extenders=(Extender(bind_verb="b"), Extender(bind_verb="b"))),
            ['extenders: Invalid value: "found 2 extenders implementing bind": only one extender can implement bind'],
            id="two extenders that bind",
        ),
        pytest.param(
            Configuration(extenders=(manages("example.com/a", "cpu"), manages("example.com/a"))),
            [
                'extenders[0].managedResources[1].name: Invalid value: "cpu": is an invalid extended resource name',
                (
                    'extenders[1].managedResources[0].name: Invalid value: "example.com/a": duplicate extender '
                    "managed resource name"
                ),
            ],
            id="resources that cannot be managed",
        ),
        pytest.param(
            Configuration(extenders=(manages("x y"),)),
            [f'extenders[0].managedResources[0].name: Invalid value: "x y": {NAME_RULE}'],
            id="a resource whose name is none",
        ),
    ],
)
def test_problems(configuration: Configuration, problems: list[str]) -> None:
    assert [str(problem) for problem in problems_of(with_defaults(configuration, GATES), GATES)] == problems


def test_a_configuration_without_profiles_is_refused() -> None:
    assert [str(problem) for problem in problems_of(Configuration(), GATES)] == ["profiles: Required value"]
