"""Everything that can go wrong between the scheduler and its server, in the middle of the work.

The cluster has exactly as much room as its pods ask for. So all of them are bound in the end only if no room is
lost, and a pod bound twice, or beside another in the same room, shows up in the server's books.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.scenarios.api import Api, Refusal, eventually
from tests.scenarios.conftest import SandboxPlane
from tests.scenarios.objects import node, pod

NODES = 10
PODS_PER_NODE = 30
PODS = NODES * PODS_PER_NODE


def fill(sandbox: SandboxPlane) -> None:
    """Nodes, and pods that fill them to the last millicore."""
    for number in range(NODES):
        sandbox.api.create(node(f"node-{number}", cpu=f"{PODS_PER_NODE * 100}m", pods=str(PODS_PER_NODE)))
    for number in range(PODS):
        sandbox.api.create(pod(f"pod-{number}"))


def bound(api: Api) -> int:
    """How many pods have a node; 0 where the server does not answer just now."""
    try:
        return len(api.placements())
    except (OSError, Refusal):
        return 0


def all_bound_once(sandbox: SandboxPlane, seconds: float = 30.0) -> None:
    """Every pod is on a node, none was bound twice, and no node has more than it can hold."""
    eventually(lambda: bound(sandbox.api) == PODS, seconds, f"{bound(sandbox.api)} of {PODS} pods are bound")
    audit = sandbox.audit()
    assert audit["ok"], audit
    assert audit["pods"] == PODS


def when_some_are_bound(sandbox: SandboxPlane, act: Callable[[], object], share: float = 0.2) -> None:
    """Do something in the middle of the work."""
    eventually(lambda: bound(sandbox.api) >= PODS * share)
    act()


SLOW_BINDS = {"verbs": ["bind"], "latency_seconds": 0.25}
"""Stretches the work to some seconds, so that what happens meanwhile happens in the middle."""


def test_scheduler_killed_and_started_again(sandbox: SandboxPlane) -> None:
    fill(sandbox)
    sandbox.misbehave(rules=[SLOW_BINDS])
    with sandbox.scheduler() as scheduler:
        for share in (0.1, 0.4):
            when_some_are_bound(sandbox, scheduler.kill, share)
            assert bound(sandbox.api) < PODS, "too late: nothing was left to do"
            scheduler.start()
        all_bound_once(sandbox)


@pytest.mark.parametrize("crash", [pytest.param(False, id="stopped"), pytest.param(True, id="crashed")])
def test_server_restarted(sandbox: SandboxPlane, crash: bool) -> None:
    fill(sandbox)
    sandbox.misbehave(rules=[SLOW_BINDS])
    with sandbox.scheduler():
        when_some_are_bound(sandbox, lambda: sandbox.process.restart(crash=crash))
        all_bound_once(sandbox)


def test_two_schedulers_at_once_never_bind_a_pod_twice(sandbox: SandboxPlane) -> None:
    """Nobody should run two, but a lease can be lost while a bind is on its way."""
    fill(sandbox)
    sandbox.misbehave(rules=[SLOW_BINDS])
    with sandbox.scheduler("--seed", "2"), sandbox.scheduler("--seed", "3"):
        eventually(lambda: bound(sandbox.api) == PODS, 40)
    assert sandbox.audit()["bound_more_than_once"] == []


@pytest.mark.parametrize(
    "orders",
    [
        pytest.param({"expire_watches": True, "expire_history": True}, id="410 on every watch, and the past is gone"),
        pytest.param({"cut_watches": True}, id="watches are cut"),
    ],
)
def test_watches_broken_again_and_again(sandbox: SandboxPlane, orders: dict[str, Any]) -> None:
    fill(sandbox)
    sandbox.misbehave(rules=[SLOW_BINDS])
    with sandbox.scheduler():
        for share in (0.1, 0.3, 0.5, 0.7):
            when_some_are_bound(sandbox, lambda: sandbox.misbehave(**orders), share)
        all_bound_once(sandbox)
        after(sandbox)


def after(sandbox: SandboxPlane) -> None:
    """Changes after the trouble still arrive: room that becomes free is used."""
    gone = sandbox.api.get(pod("pod-0"))
    late = sandbox.api.create(pod("late"))
    sandbox.api.delete(gone)
    eventually(lambda: "late" in sandbox.api.placements())
    assert sandbox.audit()["ok"]
    sandbox.api.delete(late)


@pytest.mark.parametrize(
    ("rules", "effect"),
    [
        pytest.param(
            [{"verbs": ["bind"], "status": 429, "retry_after_seconds": 1, "probability": 0.3}],
            "refused",
            id="429 on binds, with Retry-After",
        ),
        pytest.param([{"verbs": ["bind"], "status": 500, "probability": 0.3}], "refused", id="500 on binds"),
        pytest.param(
            [{"verbs": ["bind"], "cut_after_answer": True, "probability": 0.3}],
            "done, and not told",
            id="binds that take effect, and the connection is cut before the answer",
        ),
        pytest.param(
            [{"verbs": ["bind"], "cut_before_answer": True, "probability": 0.3}],
            "refused",
            id="connections cut before a bind takes effect",
        ),
        pytest.param(
            [
                {"verbs": ["bind"], "cut_after_answer": True, "probability": 0.3},
                {"verbs": ["get"], "status": 503, "probability": 0.5},
            ],
            "done, and not told",
            id="binds without an answer, and looking fails half of the time",
        ),
        pytest.param(
            [{"verbs": ["list", "watch"], "status": 503, "probability": 0.7}], "", id="503 on lists and watches"
        ),
        pytest.param(
            [
                {"path": "/events", "status": 500, "probability": 0.5},
                {"path": "/status", "status": 500, "probability": 0.5},
            ],
            "",
            id="500 on events and status patches",
        ),
    ],
)
def test_server_refuses_or_cuts(sandbox: SandboxPlane, rules: list[dict[str, Any]], effect: str) -> None:
    fill(sandbox)
    sandbox.misbehave(rules=rules)
    with sandbox.scheduler():
        all_bound_once(sandbox)
        hits = sum(rule["hits"] for rule in sandbox.api.call("GET", "/sandbox/faults")["rules"])
        assert hits > 0
        sandbox.behave()
        after(sandbox)


def test_events_that_come_twice_or_in_the_wrong_order(sandbox: SandboxPlane) -> None:
    fill(sandbox)
    sandbox.misbehave(duplicate_events=0.3, reorder_events=0.3)
    with sandbox.scheduler():
        all_bound_once(sandbox)
        after(sandbox)


def test_sigterm_lets_binds_in_flight_finish_and_writes_their_events(sandbox: SandboxPlane) -> None:
    fill(sandbox)
    sandbox.misbehave(rules=[SLOW_BINDS])
    with sandbox.scheduler() as scheduler:
        before = eventually(lambda: bound(sandbox.api))
        assert before < PODS, "too late: no bind is in flight"
        scheduler.ask_to_stop()
        scheduler.wait_for_log("requested to terminate")
        sandbox.api.create(node("empty"))
        sandbox.api.create(pod("late"))
        assert scheduler.ended() == 0
    placed = sandbox.api.placements()
    assert len(placed) >= before
    assert "late" not in placed, "a cycle began after the scheduler was asked to stop"
    time.sleep(0.5)
    assert sandbox.api.placements() == placed, "a bind arrived after the scheduler had ended"
    events = sandbox.api.call("GET", "/apis/events.k8s.io/v1/namespaces/default/events")["items"]
    told = {event["regarding"]["name"] for event in events if event["reason"] == "Scheduled"}
    assert told == set(placed)
    assert sandbox.audit()["ok"]


def test_pods_come_and_go_while_the_server_misbehaves(sandbox: SandboxPlane) -> None:
    """Creation, deletion and re-creation under the same names, with lost answers: in the end the books are right."""
    api = sandbox.api
    for number in range(NODES):
        api.create(node(f"node-{number}", cpu="1", pods="10"))
    sandbox.misbehave(
        rules=[
            {"verbs": ["bind"], "cut_after_answer": True, "probability": 0.2},
            {"verbs": ["bind"], "status": 500, "probability": 0.1},
        ],
        duplicate_events=0.1,
    )

    def churn(lane: int) -> None:
        own = Api(sandbox.kubeconfig)
        for round in range(15):
            made = [own.create(pod(f"churn-{lane}-{number}")) for number in range(10)]
            for each in made:
                own.delete(each)
            time.sleep(0.01 * (round % 3))
        own.close()

    with sandbox.scheduler():
        with ThreadPoolExecutor() as lanes:
            list(lanes.map(churn, range(3)))
        sandbox.behave()
        last = [api.create(pod(f"last-{number}")) for number in range(NODES * 10)]
        eventually(lambda: len(api.placements()) == len(last), 30, "all room is free again")
    audit = sandbox.audit()
    assert audit["overcommitted"] == audit["bound_more_than_once"] == []


def test_objects_that_cannot_be_understood_stop_nothing(sandbox: SandboxPlane) -> None:
    """A sandbox takes what a real server might have in its store from before its validation was as it is."""
    api = sandbox.api
    api.create(node("only"))
    strange = pod("strange")
    strange["spec"]["priority"] = "high"
    api.create(strange)
    large = pod("large")
    large["metadata"]["annotations"] = {"example.com/blob": "x" * 1_000_000}
    api.create(large)
    api.create(pod("plain"))
    with sandbox.scheduler() as scheduler:
        eventually(lambda: set(api.placements()) == {"large", "plain"})
        api.create({**strange, "metadata": {"name": "stranger", "namespace": "default"}})
        api.create(pod("later"))
        eventually(lambda: "later" in api.placements())
        complaints = [line for line in scheduler.log.splitlines() if "spec.priority" in line]
        assert ["default/strange:" in complaints[0], "default/stranger:" in complaints[1]] == [True, True]
        assert len(complaints) == 2, "one line for each"
        api.delete(strange)
        api.create(pod("strange"))
        eventually(lambda: "strange" in api.placements())
