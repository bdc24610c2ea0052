"""Promises of nodes to pods, and what other pods get to see of them."""

from __future__ import annotations

import pytest

from ksched.cache.cluster import Cluster
from ksched.cache.shapes import PodInfo
from ksched.queue.nominator import Nominator
from ksched.testing import PodBuilder, pod

SHAPES = Cluster(max_nodes=64).shapes


def info(built: PodBuilder) -> PodInfo:
    return SHAPES.info(built.build())


class Promises:
    """A nominator, and the queue and API server that it looks at."""

    def __init__(self) -> None:
        self.waiting: set[str] = set()
        self.queued: dict[str, PodInfo] = {}
        self.nominator = Nominator(self.waiting.__contains__, self.queued.get)

    def pod(self, built: PodBuilder) -> PodInfo:
        made = info(built)
        self.waiting.add(made.key)
        self.queued[made.key] = made
        return made

    def by_node(self) -> dict[str, list[str]]:
        return {node: [one.key for one in nominees] for node, nominees in self.nominator.by_node().items()}

    def promised(self) -> dict[str, list[str]]:
        return {node: [one.key for one in pods] for node, pods in self.nominator.promised().items()}


@pytest.fixture
def promises() -> Promises:
    return Promises()


def test_a_promise_is_what_was_decided_or_else_what_the_status_says(promises: Promises) -> None:
    promises.nominator.add(promises.pod(pod("a").nominated("n1")), "n2")
    promises.nominator.add(promises.pod(pod("b").nominated("n1")))
    promises.nominator.add(promises.pod(pod("c")))
    assert promises.by_node() == {"n2": ["default/a"], "n1": ["default/b"]}


def test_a_new_promise_takes_the_place_of_the_old_one_and_goes_to_the_end(promises: Promises) -> None:
    one, other = promises.pod(pod("a")), promises.pod(pod("b"))
    for made in (one, other, one):
        promises.nominator.add(made, "n1")
    assert promises.by_node() == {"n1": ["default/b", "default/a"]}


def test_a_pod_that_is_gone_or_placed_is_promised_nothing(promises: Promises) -> None:
    made = promises.pod(pod("a"))
    promises.waiting.clear()
    promises.nominator.add(made, "n1")
    assert promises.by_node() == {}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(pod("a"), pod("a"), {"n1": ["default/a"]}, id="kept while neither version speaks of it"),
        pytest.param(pod("a"), pod("a").nominated("n2"), {"n2": ["default/a"]}, id="replaced by what the new one says"),
        pytest.param(pod("a").nominated("n1"), pod("a"), {}, id="taken back where the new one is silent"),
    ],
)
def test_update(promises: Promises, before: PodBuilder, after: PodBuilder, expected: dict[str, list[str]]) -> None:
    promises.nominator.add(promises.pod(before), "n1")
    promises.nominator.update(before.build().status.nominated_node_name, promises.pod(after))
    assert promises.by_node() == expected


def test_others_see_only_promises_to_pods_in_the_queue_as_they_are_there(promises: Promises) -> None:
    made = promises.pod(pod("a"))
    promises.nominator.add(made, "n1")
    assert promises.promised() == {"n1": ["default/a"]}
    del promises.queued[made.key]
    promises.nominator.moved(made.uid)
    assert promises.promised() == {}
    assert promises.by_node() == {"n1": ["default/a"]}
    newer = promises.pod(pod("a").priority(7))
    promises.nominator.moved(made.uid)
    assert promises.nominator.promised()["n1"][0] is newer


def test_a_promise_taken_back_is_seen_no_more(promises: Promises) -> None:
    made = promises.pod(pod("a"))
    promises.nominator.add(made, "n1")
    promises.nominator.remove(made.uid)
    promises.nominator.remove(made.uid)
    assert promises.promised() == {}
    assert made.uid not in promises.nominator


def test_a_promise_of_no_node_is_remembered_and_seen_by_nobody(promises: Promises) -> None:
    promises.nominator.add(promises.pod(pod("a")), "")
    assert promises.by_node() == {"": ["default/a"]}
    assert promises.promised() == {}
