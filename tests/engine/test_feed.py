"""What the API server tells, and what becomes of it in the cluster and the queue."""

from __future__ import annotations

import logging
from typing import Any

import msgspec
import pytest

from ksched.api.decode import (
    NAMESPACE,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    SERVICE,
    STATEFUL_SET,
    ObjectDecoder,
)
from ksched.api.watch import ADDED, DELETED, Event
from ksched.errors import ApiError
from ksched.model.pod import Pod
from ksched.testing import NodeBuilder, PodBuilder, node, pod
from tests.engine.world import World

SMALL = node("small").capacity(cpu="2", memory="4Gi")
ONE = pod("one").request(cpu="1")
BIG = pod("big").request(cpu="3")


@pytest.fixture
def world() -> World:
    made = World()
    made.feed.put_node(SMALL.build())
    return made


def uid_of(one: PodBuilder) -> str:
    return one.build().uid


def changed(built: PodBuilder, **metadata: object) -> Pod:
    made = built.build()
    return msgspec.structs.replace(made, metadata=msgspec.structs.replace(made.metadata, **metadata))


# -- a pod's way


def test_a_pod_without_a_node_is_queued_tried_assumed_and_confirmed(world: World) -> None:
    world.pod(ONE)
    assert world.place("default/one") == "active"
    assert world.turn() == ["default/one"]
    assert world.place("default/one") == "assumed"
    assert world.out.answer("default/one") == "small"
    assert world.place("default/one") == "assumed", "the API server has not shown it there"
    world.pod(ONE.on("small"))
    assert world.place("default/one") == "bound"
    assert len(world.queue.in_flight) == len(world.bindings) == 0
    assert world.out.events == [("default/one", "Scheduled", "Successfully assigned default/one to small")]


def test_a_pod_of_another_scheduler_is_left_alone_until_it_takes_room(world: World) -> None:
    world.pod(ONE.scheduler("other"))
    assert world.turn() == []
    world.pod(ONE.scheduler("other").on("small"))
    assert world.cluster.node("small").requested("cpu") == 1000


def test_a_pod_that_somebody_else_binds_leaves_the_queue(world: World) -> None:
    world.pod(BIG)
    world.turn()
    assert world.place("default/big") == "unschedulable"
    world.pod(BIG.on("small"))
    assert world.place("default/big") == "bound"
    assert len(world.queue) == 0


def test_the_same_version_of_a_pod_shown_twice_changes_nothing(world: World) -> None:
    shown = world.pod(BIG)
    world.turn()
    before = world.queue.get("default/big")
    world.feed.put_pod(shown)
    assert world.queue.get("default/big") is before
    assert world.place("default/big") == "unschedulable"


def test_a_pod_deleted_while_it_waits_leaves_no_trace(world: World) -> None:
    shown = world.pod(BIG)
    world.turn()
    world.feed.remove_pod(shown.key, shown.uid)
    assert world.place("default/big") == "nowhere"
    assert not world.pending.has("default/big")


def test_a_finished_pod_frees_its_room_and_wakes_who_waits_for_it(world: World) -> None:
    world.pod(ONE.on("small"))
    world.pod(pod("two").request(cpu="2"))
    world.turn()
    assert world.place("default/two") == "unschedulable"
    world.pod(ONE.on("small").status(phase="Succeeded"))
    assert world.place("default/two") == "backoff"


def test_a_pod_that_never_fits_and_is_not_helped_stays_where_it_is(world: World) -> None:
    world.pod(BIG)
    world.turn()
    world.feed.put_node(SMALL.label(disk="ssd").build())
    assert world.place("default/big") == "unschedulable", "a label does not help against too little cpu"


# -- assumed pods


def test_deletion_of_an_assumed_pod_frees_its_room_at_once(world: World) -> None:
    world.pod(pod("two").request(cpu="2"))
    world.pod(ONE)
    world.turn()
    assert world.place("default/two") == "assumed"
    assert world.place("default/one") == "unschedulable"
    world.pod(pod("two").request(cpu="2"), deletion_timestamp="2027-01-15T08:00:00Z")
    assert world.place("default/two") == "nowhere"
    assert world.place("default/one") == "backoff"


def test_an_update_of_an_assumed_pod_is_kept_for_its_next_attempt(world: World) -> None:
    world.pod(ONE)
    world.turn()
    world.pod(ONE.label(version="2"))
    assert world.place("default/one") == "assumed"
    world.out.answer("default/one", ApiError(500, "InternalError", "broken"))
    assert world.place("default/one") == "error backoff"
    assert world.queue.get("default/one").pod.labels == {"version": "2"}


