"""Boards: kept up to date, they say what a full pass says, whatever happens to the cluster in between."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ksched import _core
from ksched.cache.cluster import Cluster
from ksched.config.gates import FeatureGates
from ksched.config.load import parse
from ksched.engine.cycle import Cycle, Placement, Unplaced
from ksched.framework.build import build_profiles
from ksched.framework.profile import Profile
from ksched.model.node import Node
from ksched.model.pod import Pod
from ksched.plugins.registry import IN_TREE
from ksched.testing import PodBuilder, cluster, handle, node, pod
from tests.plugins.affinities import NAMESPACES, namespaces
from tests.plugins.strategies import NODE_NAMES, clusters, incoming_pods, nodes, placed_pods

DEFAULT = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
WEIGHED = (
    DEFAULT
    + """
profiles:
- plugins:
    score:
      enabled:
      - {name: TaintToleration, weight: 7}
      - {name: NodeAffinity, weight: 1}
      - {name: NodeResourcesFit, weight: 5}
      disabled: [{name: ImageLocality}]
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 3}, {name: example.com/gpu, weight: 1}]}
"""
)
RATIO = (
    DEFAULT
    + """
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: RequestedToCapacityRatio
        resources: [{name: cpu, weight: 3}, {name: memory, weight: 1}]
        requestedToCapacityRatio: {shape: [{utilization: 10, score: 2}, {utilization: 50, score: 10}]}
