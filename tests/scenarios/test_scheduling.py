"""Pods, nodes and one scheduler process: what users see, on the sandbox and on a real API server."""

from __future__ import annotations

from collections import Counter
from functools import partial

import pytest

from tests.scenarios.api import Api, Object, Refusal, eventually
from tests.scenarios.conftest import ControlPlane, SandboxPlane
from tests.scenarios.objects import condition, node, pod, priority_class, service

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

NO_ROOM = "0/2 nodes are available: 2 Insufficient cpu."


def test_every_pod_that_fits_is_bound_and_no_node_is_overcommitted(control_plane: ControlPlane) -> None:
    api = control_plane.api
    for number in range(3):
        api.create(node(f"node-{number}", cpu="2", pods="10"))
    made = [api.create(pod(f"pod-{number}", cpu="500m")) for number in range(14)]
    with control_plane.scheduler():
        placed = eventually(lambda: len(api.placements()) == 12 and api.placements(), what="12 of 14 pods have room")
        eventually(lambda: sum(bool(condition(each)) for each in api.pods().values()) == 14)
    assert sorted(Counter(placed.values()).values()) == [4, 4, 4]
    for each in made:
        events = Counter(event["reason"] for event in api.events_of(each))
        bound = each["metadata"]["name"] in placed
        assert events["Scheduled"] == bound
        assert (events["FailedScheduling"] > 0) != bound


def test_a_bound_pod_says_so_by_condition_and_event(control_plane: ControlPlane) -> None:
    api = control_plane.api
    api.create(node("only"))
    made = api.create(pod("one"))
    with control_plane.scheduler():
        eventually(api.placements)
        (event,) = eventually(lambda: api.events_of(made))
    assert condition(api.get(made))["status"] == "True"
    assert (event["type"], event["reason"], event["action"]) == ("Normal", "Scheduled", "Binding")
    assert event["note"] == "Successfully assigned default/one to only"
    assert event["reportingController"] == "default-scheduler"
    assert event["regarding"]["resourceVersion"] == made["metadata"]["resourceVersion"]


def test_a_pod_that_fits_nowhere_says_why(control_plane: ControlPlane) -> None:
    api = control_plane.api
    api.create(node("one"))
    api.create(node("other"))
    made = api.create(pod("huge", cpu="100"))
    with control_plane.scheduler():
        eventually(lambda: condition(api.get(made)))
        (event,) = eventually(lambda: api.events_of(made))
    said = condition(api.get(made))
    assert (said["status"], said["reason"]) == ("False", "Unschedulable")
    assert said["message"].startswith(NO_ROOM)
    assert said["lastTransitionTime"]
    assert (event["type"], event["reason"], event["action"]) == ("Warning", "FailedScheduling", "Scheduling")
    assert event["note"] == said["message"]


def test_a_pod_of_another_scheduler_is_left_alone(control_plane: ControlPlane) -> None:
    api = control_plane.api
    api.create(node("only"))
    foreign = api.create(pod("foreign", schedulerName="somebody-else"))
    api.create(pod("ours"))
    with control_plane.scheduler():
        eventually(api.placements)
    assert api.placements() == {"ours": "only"}
    assert not api.events_of(foreign)
    assert not condition(api.get(foreign))


def test_a_gated_pod_is_not_looked_at_before_its_last_gate_is_removed(control_plane: ControlPlane) -> None:
    api = control_plane.api
    api.create(node("only"))
    gated = api.create(pod("gated", schedulingGates=[{"name": "example.com/wait"}]))
    api.create(pod("free"))
    with control_plane.scheduler():
        eventually(api.placements)
        assert not api.events_of(gated)
        assert condition(api.get(gated))["reason"] == "SchedulingGated"
        api.patch(gated, {"spec": {"schedulingGates": None}})
        eventually(lambda: len(api.placements()) == 2)


def test_a_pod_that_needs_a_plugin_ksched_does_not_have_stays_pending_and_says_so(control_plane: ControlPlane) -> None:
    api = control_plane.api
    api.create(node("only"))
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    made = api.create(pod("claims", volumes=[volume]))
    with control_plane.scheduler():
        said = eventually(lambda: condition(api.get(made)))
    assert said["reason"] == "Unschedulable"
    assert "VolumeRestrictions" in said["message"]
    assert not api.placements()


def test_the_pods_of_a_service_are_spread_over_nodes_though_one_has_much_more_room(control_plane: ControlPlane) -> None:
    api = control_plane.api
    api.create(node("large", cpu="64", memory="256Gi"))
    api.create(node("small"))
    web = api.create(service("web", app="web"))
    with control_plane.scheduler():
        for number in range(4):
            made = pod(f"web-{number}")
            made["metadata"]["labels"] = {"app": "web"}
            api.create(made)
        placed = eventually(lambda: len(api.placements()) == 4 and api.placements())
    api.delete(web)
    assert Counter(placed.values()) == {"large": 2, "small": 2}