def test_a_pod_confirmed_on_another_node_moves_its_room_there(world: World) -> None:
    world.feed.put_node(node("other").capacity(cpu="1").build())
    world.pod(pod("two").request(cpu="2"))
    world.turn()
    world.pod(pod("two").request(cpu="2").on("other"))
    assert world.cluster.node("small").requested("cpu") == 0
    assert world.cluster.node("other").requested("cpu") == 2000
    assert world.cluster.assumed_count == 0


def test_a_pod_that_a_restored_server_shows_without_its_node_is_scheduled_again(world: World) -> None:
    world.pod(pod("two").request(cpu="2").on("small"))
    world.pod(ONE)
    world.turn()
    assert world.place("default/one") == "unschedulable"
    world.pod(pod("two").request(cpu="2"))
    assert world.place("default/two") == "active"
    assert world.place("default/one") == "backoff"
    assert world.cluster.node("small").requested("cpu") == 0


# -- names that come back


def test_a_waiting_pod_replaced_by_one_of_the_same_name_is_forgotten(world: World) -> None:
    first = world.pod(BIG)
    world.turn()
    world.feed.remove_pod(first.key, first.uid)
    world.pod(changed(ONE, name="big", uid="another"))
    assert world.queue.get("default/big").uid == "another"
    assert world.turn() == ["default/big"]


def test_a_placed_pod_replaced_by_one_of_the_same_name_frees_its_room(world: World) -> None:
    first = world.pod(pod("two").request(cpu="2").on("small"))
    world.feed.remove_pod(first.key, first.uid)
    world.pod(changed(pod("two").request(cpu="1"), uid="another"))
    assert world.cluster.node("small").requested("cpu") == 0
    assert world.place("default/two") == "active"


def test_a_pod_recreated_while_its_predecessor_is_bound_is_a_pod_of_its_own(world: World) -> None:
    first = world.pod(ONE)
    world.turn()
    world.feed.remove_pod(first.key, first.uid)
    assert world.place("default/one") == "nowhere"
    world.pod(changed(ONE, uid="another"))
    assert world.place("default/one") == "active"
    conflict = ApiError(409, "Conflict", "the UID in the precondition does not match")
    world.out.answer("default/one", conflict)
    assert world.place("default/one") == "active"
    assert world.out.patches == [], "the condition would tell the new pod of the old one's failure"
    assert world.turn() == ["default/one"]
    assert world.place("default/one") == "assumed"


# -- nodes


@pytest.mark.parametrize(
    ("before", "waiting", "after"),
    [
        pytest.param(SMALL, BIG, SMALL.capacity(cpu="4"), id="more cpu"),
        pytest.param(SMALL.taint("gpu"), ONE, SMALL, id="a taint removed"),
        pytest.param(SMALL.unschedulable(), ONE, SMALL, id="a node uncordoned"),
        pytest.param(SMALL, ONE.node_selector(disk="ssd"), SMALL.label(disk="ssd"), id="a label added"),
    ],
)
def test_a_node_that_changes_for_the_better_wakes_the_pod(
    world: World, before: NodeBuilder, waiting: PodBuilder, after: NodeBuilder
) -> None:
    world.feed.put_node(before.build())
    world.pod(waiting)
    world.turn()
    assert world.place(waiting.build().key) == "unschedulable"
    world.feed.put_node(after.build())
    assert world.place(waiting.build().key) == "backoff"
    world.turn()
    assert world.place(waiting.build().key) == "assumed"


def test_a_new_node_wakes_the_pods_that_fit_nowhere(world: World) -> None:
    world.pod(BIG)
    world.turn()
    world.feed.put_node(node("large").capacity(cpu="8").build())
    world.turn()
    assert world.out.answer("default/big") == "large"


def test_pods_on_a_node_that_goes_and_comes_back_are_still_on_it(world: World) -> None:
    world.pod(ONE.on("small"))
    world.feed.remove_node("small", "")
    world.feed.put_node(SMALL.build())
    assert world.cluster.node("small").requested("cpu") == 1000


# -- what decides about spreading and pod affinity


