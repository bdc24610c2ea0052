"""Which events reach which plugin, and what a hint makes of them."""

from __future__ import annotations

import pytest

from ksched.cache.cluster import Cluster
from ksched.model.pod import Pod
from ksched.queue import events
from ksched.queue.events import ClusterEvent, event
from ksched.queue.registrations import EVENTS, Registration, Registrations
from ksched.testing import PodBuilder, pod

NODE_UPDATE = event(events.NODE, events.UPDATE_NODE_LABEL)


@pytest.mark.parametrize(
    ("happened", "resource", "actions", "matches"),
    [
        pytest.param(events.NODE_ADD, events.NODE, events.ADD, True, id="the very event"),
        pytest.param(events.NODE_ADD, events.NODE, events.DELETE, False, id="another action"),
        pytest.param(events.NODE_ADD, events.POD, events.ADD, False, id="another resource"),
        pytest.param(NODE_UPDATE, events.NODE, events.UPDATE, True, id="all updates include a specific one"),
        pytest.param(
            event(events.NODE, events.UPDATE), events.NODE, events.UPDATE_NODE_LABEL, False,
            id="a general update is not the specific one",
        ),
        pytest.param(events.ASSIGNED_POD_DELETE, events.POD, events.DELETE, True, id="Pod means placed ones"),
        pytest.param(events.UNSCHEDULED_POD_ADD, events.POD, events.ADD, True, id="Pod means waiting ones too"),
        pytest.param(NODE_UPDATE, events.WILDCARD, events.ALL, True, id="the wildcard matches everything"),
        pytest.param(events.UNSCHEDULABLE_TIMEOUT, events.NODE, events.ALL, False, id="only the wildcard matches it"),
    ],
)  # fmt: skip
def test_matching(happened: ClusterEvent, resource: str, actions: int, matches: bool) -> None:
    assert happened.is_matched_by(resource, actions) is matches


def test_a_plugin_that_waits_for_nodes_hears_of_taints_too() -> None:
    told = Registrations.of(["NodeName", "SchedulingGates"]).told(event(events.NODE, events.UPDATE_NODE_TAINT))
    assert list(told) == ["NodeName"]


def test_a_plugin_that_nobody_knows_hears_of_everything_but_one_without_events_of_nothing() -> None:
    registrations = Registrations.of(["Unknown", "Missing"], without_events=["Missing"])
    assert list(registrations.told(NODE_UPDATE)) == ["Unknown"]
    assert list(registrations.told(event(events.STORAGE_CLASS, events.ADD))) == ["Unknown"]


@pytest.mark.parametrize(
    ("plugin", "waiting", "old", "new", "helps"),
    [
        pytest.param("SchedulingGates", pod("a").gate("g"), pod("a").gate("g"), pod("a"), True, id="its own gates"),
        pytest.param("SchedulingGates", pod("a").gate("g"), pod("b").gate("g"), pod("b"), False, id="another's gates"),
        pytest.param("TaintToleration", pod("a"), pod("a"), pod("a").tolerate("gpu"), True, id="its own toleration"),
        pytest.param("TaintToleration", pod("a"), pod("b"), pod("b").tolerate("gpu"), False, id="another's toleration"),
        pytest.param(
            "NodeDeclaredFeatures", pod("a"), pod("a"), pod("a").label(x="y"), False, id="the same features as before"
        ),
        pytest.param(
            "NodeDeclaredFeatures", pod("a"), pod("a"), pod("a").spec(hostNetwork=True, hostUsers=False), True,
            id="other features than before",
        ),
    ],
)  # fmt: skip
def test_hints(plugin: str, waiting: PodBuilder, old: PodBuilder, new: PodBuilder, helps: bool) -> None:
    shapes = Cluster(max_nodes=64).shapes
    (hint,) = (entry.hint for entry in EVENTS[plugin] if entry.resource == events.POD)
    assert hint is not None
    before: Pod = old.build()
    assert hint(shapes.info(waiting.build()), before, new.build()) is helps


def test_what_is_told_is_remembered_by_kind_of_event() -> None:
    registrations = Registrations({"A": [Registration(events.NODE, events.ADD)]})
    assert registrations.told(events.NODE_ADD) is registrations.told(event(events.NODE, events.ADD))
