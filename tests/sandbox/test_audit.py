"""The audit, the timeline and the statistics: what the server itself knows about scheduling."""

from __future__ import annotations

from typing import Any

import pytest

from ksched.sandbox.audit import pod_amounts
from ksched.sandbox.clock import Clock
from ksched.sandbox.ledger import Ledger

from .wire import MERGE, PODS, Client, binding, pod

Object = dict[str, Any]


def asks(**requests: str) -> Object:
    return {"resources": {"requests": requests}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"containers": [asks(cpu="100m"), asks(cpu="1")]}, {"cpu": 1100}, id="containers add up"),
        pytest.param(
            {"containers": [asks(cpu="1")], "initContainers": [asks(cpu="3"), asks(cpu="2")]},
            {"cpu": 3000},
            id="the hungriest init container counts alone",
        ),
        pytest.param(
            {"containers": [asks(cpu="1")], "initContainers": [asks(cpu="1") | {"restartPolicy": "Always"}]},
            {"cpu": 2000},
            id="a sidecar runs beside the containers",
        ),
        pytest.param(
            {
                "containers": [asks(cpu="1")],
                "initContainers": [asks(cpu="1") | {"restartPolicy": "Always"}, asks(cpu="2")],
            },
            {"cpu": 3000},
            id="an init container runs beside the sidecars before it",
        ),
        pytest.param(
            {"containers": [asks(cpu="1")], "overhead": {"cpu": "250m"}}, {"cpu": 1250}, id="overhead comes on top"
        ),
        pytest.param(
            {"containers": [asks(cpu="1", memory="1Ki")], **asks(cpu="5")},
            {"cpu": 5000, "memory": 1024 * 1000},
            id="what the pod asks for as a whole replaces the sum",
        ),
        pytest.param({"containers": [{"name": "main"}]}, {}, id="nothing asked for"),
    ],
)
def test_what_a_pod_asks_for(spec: Object, expected: dict[str, int]) -> None:
    assert pod_amounts({"spec": spec}) == expected


def fill(client: Client, name: str, cpu: str, node: str) -> None:
    body = pod(name)
    body["spec"]["containers"][0]["resources"]["requests"] = {"cpu": cpu}
    client.post(PODS, body)
    client.post(f"{PODS}/{name}/binding", binding(name, node))


def test_an_overcommitted_node_is_found(client: Client) -> None:
    fill(client, "a", "3", "node-1")
    fill(client, "b", "1", "node-1")
    assert client.get("/sandbox/audit") == {
        "ok": True,
        "nodes": 1,
        "pods": 2,
        "overcommitted": [],
        "bound_more_than_once": [],
        "unknown_nodes": [],
        "unreadable": [],
    }
    fill(client, "c", "1m", "node-1")
    audit = client.get("/sandbox/audit")
    assert audit["ok"] is False
    assert audit["overcommitted"] == [
        {"node": "node-1", "resource": "cpu", "promised_thousandths": 4001, "allocatable_thousandths": 4000}
    ]
    client.patch(f"{PODS}/c/status", {"status": {"phase": "Succeeded"}}, MERGE)
    assert client.get("/sandbox/audit")["ok"] is True


def test_too_many_pods_overcommit_too(client: Client) -> None:
    for number in range(11):
        fill(client, f"pod-{number}", "0", "node-2")
    assert [each["resource"] for each in client.get("/sandbox/audit")["overcommitted"]] == ["pods"]


def test_a_pod_on_an_unknown_node_is_named(client: Client) -> None:
    fill(client, "lost", "1", "nowhere")
    assert client.get("/sandbox/audit")["unknown_nodes"] == ["nowhere"]


def test_statistics_count_what_happened(client: Client) -> None:
    fill(client, "a", "1", "node-1")
    client.refused("POST", f"{PODS}/a/binding", binding("a", "node-2"))
    client.post(PODS, pod("waiting"))
    stats = client.get("/sandbox/stats")
    assert (stats["pods_created"], stats["pods_bound"], stats["binds"], stats["bind_conflicts"]) == (2, 1, 1, 1)
    assert (stats["requests"]["bind"], stats["objects"]["Pod"], stats["objects"]["Node"]) == (2, 2, 2)
    assert stats["cpu_seconds"] > 0
    assert stats["rss_bytes"] > 1e6


def test_the_timeline_is_of_one_namespace_or_all(client: Client) -> None:
    client.post("/api/v1/namespaces", {"metadata": {"name": "other"}})
    client.post("/api/v1/namespaces/other/pods", pod("far"))
    fill(client, "a", "1", "node-1")
    timeline = client.get("/sandbox/timeline", namespace="default")
    assert (timeline["created"], timeline["bound"]) == (1, 1)
    assert timeline["seconds"] == pytest.approx(timeline["last_bind"] - timeline["first_create"], abs=1e-5)
    assert timeline["latency_seconds"]["p50"] == timeline["latency_seconds"]["max"]
    everywhere = client.get("/sandbox/timeline")
    assert (everywhere["created"], everywhere["bound"]) == (2, 1)
    assert client.get("/sandbox/timeline", namespace="empty")["pods_per_second"] is None


def test_throughput_and_latencies() -> None:
    ticks = 0
    ledger = Ledger(Clock(lambda: ticks, lambda: 10**18))
    for number in range(100):
        ticks = number * 10**6
        ledger.created("ns", f"pod-{number}", f"uid-{number}")
    for number in range(100):
        ticks = 10**9 + 2 * number * 10**6
        ledger.bound("ns", f"pod-{number}", f"uid-{number}", "node")
    timeline = ledger.timeline("ns")
    assert timeline["seconds"] == pytest.approx(1.198)
    assert timeline["pods_per_second"] == pytest.approx(100 / 1.198)
    assert timeline["latency_seconds"] == {"p50": 1.049, "p90": 1.089, "p99": 1.098, "max": 1.099}
    assert timeline["first_create"] == 10**9


def test_a_pod_that_is_bound_twice_is_found() -> None:
    ledger = Ledger(Clock())
    ledger.created("ns", "a", "uid")
    ledger.bound("ns", "a", "uid", "node-1")
    assert ledger.bound_more_than_once() == []
    ledger.bound("ns", "a", "uid", "node-2")
    assert ledger.bound_more_than_once() == [{"namespace": "ns", "name": "a", "uid": "uid", "binds": 2}]
