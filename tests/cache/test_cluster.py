"""The cluster: what comes from the API server in any order ends as the same truth, and nothing is counted twice."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ksched.cache.cluster import Cluster
from ksched.errors import CacheError, QuantityError
from ksched.model.pod import Pod
from ksched.testing import NodeBuilder, PodBuilder, cluster, node, pod

BIG = node("big").capacity(cpu="8", memory="16Gi", pods=110)
WEB = pod("web").request(cpu="500m", memory="1Gi")


def used(of: Cluster, name: str = "big") -> tuple[int, int, int, int]:
    """(milli-CPU, bytes, milli-CPU as scores count it, pods) on a node."""
    info = of.node(name)
    assert info is not None
    return info.requested("cpu"), info.requested("memory"), info.nonzero_requested[0], info.pod_count


FULL = (500, 1 << 30, 500, 1)
EMPTY = (0, 0, 0, 0)


def a_node_comes_after_its_pod(of: Cluster) -> None:
    of.remove_node("big")
    of.put_pod(WEB.on("big").build())
    of.put_node(BIG.build())


def a_pod_comes_twice(of: Cluster) -> None:
    of.put_pod(WEB.on("big").build())
    of.put_pod(WEB.on("big").build())


def an_assumed_pod_is_confirmed(of: Cluster) -> None:
    of.assume(of.shapes.info(WEB.build()), "big")
    of.put_pod(WEB.on("big").label(zone="copied-at-bind").build())


def an_assumed_pod_turns_up_elsewhere(of: Cluster) -> None:
    of.put_node(node("other").build())
    of.assume(of.shapes.info(WEB.build()), "other")
    of.put_pod(WEB.on("big").build())


def a_pod_is_resized(of: Cluster) -> None:
    of.put_pod(pod("web").request(cpu="2", memory="3Gi").on("big").build())
    of.put_pod(WEB.on("big").build())


def a_node_goes_and_comes_back(of: Cluster) -> None:
    of.put_pod(WEB.on("big").build())
    of.remove_node("big")
    of.put_node(node("between").build())
    of.put_node(BIG.uid("another-uid").build())


@pytest.mark.parametrize(
    "history",
    [
        pytest.param(
            a_node_comes_after_its_pod, id="a pod that comes before its node is put there when the node comes"
        ),
        pytest.param(a_pod_comes_twice, id="a pod that is told of twice counts once"),
        pytest.param(an_assumed_pod_is_confirmed, id="an assumed pod that the API server confirms keeps its room"),
        pytest.param(an_assumed_pod_turns_up_elsewhere, id="a pod assumed on one node and bound to another is moved"),
        pytest.param(a_pod_is_resized, id="a pod that is resized counts with what it asks for now"),
        pytest.param(a_node_goes_and_comes_back, id="a node that comes back under its name has its pods again"),
    ],
)
def test_histories_that_end_with_one_pod_on_the_node(history: Callable[[Cluster], None]) -> None:
    here = cluster([BIG])
    history(here)
    assert used(here) == FULL
    assert here.pod_count == 1
    assert here.assumed_count == 0


def a_pod_is_removed(of: Cluster) -> None:
    of.put_pod(WEB.on("big").build())
    of.remove_pod(WEB.build().uid)


def an_assumed_pod_is_forgotten(of: Cluster) -> None:
    of.assume(of.shapes.info(WEB.build()), "big")
    of.forget(WEB.build().uid)


def a_pod_ends(of: Cluster) -> None:
    of.put_pod(WEB.on("big").build())
    of.put_pod(WEB.on("big").status(phase="Succeeded").build())


def a_pod_ends_while_its_node_is_gone(of: Cluster) -> None:
    of.put_pod(WEB.on("big").build())
    of.remove_node("big")
    of.remove_pod(WEB.build().uid)
    of.put_node(BIG.build())


def an_ended_pod_comes(of: Cluster) -> None:
    of.put_pod(WEB.on("big").status(phase="Failed").build())


def an_unknown_pod_is_removed(of: Cluster) -> None:
    of.remove_pod("no-such-uid")
    of.forget("no-such-uid")


@pytest.mark.parametrize(
    "history",
    [
        pytest.param(a_pod_is_removed, id="a pod that is deleted frees its room"),
        pytest.param(an_assumed_pod_is_forgotten, id="an assumed pod whose binding failed frees its room"),
        pytest.param(a_pod_ends, id="a pod that ends frees its room"),
        pytest.param(a_pod_ends_while_its_node_is_gone, id="a pod that ends while its node is away does not come back"),
        pytest.param(an_ended_pod_comes, id="a pod that has ended never takes room"),
        pytest.param(an_unknown_pod_is_removed, id="removing or forgetting an unknown pod is no error"),
    ],
)
def test_histories_that_end_with_an_empty_node(history: Callable[[Cluster], None]) -> None:
    here = cluster([BIG])
    history(here)
    assert used(here) == EMPTY
    assert here.pod_count == 0
    assert here.assumed_count == 0


def test_a_pod_cannot_be_assumed_twice() -> None:
    here = cluster([BIG])
    info = here.shapes.info(WEB.build())
    here.assume(info, "big")
    with pytest.raises(CacheError, match="is in the cache, so can't be assumed"):
        here.assume(info, "big")
    assert used(here) == FULL


def test_a_confirmed_pod_cannot_be_forgotten() -> None:
    here = cluster([BIG], [WEB.on("big")])
    with pytest.raises(CacheError, match="wasn't assumed so cannot be forgotten"):
        here.forget(WEB.build().uid)
    assert used(here) == FULL


def test_a_pod_cannot_be_assumed_on_a_node_that_is_gone() -> None:
    here = cluster([BIG])
    with pytest.raises(CacheError, match="there is no such node"):
        here.assume(here.shapes.info(WEB.build()), "gone")


def test_a_node_with_a_quantity_that_cannot_be_read_changes_nothing() -> None:
    here = cluster([BIG])
    with pytest.raises(QuantityError, match=r"node big: status.allocatable\[cpu\]"):
        here.put_node(BIG.capacity(cpu="eight").build())
    info = here.node("big")
    assert info is not None
    assert info.allocatable("cpu") == 8000


def test_a_resource_that_a_node_no_longer_has_is_gone() -> None:
    here = cluster([BIG.capacity({"example.com/gpu": 4})])
    here.put_node(BIG.build())
    info = here.node("big")
    assert info is not None
    assert info.allocatable("example.com/gpu") == 0


def test_a_reused_slot_keeps_nothing_of_its_last_node() -> None:
    first = node("first").capacity({"example.com/gpu": 4}).taint("gpu").label(disk="ssd").unschedulable()
    here = cluster([first.image("app:1", "50Mi")], [pod("p").request(cpu="1").port(80).on("first")])
    here.table.label("disk")
    here.remove_node("first")
    here.put_node(node("second").build())
    second = here.node("second")
    assert second is not None
    assert second.slot == 0
    assert (second.allocatable("example.com/gpu"), second.requested("cpu"), second.pod_count) == (0, 0, 0)
    assert (second.taints, second.unschedulable, set(second.ports), second.image("app:1")) == ((), False, set(), None)
    assert here.table.label("disk").slots[0] == -1


def test_of_two_pods_with_one_host_port_the_first_to_go_frees_it() -> None:
    """Upstream keeps a set, not counts; a pod that names its node itself can bring a second holder."""
    here = cluster([BIG], [pod("a").port(80).on("big"), pod("b").port(80).on("big")])
    here.remove_pod(pod("a").build().uid)
    info = here.node("big")
    assert info is not None
    assert set(info.ports) == set()


PODS = [pod(f"p{i}").request(cpu=f"{100 * (i + 1)}m") for i in range(3)]
NODES = [node(f"n{i}") for i in range(3)]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("node"), st.sampled_from(NODES)),
        st.tuples(st.just("no node"), st.sampled_from(NODES)),
        st.tuples(st.just("pod"), st.sampled_from(PODS), st.sampled_from(NODES)),
        st.tuples(st.just("no pod"), st.sampled_from(PODS)),
        st.tuples(st.just("assume"), st.sampled_from(PODS), st.sampled_from(NODES)),
        st.tuples(st.just("forget"), st.sampled_from(PODS)),
    ),
    max_size=30,
)


@settings(max_examples=200, deadline=None)
@given(STEPS)
def test_any_history_leaves_what_the_last_word_on_each_object_says(steps: list[tuple[object, ...]]) -> None:
    here = Cluster(max_nodes=16)
    nodes: set[str] = set()
    places: dict[str, Pod] = {}
    for what, *objects in steps:
        one = objects[0]
        if isinstance(one, NodeBuilder):
            name = one.build().name
            if what == "node":
                here.put_node(one.build())
                nodes.add(name)
            else:
                here.remove_node(name)
                nodes.discard(name)
        elif isinstance(one, PodBuilder):
            waiting = one.build()
            if what == "pod" and isinstance(objects[1], NodeBuilder):
                places[waiting.uid] = one.on(objects[1].build().name).build()
                here.put_pod(places[waiting.uid])
            elif what == "assume" and isinstance(objects[1], NodeBuilder):
                name = objects[1].build().name
                if waiting.uid not in places and name in nodes:
                    here.assume(here.shapes.info(waiting), name)
                    places[waiting.uid] = one.on(name).build()
            elif what == "forget":
                if here.is_assumed(waiting.uid):
                    here.forget(waiting.uid)
                    del places[waiting.uid]
            else:
                here.remove_pod(waiting.uid)
                places.pop(waiting.uid, None)
    fresh = cluster([each for each in NODES if each.build().name in nodes], places.values())
    assert {info.name for info in here.nodes()} == nodes
    for info in here.nodes():
        other = fresh.node(info.name)
        assert other is not None
        assert set(info.pods) == set(other.pods)
        assert used(here, info.name) == used(fresh, info.name)
        assert here.table.pod_count[info.slot] == len(info.pods)


def test_what_is_kept_of_a_placed_pod_is_shared_with_its_copies() -> None:
    here = cluster([BIG])
    for i in range(3):
        copy = pod(f"copy-{i}").request(cpu="100m").label(app="web").annotation(note="x" * 10_000).on("big")
        here.put_pod(copy.status(startTime="2026-01-10T00:00:00Z", conditions=[{"type": "Ready"}]).build())
    info = here.node("big")
    assert info is not None
    kept = [each.pod for each in info.pods.values()]
    assert [each.name for each in kept] == ["copy-0", "copy-1", "copy-2"]
    assert {each.node_name for each in kept} == {"big"}
    assert all(each.spec.containers is kept[0].spec.containers and each.labels is kept[0].labels for each in kept)
    assert all(each.status.start_time and not each.status.conditions and not each.metadata.annotations for each in kept)