"""
)


class World:
    """A cluster that is scheduled with one kind of forms."""

    def __init__(self, forms: str, configuration: str = DEFAULT, max_nodes: int = 64) -> None:
        gates = FeatureGates()
        self.cluster = Cluster(max_nodes=max_nodes)
        lent = handle(self.cluster, gates)
        self.profile: Profile = build_profiles(parse(configuration, gates), gates, lent, IN_TREE, forms=forms)[
            "default-scheduler"
        ]
        self.cycle = Cycle(self.cluster, rng=random.Random(7))
        self.nominated: dict[str, list[Pod]] = {}

    def schedule(self, one: Pod) -> tuple[Any, ...]:
        """What becomes of a pod, and what is said of it."""
        promised = {name: [self.cluster.shapes.info(each) for each in pods] for name, pods in self.nominated.items()}
        found = self.cycle.schedule(self.profile, self.cluster.shapes.info(one), promised)
        if isinstance(found, Placement):
            return found.node_name, found.feasible
        assert isinstance(found, Unplaced)
        return found.message, found.reason, found.unschedulable_plugins

    @property
    def boards(self) -> int:
        return len(self.profile._boards)


def apply(world: World, step: tuple[str, Any], forgotten: int) -> tuple[Any, ...] | None:
    """One event, or one pod to schedule."""
    what, thing = step
    here = world.cluster
    if what == "node":
        here.put_node(thing)
    elif what == "no node":
        here.remove_node(thing)
    elif what == "pod":
        here.put_pod(thing)
    elif what == "nominate":
        world.nominated = {thing.node_name: [thing]}
    elif what == "namespace":
        here.put_namespace(thing)
    elif what == "no namespace":
        here.remove_namespace(thing)
    elif what == "no pod":
        here.remove_pod(thing.uid)
    elif what == "confirm":
        for uid in sorted(
            info.uid for each in here.nodes() for info in each.pods.values() if here.is_assumed(info.uid)
        ):
            info = here.pod(uid)
            assert info is not None
            here.put_pod(info.pod)
    elif what == "fail":
        assumed = sorted(info.uid for each in here.nodes() for info in each.pods.values() if here.is_assumed(info.uid))
        if assumed:
            here.forget(assumed[forgotten % len(assumed)])
    else:
        return world.schedule(thing)
    return None


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[Node], list[tuple[str, Any]]]:
    """Nodes to begin with, then events between pods of a few shapes, several of each."""
    templates = draw(st.lists(incoming_pods(), min_size=1, max_size=3))
    for template in templates:
        template.spec.node_name = ""
    steps = draw(
        st.lists(
            st.one_of(
                st.tuples(st.just("schedule"), st.sampled_from(templates)),
                st.tuples(st.just("schedule"), st.sampled_from(templates)),
                st.tuples(st.just("schedule"), st.sampled_from(templates)),
                st.tuples(st.just("node"), nodes()),
                st.tuples(st.just("no node"), st.sampled_from(NODE_NAMES)),
                st.tuples(st.just("pod"), placed_pods()),
                st.tuples(st.just("no pod"), placed_pods()),
                st.tuples(st.just("namespace"), namespaces()),
                st.tuples(st.just("no namespace"), st.sampled_from(NAMESPACES)),
                st.tuples(st.just("nominate"), placed_pods()),
                st.tuples(st.just("confirm"), st.none()),
                st.tuples(st.just("fail"), st.none()),
            ),
            min_size=4,
            max_size=40,
        )
    )
    numbered = []
    for number, (what, thing) in enumerate(steps):
        if what == "schedule":
            metadata = msgspec.structs.replace(thing.metadata, name=f"p{number}", uid=f"uid-p{number}")
            thing = msgspec.structs.replace(thing, metadata=metadata)
        numbered.append((what, thing))
    return draw(clusters()), numbered


def check_stream(configuration: str, beginning: list[Node], steps: list[tuple[str, Any]]) -> None:
    worlds = {forms: World(forms, configuration) for forms in ("native", "array", "plain")}
    for world in worlds.values():
        for each in beginning:
            world.cluster.put_node(each)
    for number, step in enumerate(steps):
        outcomes = {forms: apply(world, step, number) for forms, world in worlds.items()}
        assert outcomes["native"] == outcomes["array"] == outcomes["plain"], step


CONFIGURATIONS = st.sampled_from([DEFAULT, WEIGHED, RATIO])
SLOW_IS_FINE = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]


@settings(max_examples=100, deadline=None, suppress_health_check=SLOW_IS_FINE)
@given(CONFIGURATIONS, streams())
def test_boards_full_passes_and_plain_forms_decide_alike(
    configuration: str, stream: tuple[list[Node], list[tuple[str, Any]]]
) -> None:
    check_stream(configuration, *stream)


@pytest.mark.soak
@settings(max_examples=2000, deadline=None, suppress_health_check=SLOW_IS_FINE)
@given(CONFIGURATIONS, streams())
def test_boards_full_passes_and_plain_forms_decide_alike_for_long(
    configuration: str, stream: tuple[list[Node], list[tuple[str, Any]]]
) -> None:
    check_stream(configuration, *stream)


ROOMY = [node(f"n{i}").capacity(cpu="8", memory="16Gi", pods=20).label(pool="ab"[i % 2]) for i in range(5)]


def started(forms: str = "native", max_nodes: int = 2048) -> World:
    world = World(forms, max_nodes=max_nodes)
    for each in ROOMY:
        world.cluster.put_node(each.build())
    return world


def web(number: int) -> PodBuilder:
    return pod(f"web-{number}").request(cpu="1")


def test_a_shape_that_is_seen_once_has_no_board() -> None:
    world = started()
    world.schedule(web(0).build())
    assert world.boards == 0
    world.schedule(web(1).build())
    assert world.boards == 1


def test_copies_that_differ_in_name_labels_and_priority_share_a_board() -> None:
    world = started()
    for i in range(6):
        world.schedule(web(i).label(ordinal=str(i)).priority(i).build())
    assert world.boards == 1


def test_a_pod_that_names_its_node_has_no_board() -> None:
    world = started()
    for i in range(4):
        pinned = web(i).require_node(("pool", "Exists"), fields=(("metadata.name", "In", f"n{i}"),))
        assert world.schedule(pinned.build()) == (f"n{i}", 1)
    assert (world.boards, len(world.cluster.shapes)) == (0, 1)


def test_boards_are_bounded_by_what_they_take() -> None:
    world = started()
    world.profile._boards._most_bytes = 20_000
    for shape in range(20):
        for i in range(2):
            world.schedule(pod(f"p{shape}-{i}").request(cpu=f"{shape + 1}m").build())
    assert 1 <= world.boards < 10


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(("node", ROOMY[0].unschedulable().build()), id="a node is cordoned"),
        pytest.param(("node", ROOMY[0].taint("gpu").build()), id="a node is tainted"),
        pytest.param(("node", ROOMY[0].taint("x", effect="PreferNoSchedule").build()), id="a node is tainted softly"),
        pytest.param(("node", ROOMY[0].label(pool="b").build()), id="a node is labelled"),
        pytest.param(("node", ROOMY[0].capacity(cpu="1").build()), id="a node shrinks"),
        pytest.param(("node", ROOMY[0].image("app:latest", "900Mi").build()), id="an image arrives"),
        pytest.param(("node", node("new").capacity(cpu="64", memory="1Ti", pods=9).build()), id="a node comes"),
        pytest.param(("no node", "n0"), id="a node goes"),
        pytest.param(("pod", pod("x").request(cpu="8").on("n0").build()), id="a node fills up"),
        pytest.param(("fail", None), id="a binding fails"),
        pytest.param(("confirm", None), id="bindings are confirmed"),
        pytest.param(("nominate", pod("x").request(cpu="8").on("n0").build()), id="a node is promised to another pod"),
    ],
)
def test_an_event_between_copies(event: tuple[str, Any]) -> None:
    native, array = started("native"), started("array")
    for world in (native, array):
        for i in range(4):
            world.schedule(web(i).image("app").node_selector(pool="a").build())
    assert native.boards == 1
    for world in (native, array):
        apply(world, event, 0)
    for i in range(4, 30):
        copy = web(i).image("app").node_selector(pool="a").build()
        assert native.schedule(copy) == array.schedule(copy)


def test_a_board_that_fell_off_the_journal_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    world, array = started(), started("array")
    for each in (world, array):
        each.cluster.journal = _core.Journal(16)
        for i in range(3):
            each.schedule(web(i).build())
        for i in range(40):
            each.cluster.put_pod(pod(f"other-{i}").request(cpu="100m").on(f"n{i % 5}").build())
    for i in range(3, 40):
        assert world.schedule(web(i).build()) == array.schedule(web(i).build())


def test_more_nodes_than_a_board_has_room_for() -> None:
    world, array = started(), started("array")
    for i in range(3):
        assert world.schedule(web(i).build()) == array.schedule(web(i).build())
    for each in (world, array):
        for i in range(1500):
            each.cluster.put_node(node(f"more-{i}").capacity(cpu="2", memory="4Gi", pods=2).build())
    for i in range(3, 50):
        assert world.schedule(web(i).build()) == array.schedule(web(i).build())


def test_the_journal_forgets_but_keeps_counting() -> None:
    journal = _core.Journal(4)
    for slot in range(10):
        journal.note(slot, slot % 3)
    assert (journal.head, journal.nodes) == (10, 3)
    board = _core.Board(cluster([]).table.present, 1, [], [])
    assert board.behind(journal) == -1
    with pytest.raises(ValueError, match="power of two"):
        _core.Journal(3)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        pytest.param("resourceClaims", [{"name": "gpu"}], id="a claim"),
        pytest.param("schedulingGroup", {"podGroupName": "g"}, id="a pod group"),
        pytest.param("topologySpreadConstraints", [{"topologyKey": "zone"}], id="a spread constraint"),
        pytest.param("tolerations", [{"operator": "Exists"}], id="a toleration"),
        pytest.param("overhead", {"cpu": "2"}, id="overhead"),
    ],
)
def test_a_field_that_matters_makes_another_shape(field: str, value: Any) -> None:
    world, array = started(), started("array")
    plain, other = web(8), web(9).spec(**{field: value})
    assert world.cluster.shapes.info(plain.build()).shape is not world.cluster.shapes.info(other.build()).shape
    for each in (web(0), web(1), web(2), other):
        assert world.schedule(each.build()) == array.schedule(each.build())