@pytest.mark.parametrize(
    ("decoder", "selector", "owned"),
    [
        pytest.param(SERVICE, {"app": "web"}, pod("x").label(app="web"), id="a service"),
        pytest.param(
            REPLICATION_CONTROLLER, {"app": "web"}, pod("x").owner("ReplicationController", "web", "v1"),
            id="a replication controller",
        ),
        pytest.param(
            REPLICA_SET, {"matchLabels": {"app": "web"}}, pod("x").owner("ReplicaSet", "web"), id="a replica set"
        ),
        pytest.param(
            STATEFUL_SET, {"matchLabels": {"app": "web"}}, pod("x").owner("StatefulSet", "web"), id="a stateful set"
        ),
    ],
)  # fmt: skip
def test_what_pods_belong_to_is_known_while_it_exists(
    world: World, decoder: ObjectDecoder[Any], selector: dict[str, Any], owned: PodBuilder
) -> None:
    body = {"metadata": {"name": "web", "namespace": "default", "uid": "u"}, "spec": {"selector": selector}}
    sources = world.cluster.selector_sources
    shown = decoder.object(msgspec.json.encode(body))
    world.feed.apply([Event(decoder.kind, ADDED, shown, "default/web", "u")])
    assert str(sources.default_selector(owned.build())) == "app=web"
    world.feed.apply([Event(decoder.kind, DELETED, None, "default/web", "u")])
    assert sources.default_selector(owned.build()).empty


def test_the_labels_of_namespaces_are_known(world: World) -> None:
    shown = NAMESPACE.object(b'{"metadata": {"name": "red", "labels": {"team": "a"}}}')
    world.feed.apply([Event(NAMESPACE.kind, ADDED, shown, "red", "u")])
    assert world.cluster.namespaces == {"red": {"team": "a"}}
    world.feed.apply([Event(NAMESPACE.kind, DELETED, None, "red", "u")])
    assert world.cluster.namespaces == {}


# -- what cannot be understood


def test_a_pod_whose_requests_cannot_be_read_is_marked_and_waits_for_its_next_change(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "ksched.feed"):
        world.pod(pod("odd").request(cpu="many"))
    assert world.place("default/odd") == "unreadable"
    assert [record.getMessage() for record in caplog.records if "default/odd" in record.getMessage()]
    assert world.metrics.malformed_objects == {"Pod": 1}
    ((key, reason, note),) = world.out.events
    assert (key, reason) == ("default/odd", "FailedScheduling")
    assert "many" in note
    ((_, status),) = world.out.patches
    (condition,) = status["conditions"]
    assert (condition["status"], condition["reason"], condition["message"]) == ("False", "SchedulerError", note)
    world.pod(pod("odd").request(cpu="1"))
    assert world.place("default/odd") == "active"


def test_a_waiting_pod_that_becomes_unreadable_leaves_the_queue_and_is_not_lost(world: World) -> None:
    world.pod(BIG)
    world.turn()
    world.pod(BIG.request(cpu="many"))
    assert world.place("default/big") == "unreadable"
    world.pod(BIG.request(cpu="1"))
    assert world.place("default/big") == "active"


@pytest.mark.parametrize("node_name", [pytest.param("", id="waiting"), pytest.param("small", id="placed by hand")])
def test_a_pod_that_asks_for_less_than_nothing_takes_and_gives_no_room(
    world: World, caplog: pytest.LogCaptureFixture, node_name: str
) -> None:
    odd = pod("odd").request(cpu="-5Gi")
    with caplog.at_level(logging.WARNING, "ksched.feed"):
        world.pod(odd.on(node_name) if node_name else odd)
    assert "resources.requests[cpu]: expected 0 or more, got '-5Gi'" in caplog.text
    assert world.cluster.node("small").requested("cpu") == 0
    world.pod(ONE)
    world.turn()
    assert world.place(ONE.build().key) == "assumed", "all other pods go on"


def test_a_quantity_written_as_a_number_beyond_64_bits_is_read_like_its_text(world: World) -> None:
    for name, written in (("number", 10**22), ("text", str(10**22))):
        odd = pod(name).request(cpu="1").build()
        odd.spec.containers[0].resources.requests["cpu"] = written
        world.pod(odd)
    world.turn()
    assert world.place("default/number") == world.place("default/text") != "nowhere"
    assert world.metrics.malformed_objects == {}


def test_a_node_whose_new_version_cannot_be_read_stays_as_it_was(world: World) -> None:
    world.feed.put_node(SMALL.capacity(cpu="plenty").build())
    assert world.cluster.node("small").allocatable("cpu") == 2000
    assert world.metrics.malformed_objects == {"Node": 1}


def test_a_placed_pod_whose_new_version_cannot_be_read_keeps_its_room(world: World) -> None:
    world.pod(ONE.on("small"))
    world.pod(ONE.request(cpu="many").on("small"))
    assert world.cluster.node("small").requested("cpu") == 1000
