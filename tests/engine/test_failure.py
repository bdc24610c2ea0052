"""What is written, and what is not, when a pod finds no node."""

from __future__ import annotations

from typing import Any

import pytest

from ksched.engine.failure import status_patch
from ksched.errors import ApiError
from ksched.testing import PodBuilder, node, pod
from tests.engine.world import START, World

NOW = START + 0.75
TEXT = "0/2 nodes are available: 2 Insufficient cpu."
NEW = {
    "lastProbeTime": None,
    "lastTransitionTime": "2027-01-15T08:00:00Z",
    "message": TEXT,
    "reason": "Unschedulable",
    "status": "False",
    "type": "PodScheduled",
}


def with_condition(**fields: Any) -> PodBuilder:
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": TEXT,
        "lastTransitionTime": "2020-01-01T00:00:00Z",
    }
    return pod().status(conditions=[{**condition, **fields}])


@pytest.mark.parametrize(
    ("before", "nominated", "expected"),
    [
        pytest.param(pod(), "", {"conditions": [NEW]}, id="a pod without conditions gets the whole one"),
        pytest.param(with_condition(), "", None, id="nothing is sent when nothing changes"),
        pytest.param(
            with_condition(message="0/1 nodes are available: 1 Too many pods."),
            "",
            {
                "$setElementOrder/conditions": [{"type": "PodScheduled"}],
                "conditions": [{"message": TEXT, "type": "PodScheduled"}],
            },
            id="another message is sent alone, and the time of the last transition stays",
        ),
        pytest.param(
            with_condition(reason="SchedulingGated", message="Scheduling is blocked due to non-empty scheduling gates"),
            "",
            {
                "$setElementOrder/conditions": [{"type": "PodScheduled"}],
                "conditions": [{"message": TEXT, "reason": "Unschedulable", "type": "PodScheduled"}],
            },
            id="an ungated pod changes reason and message",
        ),
        pytest.param(
            with_condition(status="True", reason="", message=""),
            "",
            {
                "$setElementOrder/conditions": [{"type": "PodScheduled"}],
                "conditions": [
                    {
                        "lastTransitionTime": "2027-01-15T08:00:00Z",
                        "message": TEXT,
                        "reason": "Unschedulable",
                        "status": "False",
                        "type": "PodScheduled",
                    }
                ],
            },
            id="a status that flips sets the time of the last transition",
        ),
        pytest.param(
            pod().status(conditions=[{"type": "DisruptionTarget", "status": "True"}]),
            "",
            {
                "$setElementOrder/conditions": [{"type": "DisruptionTarget"}, {"type": "PodScheduled"}],
                "conditions": [NEW],
            },
            id="a new condition goes behind those that are there",
        ),
        pytest.param(
            with_condition(), "node-1", {"nominatedNodeName": "node-1"}, id="a nomination is sent without a condition"
        ),
        pytest.param(
            with_condition().nominated("node-1"),
            "",
            {"nominatedNodeName": None},
            id="a nomination is cleared with null",
        ),
        pytest.param(with_condition().nominated("node-1"), None, None, id="a nomination that nobody speaks of stays"),
    ],
)
def test_status_patch(before: PodBuilder, nominated: str | None, expected: dict[str, Any] | None) -> None:
    patch = status_patch(before.build(), "Unschedulable", TEXT, nominated, NOW)
    assert patch == (None if expected is None else {"status": expected})


def test_the_condition_says_which_generation_it_is_about() -> None:
    built = pod().build()
    built.metadata.generation = 3
    patch = status_patch(built, "Unschedulable", TEXT, "", NOW)
    assert patch is not None
    assert list(patch["status"]["conditions"][0]) == [
        "lastProbeTime",
        "lastTransitionTime",
        "message",
        "observedGeneration",
        "reason",
        "status",
        "type",
    ]
    assert patch["status"]["conditions"][0]["observedGeneration"] == 3


# -- the handler


def test_an_unschedulable_pod_is_put_back_then_told_by_event_and_condition() -> None:
    world = World()
    world.feed.put_node(node("small").capacity(cpu="1").build())
    world.pod(pod("big").request(cpu="3"))
    world.turn()
    text = "0/1 nodes are available: 1 Insufficient cpu."
    assert world.place("default/big") == "unschedulable"
    ((key, reason, note),) = world.out.events
    assert (key, reason) == ("default/big", "FailedScheduling")
    assert note.startswith(text.rstrip("."))
    ((_, status),) = world.out.patches
    assert status["conditions"][0]["message"] == note
    assert world.metrics.attempts == {("unschedulable", "default-scheduler"): 1}


def test_the_same_failure_again_writes_the_event_but_not_the_status() -> None:
    world = World()
    world.feed.put_node(node("small").capacity(cpu="1").build())
    big = pod("big").request(cpu="3")
    world.pod(big)
    world.turn()
    condition = world.out.patches[0][1]["conditions"][0]
    shown = {name: value for name, value in condition.items() if value is not None}
    world.pod(big.status(conditions=[shown]))
    world.feed.put_node(node("small").capacity(cpu="2").build())
    world.now += 2
    world.queue.flush_backoff()
    assert world.turn() == ["default/big"]
    assert len(world.out.events) == 2
    assert len(world.out.patches) == 1


def test_without_nodes_a_pod_is_retried_on_its_backoff_alone() -> None:
    world = World()
    world.pod(pod("one"))
    world.turn()
    assert world.place("default/one") == "error backoff"
    assert world.out.patches[0][1]["conditions"][0]["reason"] == "Unschedulable"
    assert world.out.events[0][2] == "no nodes available to schedule pods"


def test_a_pod_that_went_while_it_was_bound_does_not_come_back() -> None:
    world = World()
    world.feed.put_node(node("small").capacity(cpu="1").build())
    shown = world.pod(pod("one"))
    world.turn()
    world.feed.remove_pod(shown.key, shown.uid)
    world.out.answer("default/one", ApiError(404, "NotFound", 'pods "one" not found'))
    assert world.place("default/one") == "nowhere"
    assert len(world.queue.in_flight) == 0
    assert world.metrics.attempts == {("error", "default-scheduler"): 1}
    assert world.metrics.bind_failures == {"NotFound": 1}


def test_a_binding_that_failed_gives_the_room_back_and_wakes_who_waits_for_it() -> None:
    world = World()
    world.feed.put_node(node("small").capacity(cpu="2").build())
    world.pod(pod("first").request(cpu="2"))
    world.pod(pod("second").request(cpu="2"))
    world.turn()
    assert world.place("default/second") == "unschedulable"
    world.out.answer("default/first", ApiError(500, "InternalError", "broken"))
    assert world.place("default/first") == "error backoff"
    assert world.place("default/second") == "backoff"
    assert world.cluster.node("small").requested("cpu") == 0
    key, reason, note = world.out.events[-1]
    assert (key, reason) == ("default/first", "FailedScheduling")
    assert note == 'running Bind plugin "DefaultBinder": broken'
    assert world.out.patches[-1][1]["conditions"][0]["reason"] == "SchedulerError"