def test_a_pod_that_cannot_be_spread_waits_for_one_to_go(control_plane: ControlPlane) -> None:
    api = control_plane.api
    api.create(node("only"))
    apart = {
        "maxSkew": 1,
        "minDomains": 2,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    made = [pod(f"web-{number}", topologySpreadConstraints=[apart]) for number in range(2)]
    for each in made:
        each["metadata"]["labels"] = {"app": "web"}
    first = api.create(made[0])
    with control_plane.scheduler():
        eventually(api.placements)
        second = api.create(made[1])
        said = eventually(lambda: condition(api.get(second)))
        assert said["message"].startswith(
            "0/1 nodes are available: 1 node(s) didn't match pod topology spread constraints."
        )
        api.delete(first)
        eventually(lambda: "web-1" in api.placements())


def test_pods_that_avoid_each_other_wait_for_one_to_go(control_plane: ControlPlane) -> None:
    api = control_plane.api
    for name in ("one", "other"):
        api.create(node(name))
    alone = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "db"}}}
    made = [pod(f"db-{number}", affinity={"podAntiAffinity": {REQUIRED: [alone]}}) for number in range(3)]
    for each in made:
        each["metadata"]["labels"] = {"app": "db"}
    first, _ = (api.create(each) for each in made[:2])
    with control_plane.scheduler():
        eventually(lambda: sorted(api.placements().values()) == ["one", "other"])
        last = api.create(made[2])
        said = eventually(lambda: condition(api.get(last)))
        assert said["message"].startswith("0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules.")
        left = api.placements()["db-0"]
        api.delete(first)
        eventually(lambda: api.placements().get("db-2") == left)


def test_pods_that_want_to_be_together_are_near_the_first_of_them(control_plane: ControlPlane) -> None:
    api = control_plane.api
    for number in range(4):
        api.create(node(f"node-{number}"))
    together = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app": "web"}},
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}},
    }
    with control_plane.scheduler():
        for number in range(5):
            made = pod(f"web-{number}", affinity={"podAffinity": {REQUIRED: [together]}})
            made["metadata"]["labels"] = {"app": "web"}
            api.create(made)
        placed = eventually(lambda: len(api.placements()) == 5 and api.placements())
    assert len(set(placed.values())) == 1


@pytest.mark.parametrize(
    "help_comes", ["a node is added", "a pod is deleted", "a taint is removed", "a node is uncordoned"]
)
def test_a_waiting_pod_is_bound_when(control_plane: ControlPlane, help_comes: str) -> None:
    api = control_plane.api
    first = api.create(node("first", cpu="1"))
    with control_plane.scheduler():
        blocker = None
        if help_comes == "a pod is deleted":
            blocker = api.create(pod("blocker", cpu="1"))
            eventually(api.placements)
        elif help_comes == "a taint is removed":
            api.patch(first, {"spec": {"taints": [{"key": "example.com/keep-out", "effect": "NoSchedule"}]}})
        elif help_comes == "a node is uncordoned":
            api.patch(first, {"spec": {"unschedulable": True}})
        waiting = api.create(pod("waiting", cpu="1" if help_comes != "a node is added" else "2"))
        eventually(lambda: condition(api.get(waiting)))
        assert "waiting" not in api.placements()
        if blocker is not None:
            api.delete(blocker)
        elif help_comes == "a node is added":
            api.create(node("second", cpu="2"))
        elif help_comes == "a taint is removed":
            api.patch(first, {"spec": {"taints": None}})
        else:
            api.patch(first, {"spec": {"unschedulable": None}})
        eventually(lambda: "waiting" in api.placements())


def test_the_pod_of_higher_priority_gets_the_room(control_plane: ControlPlane) -> None:
    api = control_plane.api
    api.create(node("only", cpu="1"))
    for name, value in (("low", 1), ("high", 1000)):
        api.create(priority_class(name, value))
    for name in ("low", "high"):
        eventually(partial(accepted, api, pod(name, cpu="1", priorityClassName=name)))
    with control_plane.scheduler():
        eventually(lambda: condition(api.get(pod("low"))) and api.placements())
    assert api.placements() == {"high": "only"}


def accepted(api: Api, made: Object) -> bool:
    """Whether the server takes it. For a moment it may not know a priority class that has just been created."""
    try:
        api.create(made)
    except Refusal as refusal:
        if refusal.code != 403:
            raise
        return False
    return True


def test_pods_that_come_back_under_the_same_name_are_bound_every_time(control_plane: ControlPlane) -> None:
    api = control_plane.api
    api.create(node("only", cpu="1"))
    uids = set()
    with control_plane.scheduler():
        for round in range(8):
            made = api.create(pod("again", cpu="1"))
            uids.add(made["metadata"]["uid"])
            if round % 2:
                eventually(api.placements)
            api.delete(made)
        last = api.create(pod("again", cpu="1"))
        eventually(api.placements)
    assert api.get(last)["metadata"]["uid"] == last["metadata"]["uid"]
    assert last["metadata"]["uid"] not in uids


def test_a_scheduler_that_starts_late_knows_what_is_taken(control_plane: ControlPlane) -> None:
    api = control_plane.api
    api.create(node("one", cpu="2"))
    for number in range(2):
        api.create(pod(f"early-{number}", cpu="1"))
    with control_plane.scheduler():
        eventually(lambda: len(api.placements()) == 2)
    late = api.create(pod("late", cpu="1"))
    with control_plane.scheduler():
        eventually(lambda: condition(api.get(late)))
    assert "late" not in api.placements()


def test_sigterm_ends_it_with_code_0(control_plane: ControlPlane) -> None:
    api = control_plane.api
    api.create(node("only"))
    api.create(pod("one"))
    with control_plane.scheduler() as scheduler:
        eventually(api.placements)
        scheduler.ask_to_stop()
        assert scheduler.ended() == 0


@pytest.mark.parametrize("sandbox", [{"tls": True, "token": "secret"}], indirect=True, ids=["TLS and a token"])
def test_the_same_over(sandbox: SandboxPlane) -> None:
    sandbox.api.create(node("only"))
    for number in range(20):
        sandbox.api.create(pod(f"pod-{number}"))
    with sandbox.scheduler() as scheduler:
        eventually(lambda: len(sandbox.api.placements()) == 20)
        scheduler.ask_to_stop()
        assert scheduler.ended() == 0
    assert sandbox.audit()["ok"]
