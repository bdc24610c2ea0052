"""One pod's cycle with the default profile: nominations, empty clusters, and plugins that are not there yet."""

from __future__ import annotations

import random

import pytest

from ksched.cache.cluster import Cluster
from ksched.config.gates import FeatureGates
from ksched.config.types import Configuration
from ksched.engine.cycle import Cycle, Placement, Unplaced
from ksched.framework.build import build_profiles
from ksched.framework.profile import Profile
from ksched.plugins.registry import IN_TREE
from ksched.testing import PodBuilder, cluster, handle, node, pod

SMALL = node("small").capacity(cpu="1", memory="4Gi", pods=110)
LARGE = node("large").capacity(cpu="4", memory="16Gi", pods=110)


def default_profile(here: Cluster) -> Profile:
    gates = FeatureGates()
    return build_profiles(Configuration.default(gates), gates, handle(here, gates), IN_TREE)["default-scheduler"]


def schedule(
    here: Cluster, one: PodBuilder, nominated: dict[str, list[PodBuilder]] | None = None
) -> Placement | Unplaced:
    others = {name: [here.shapes.info(each.build()) for each in pods] for name, pods in (nominated or {}).items()}
    return Cycle(here, rng=random.Random(7)).schedule(default_profile(here), here.shapes.info(one.build()), others)


def test_an_empty_cluster_fails_without_any_plugins_word() -> None:
    found = schedule(cluster([]), pod("web"))
    assert isinstance(found, Unplaced)
    assert (found.message, found.reason) == ("no nodes available to schedule pods", "Unschedulable")
    assert found.unschedulable_plugins == frozenset()


def test_a_placed_pod_is_assumed_with_its_room() -> None:
    here = cluster([SMALL])
    found = schedule(here, pod("web").request(cpu="600m"))
    assert isinstance(found, Placement)
    assert (found.pod.pod.node_name, here.is_assumed(found.pod.uid)) == ("small", True)
    again = schedule(here, pod("web-2").request(cpu="600m"))
    assert isinstance(again, Unplaced)
    assert again.message == "0/1 nodes are available: 1 Insufficient cpu."
    assert again.unschedulable_plugins == {"NodeResourcesFit"}


def test_the_nominated_node_is_taken_without_looking_further() -> None:
    here = cluster([SMALL, LARGE])
    found = schedule(here, pod("web").request(cpu="500m").nominated("small"))
    assert isinstance(found, Placement)
    assert (found.node_name, found.feasible) == ("small", 1)


def test_a_nominated_node_that_will_not_do_any_more_is_passed_over() -> None:
    here = cluster([SMALL, LARGE], [pod("other").request(cpu="1").on("small")])
    found = schedule(here, pod("web").request(cpu="500m").nominated("small"))
    assert isinstance(found, Placement)
    assert found.node_name == "large"


@pytest.mark.parametrize(
    ("priority", "placed"),
    [
        pytest.param(9, True, id="a nominated pod of lower priority does not count"),
        pytest.param(10, False, id="one of the same priority does"),
        pytest.param(11, False, id="one of higher priority does"),
    ],
)
def test_room_of_nominated_pods(priority: int, placed: bool) -> None:
    here = cluster([SMALL])
    found = schedule(
        here,
        pod("web").request(cpu="600m").priority(10),
        {"small": [pod("nominated").request(cpu="600m").priority(priority)]},
    )
    assert isinstance(found, Placement) == placed
    if isinstance(found, Unplaced):
        assert found.message == "0/1 nodes are available: 1 Insufficient cpu."


def test_a_pods_own_nomination_does_not_stand_against_it() -> None:
    here = cluster([SMALL])
    web = pod("web").request(cpu="600m")
    assert isinstance(schedule(here, web, {"small": [web]}), Placement)


@pytest.mark.parametrize(
    ("one", "field", "plugin"),
    [
        pytest.param(
            pod().volume("data", persistentVolumeClaim={"claimName": "c"}),
            "spec.volumes[data].persistentVolumeClaim",
            "VolumeRestrictions",
            id="a claim",
        ),
        pytest.param(
            pod().volume("data", ephemeral={}), "spec.volumes[data].ephemeral", "NodeVolumeLimits", id="its own claim"
        ),
        pytest.param(
            pod().volume("data", gcePersistentDisk={"pdName": "d"}),
            "spec.volumes[data].gcePersistentDisk",
            "VolumeRestrictions",
            id="an in-line disk",
        ),
        pytest.param(
            pod().spec(resourceClaims=[{"name": "gpu"}]), "spec.resourceClaims", "DynamicResources", id="a device"
        ),
        pytest.param(
            pod().spec(schedulingGroup={"podGroupName": "g"}), "spec.schedulingGroup", "GangScheduling", id="a group"
        ),
    ],
)
def test_a_pod_that_needs_a_missing_plugin_waits_and_says_which(one: PodBuilder, field: str, plugin: str) -> None:
    here = cluster([LARGE])
    found = schedule(here, one)
    assert isinstance(found, Unplaced)
    assert found.message == (
        f"0/1 nodes are available: pod uses {field}, which needs the {plugin} plugin, and ksched does not have it yet."
    )
    assert (found.reason, found.unschedulable_plugins) == ("Unschedulable", {plugin})
    assert here.pod_count == 0


@pytest.mark.parametrize(
    "one",
    [
        pytest.param(
            pod().volume("c", configMap={"name": "x"}).volume("e", emptyDir={}), id="volumes that live anywhere"
        ),
        pytest.param(pod().spec(affinity={"podAffinity": {}}), id="an affinity without terms"),
        pytest.param(pod().spec(schedulingGroup={}), id="a group without a name"),
    ],
)
def test_a_pod_that_needs_nothing_missing_is_placed(one: PodBuilder) -> None:
    assert isinstance(schedule(cluster([LARGE]), one), Placement)


def test_evaluate_changes_nothing() -> None:
    here = cluster([SMALL, LARGE])
    cycle = Cycle(here, rng=random.Random(7))
    report = cycle.evaluate(default_profile(here), here.shapes.info(pod("web").request(cpu="2").build()), {})
    assert (report.feasible, set(report.rejected), here.pod_count) == (["large"], {"small"}, 0)
    assert report.rejected["small"].plugin == "NodeResourcesFit"
