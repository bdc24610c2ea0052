"""Misbehaviour on request."""

from __future__ import annotations

import http.client
import time
from typing import Any

import pytest

from .wire import NODES, PODS, Client, binding, pod


def order(client: Client, *rules: dict[str, Any], **more: Any) -> None:
    client.post("/sandbox/faults", {"rules": list(rules), **more})


@pytest.mark.parametrize(
    ("code", "reason", "retry_after"),
    [
        (429, "TooManyRequests", 2),
        (500, "InternalError", None),
        (503, "ServiceUnavailable", 1),
        (401, "Unauthorized", None),
    ],
)
def test_requests_are_refused_with_a_status(client: Client, code: int, reason: str, retry_after: int | None) -> None:
    order(client, {"verbs": ["get"], "status": code, "retry_after_seconds": retry_after, "count": 2})
    for _ in range(2):
        answer = client.request("GET", f"{NODES}/node-1")
        assert (answer.code, answer.body["reason"]) == (code, reason)
        assert answer.headers["Retry-After"] == (str(retry_after) if retry_after else None)
    assert client.get(f"{NODES}/node-1")
    assert client.get("/sandbox/faults")["rules"][0]["hits"] == 2


def test_rules_name_verbs_and_paths(client: Client) -> None:
    order(client, {"verbs": ["bind"], "path": "/pods/a/", "status": 500})
    for name in ("a", "b"):
        client.post(PODS, pod(name))
    assert client.refused("POST", f"{PODS}/a/binding", binding("a", "node-1"))[0] == 500
    client.post(f"{PODS}/b/binding", binding("b", "node-1"))
    assert "nodeName" not in client.get(f"{PODS}/a")["spec"]


def test_an_answer_is_late(client: Client) -> None:
    order(client, {"verbs": ["get"], "latency_seconds": 0.2})
    began = time.monotonic()
    client.get(f"{NODES}/node-1")
    assert time.monotonic() - began >= 0.2


@pytest.mark.parametrize(
    ("cut", "effect"),
    [
        pytest.param("cut_before_answer", False, id="cut before: the bind has no effect"),
        pytest.param("cut_after_answer", True, id="cut after: the bind took effect, and nobody said so"),
    ],
)
def test_connections_are_cut(client: Client, cut: str, effect: bool) -> None:
    client.post(PODS, pod("a"))
    order(client, {"verbs": ["bind"], cut: True, "count": 1})
    with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
        client.request("POST", f"{PODS}/a/binding", binding("a", "node-1"))
    client.close()
    assert ("nodeName" in client.get(f"{PODS}/a")["spec"]) is effect


def test_dice_are_seeded(client: Client) -> None:
    def outcomes() -> list[int]:
        order(client, {"verbs": ["get"], "status": 500, "probability": 0.5}, seed=7)
        return [client.request("GET", f"{NODES}/node-1").code for _ in range(20)]

    first = outcomes()
    assert set(first) == {200, 500}
    assert outcomes() == first


def test_faults_are_cleared(client: Client) -> None:
    order(client, {"status": 500}, duplicate_events=1.0)
    assert client.request("GET", NODES).code == 500
    cleared = client.delete("/sandbox/faults")
    assert cleared == {"rules": [], "duplicate_events": 0.0, "reorder_events": 0.0}
    assert client.get(NODES)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"rules": [{"statuss": 500}]}, id="an unknown key"),
        pytest.param({"rules": [{"status": "many"}]}, id="a wrong type"),
        pytest.param({"rules": [{"path": "("}]}, id="no regular expression"),
        pytest.param(b"{", id="no JSON"),
    ],
)
def test_orders_that_cannot_be_understood_are_refused(client: Client, body: Any) -> None:
    code, _, message = client.refused("POST", "/sandbox/faults", body)
    assert (code, message.startswith("/sandbox/faults: ")) == (400, True)


def test_watches_are_cut(client: Client) -> None:
    stream = client.watch(NODES, resourceVersion=0)
    stream.take(2)
    client.post("/sandbox/faults", {"cut_watches": True})
    with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
        assert stream.response.read() is None
    stream.close()


def test_watches_expire_with_an_error_event(client: Client) -> None:
    stream = client.watch(NODES, resourceVersion=0)
    stream.take(2)
    client.post("/sandbox/faults", {"expire_watches": True})
    event = stream.next()
    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")
    assert list(stream) == []
    stream.close()


def test_watches_fall_silent_while_new_ones_speak(client: Client) -> None:
    silent = client.watch(PODS, resourceVersion=0, timeoutSeconds=1)
    client.post("/sandbox/faults", {"silence_watches": True})
    client.post(PODS, pod("a"))
    speaking = client.watch(PODS, resourceVersion=0)
    assert speaking.next()["object"]["metadata"]["name"] == "a"
    silent.connection.sock.settimeout(1.5)
    with pytest.raises(TimeoutError):  # not even its end is said
        silent.response.readline()
    for stream in (silent, speaking):
        stream.close()


def test_events_come_twice(client: Client) -> None:
    client.post("/sandbox/faults", {"duplicate_events": 1.0})
    stream = client.watch(PODS, resourceVersion=0)
    client.post(PODS, pod("a"))
    assert stream.next() == stream.next()
    stream.close()


def test_neighbouring_events_are_swapped_but_never_bookmarks(client: Client) -> None:
    for name in ("a", "b", "c"):
        client.post(PODS, pod(name))
    client.post("/sandbox/faults", {"reorder_events": 1.0, "seed": 1})
    options: dict[str, object] = {"resourceVersionMatch": "NotOlderThan", "sendInitialEvents": "true"}
    stream = client.watch(PODS, allowWatchBookmarks="true", **options)
    events = stream.take(4)
    names = [event["object"]["metadata"].get("name") for event in events[:3]]
    assert sorted(names) == ["a", "b", "c"]
    assert names != ["a", "b", "c"]
    assert events[3]["type"] == "BOOKMARK"
    stream.close()
