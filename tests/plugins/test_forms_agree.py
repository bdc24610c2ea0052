"""Every plugin that has two forms says the same in both, whatever the nodes and pods, and however they came to be so.

The cluster changes between two looks of the same plugin at the same pods: an array form may keep what it worked out,
but not too long.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ksched.cache.cluster import Cluster
from ksched.config import args as in_tree_args
from ksched.config.gates import FeatureGates
from ksched.framework import ArrayFilterPlugin, ArrayScorePlugin, FilterPlugin, Plugin, ScorePlugin
from ksched.model.node import Node
from ksched.model.objects import Namespace
from ksched.model.pod import Pod
from ksched.plugins.registry import IN_TREE
from ksched.testing import assert_forms_agree, cluster, handle, node, pod
from tests.plugins.affinities import namespaces
from tests.plugins.strategies import NODE_NAMES, clusters, incoming_pods, nodes, placed_pods

SCORED = [{"name": "cpu", "weight": 3}, {"name": "memory"}, {"name": "example.com/gpu", "weight": 2}]
SHAPE = [{"utilization": 10, "score": 2}, {"utilization": 50, "score": 10}, {"utilization": 90, "score": 1}]

ARGUMENTS: dict[str, list[dict[str, Any]]] = {
    "NodeResourcesFit": [
        {"ignoredResources": ["example.com/gpu"], "scoringStrategy": {"type": "MostAllocated", "resources": SCORED}},
        {"ignoredResourceGroups": ["example.com"], "scoringStrategy": {"type": "LeastAllocated", "resources": SCORED}},
        {
            "scoringStrategy": {
                "type": "RequestedToCapacityRatio",
                "resources": SCORED,
                "requestedToCapacityRatio": {"shape": SHAPE},
            }
        },
    ],
    "NodeResourcesBalancedAllocation": [
        {
            "resources": [
                {"name": "cpu"},
                {"name": "memory"},
                {"name": "example.com/gpu"},
                {"name": "ephemeral-storage"},
            ]
        },
        {"resources": [{"name": "hugepages-2Mi"}]},
    ],
    "InterPodAffinity": [{"hardPodAffinityWeight": 0}, {"ignorePreferredTermsOfExistingPods": True}],
    "NodeAffinity": [
        {
            "addedAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["a"]}]}]
                },
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 7, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}
                ],
            }
        }
    ],
}
"""Arguments to try besides the defaults."""

GATES = [{}, {"TaintTolerationComparisonOperators": True}]


def has_two_forms(plugin: type[Plugin]) -> bool:
    """Whether there is anything to compare."""
    return (
        issubclass(plugin, FilterPlugin) == issubclass(plugin, ArrayFilterPlugin)
        and issubclass(plugin, ScorePlugin) == issubclass(plugin, ArrayScorePlugin)
        and issubclass(plugin, FilterPlugin | ScorePlugin)
    )


PLUGINS = [pytest.param(plugin, id=name) for name, plugin in IN_TREE.items() if has_two_forms(plugin)]


def made(plugin: type[Plugin], written: dict[str, Any], of: Cluster, gates: FeatureGates) -> Plugin:
    """The plugin with these arguments, defaulted as a configuration's are."""
    args = msgspec.convert(written, plugin.Args)
    if isinstance(args, in_tree_args.PluginArgs):
        args = in_tree_args.defaulted(args, gates)
    return plugin(args, handle(of, gates))


Change = Node | Pod | Namespace | tuple[str, str]
"""A node, placed pod or namespace as it is from now on, or ("node" or "pod", name or uid) of one that goes."""

changes = st.lists(
    st.one_of(
        nodes(),
        placed_pods(),
        namespaces(),
        st.tuples(st.just("node"), st.sampled_from(NODE_NAMES)),
        st.tuples(st.just("pod"), st.integers(0, 5).map(lambda number: f"uid-placed-{number}")),
    ),
    max_size=4,
)


def apply(of: Cluster, change: Change) -> None:
    """Let the change happen."""
    match change:
        case Node():
            of.put_node(change)
        case Pod():
            of.put_pod(change)
        case Namespace():
            of.put_namespace(change)
        case ("node", name):
            of.remove_node(name)
        case (_, uid):
            of.remove_pod(uid)


def check_agreement(plugin: type[Plugin], data: st.DataObject) -> None:
    """Both forms on a random cluster, and again after random changes."""
    here = cluster(data.draw(clusters()), data.draw(st.lists(placed_pods(), max_size=6)))
    written = data.draw(st.sampled_from([{}, *ARGUMENTS.get(plugin.name, [])]))
    gates = FeatureGates(data.draw(st.sampled_from(GATES)))
    subject = made(plugin, written, here, gates)
    pods = data.draw(st.lists(incoming_pods(), min_size=1, max_size=3))
    assert_forms_agree(subject, here, pods)
    for change in data.draw(changes):
        apply(here, change)
    assert_forms_agree(subject, here, pods)


@pytest.mark.parametrize("plugin", PLUGINS)
@settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_both_forms_say_the_same(plugin: type[Plugin], data: st.DataObject) -> None:
    check_agreement(plugin, data)


@pytest.mark.soak
@pytest.mark.parametrize("plugin", PLUGINS)
@settings(max_examples=2000, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_both_forms_say_the_same_of_very_many(plugin: type[Plugin], data: st.DataObject) -> None:
    check_agreement(plugin, data)


def test_the_plugins_with_two_forms_are_those_that_look_at_nodes() -> None:
    """So that a plugin which loses a form does not silently leave this file."""
    assert {param.id for param in PLUGINS} >= {
        "NodeUnschedulable",
        "NodeName",
        "TaintToleration",
        "NodeAffinity",
        "NodePorts",
        "NodeResourcesFit",
        "NodeResourcesBalancedAllocation",
        "PodTopologySpread",
        "InterPodAffinity",
        "ImageLocality",
        "NodeDeclaredFeatures",
    }


@pytest.mark.parametrize("plugin", PLUGINS)
def test_both_forms_say_the_same_of_more_nodes_than_a_kernel_takes_at_once(plugin: type[Plugin]) -> None:
    """Enough nodes for a vector loop and its remainder, and a pod that every plugin has something to say about."""
    many = [
        node(f"n{number}")
        .capacity({"example.com/gpu": number % 3}, cpu=f"{number % 7}", memory=f"{number % 5}Gi", pods=number % 4)
        .label(zone="abc"[number % 3], gen=f"{number}")
        .taint("gpu", f"{number % 4}", ("NoSchedule", "PreferNoSchedule")[number % 2])
        .image("app:1", f"{number}Mi")
        for number in range(77)
    ]
    here = cluster(many, [pod(f"p{number}").on(f"n{number}").request(cpu="1").port(80) for number in range(0, 77, 2)])
    asks = (
        pod("asks")
        .request({"example.com/gpu": 1}, cpu="2", memory="1Gi")
        .image("app:1")
        .port(80)
        .tolerate("gpu", "1")
        .require_node(("zone", "In", "a", "b"))
        .prefer_node(5, ("gen", "Gt", "30"))
    )
    assert_forms_agree(made(plugin, {}, here, FeatureGates()), here, [asks, pod("nothing"), asks.on("n5")])
