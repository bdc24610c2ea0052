"""Watches: how they begin, what they tell, how they end, over HTTP."""

from __future__ import annotations

import http.client
import time
from typing import Any

import pytest

from ksched.sandbox.server import SandboxOptions

from .conftest import Start
from .wire import MERGE, PODS, Client, binding, node, pod

WATCH_LIST: dict[str, object] = {
    "allowWatchBookmarks": "true",
    "resourceVersionMatch": "NotOlderThan",
    "sendInitialEvents": "true",
}
INITIAL_END = {"k8s.io/initial-events-end": "true"}


def told(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]


def version(client: Client, path: str = PODS) -> str:
    listed: str = client.get(path, limit=1)["metadata"]["resourceVersion"]
    return listed


def test_a_watch_from_a_version_tells_what_came_after_it(client: Client) -> None:
    client.post(PODS, pod("before"))
    since = version(client)
    client.post(PODS, pod("a"))
    client.patch(f"{PODS}/a", {"metadata": {"labels": {"x": "y"}}}, MERGE)
    stream = client.watch(PODS, resourceVersion=since)
    assert told(stream.take(2)) == [("ADDED", "a"), ("MODIFIED", "a")]
    client.delete(f"{PODS}/a")
    event = stream.next()
    assert told([event]) == [("DELETED", "a")]
    assert event["object"]["metadata"]["resourceVersion"] == version(client)
    stream.close()


def test_events_have_rising_versions_and_the_bytes_of_the_objects(client: Client) -> None:
    stream = client.watch(PODS, resourceVersion=version(client))
    created = [client.post(PODS, pod(name)) for name in ("a", "b", "c")]
    events = stream.take(3)
    assert [event["object"] for event in events] == created
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(versions)
    stream.close()


@pytest.mark.parametrize("parameters", [{}, {"resourceVersion": "0"}], ids=["no version", "version 0"])
def test_a_watch_from_any_version_begins_with_what_is_there(client: Client, parameters: dict[str, object]) -> None:
    client.post(PODS, pod("a"))
    stream = client.watch(PODS, **parameters)
    client.post(PODS, pod("b"))
    assert told(stream.take(2)) == [("ADDED", "a"), ("ADDED", "b")]
    stream.close()


@pytest.mark.parametrize("yes", ["1", "t", "True", "TRUE"])
def test_yes_may_be_written_in_any_language(client: Client, yes: str) -> None:
    client.post(PODS, pod("a"))
    stream = client.watch(PODS, **{**WATCH_LIST, "watch": yes, "sendInitialEvents": yes, "allowWatchBookmarks": yes})
    assert [event["type"] for event in stream.take(2)] == ["ADDED", "BOOKMARK"]
    assert client.get("/sandbox/stats")["requests"]["watch"] == 1
    stream.close()


def test_a_watch_list_ends_its_initial_events_with_an_annotated_bookmark(client: Client) -> None:
    for name in ("a", "b"):
        client.post(PODS, pod(name))
    present = version(client)
    stream = client.watch(PODS, **WATCH_LIST)
    events = stream.take(3)
    assert told(events[:2]) == [("ADDED", "a"), ("ADDED", "b")]
    assert events[2]["type"] == "BOOKMARK"
    assert events[2]["object"]["kind"] == "Pod"
    assert events[2]["object"]["metadata"]["annotations"] == INITIAL_END
    assert events[2]["object"]["metadata"]["resourceVersion"] == present
    client.post(PODS, pod("c"))
    assert told([stream.next()]) == [("ADDED", "c")]
    stream.close()


def test_a_watch_list_of_nothing_is_a_bookmark(client: Client) -> None:
    stream = client.watch("/apis/resource.k8s.io/v1/deviceclasses", **WATCH_LIST)
    assert stream.next()["object"]["metadata"]["annotations"] == INITIAL_END
    stream.close()


def test_a_watch_that_wants_no_initial_events_begins_at_the_present(client: Client) -> None:
    client.post(PODS, pod("a"))
    stream = client.watch(PODS, **{**WATCH_LIST, "sendInitialEvents": "false"})
    client.post(PODS, pod("b"))
    assert told([stream.next()]) == [("ADDED", "b")]
    stream.close()


@pytest.mark.parametrize(
    ("parameters", "code", "reason"),
    [
        pytest.param({"sendInitialEvents": "true"}, 422, "Invalid", id="initial events without a match"),
        pytest.param({"resourceVersionMatch": "NotOlderThan"}, 422, "Invalid", id="a match without initial events"),
        pytest.param({"resourceVersion": "1"}, 410, "Expired", id="a version that is forgotten"),
        pytest.param({"resourceVersion": 10**9}, 410, "Expired", id="a version of another life"),
        pytest.param({"resourceVersion": "x"}, 422, "Invalid", id="a version that is no number"),
        pytest.param({"fieldSelector": "spec.image=x"}, 400, "BadRequest", id="a field that is not selectable"),
    ],
)
def test_what_a_watch_refuses(client: Client, parameters: dict[str, object], code: int, reason: str) -> None:
    client.post("/sandbox/faults", {"expire_history": True})
    assert client.refused("GET", PODS, watch="true", **parameters)[:2] == (code, reason)


def test_bookmarks_come_regularly_to_those_who_ask(start: Start) -> None:
    client = start(SandboxOptions(bookmark_seconds=0.05, agent=False))
    asked = client.watch(PODS, resourceVersion=version(client), allowWatchBookmarks="true")
    silent = client.watch(PODS, resourceVersion=version(client))
    client.post("/api/v1/nodes", node("node-9"))
    deadline = time.monotonic() + 5
    while asked.next()["object"]["metadata"]["resourceVersion"] != version(client, "/api/v1/nodes"):
        assert time.monotonic() < deadline
    client.post(PODS, pod("a"))
    assert told([silent.next()]) == [("ADDED", "a")]
    for stream in (asked, silent):
        stream.close()


def test_a_watch_ends_after_its_timeout(client: Client) -> None:
    began = time.monotonic()
    stream = client.watch(PODS, resourceVersion=version(client), timeoutSeconds=1)
    assert list(stream) == []
    assert 0.9 <= time.monotonic() - began < 5
    stream.close()


def test_objects_enter_and_leave_a_selection(client: Client) -> None:
    since = version(client)
    running = "status.phase!=Succeeded,status.phase!=Failed"
    stream = client.watch(PODS, resourceVersion=since, fieldSelector=running)
    client.post(PODS, pod("a"))
    client.patch(f"{PODS}/a/status", {"status": {"phase": "Succeeded"}}, MERGE)
    client.patch(f"{PODS}/a", {"metadata": {"labels": {"seen": "not"}}}, MERGE)
    client.patch(f"{PODS}/a/status", {"status": {"phase": "Running"}}, MERGE)
    client.patch(f"{PODS}/a/status", {"status": {"phase": "Failed"}}, MERGE)
    client.delete(f"{PODS}/a")
    client.post(PODS, pod("b"))
    expected = [("ADDED", "a"), ("DELETED", "a"), ("ADDED", "a"), ("DELETED", "a"), ("ADDED", "b")]
    events = stream.take(5)
    assert told(events) == expected
    # What leaves is shown as it last matched, under the version at which it left.
    assert events[1]["object"]["status"]["phase"] == "Pending"
    assert int(events[1]["object"]["metadata"]["resourceVersion"]) == int(since) + 2
    stream.close()
    replayed = client.watch(PODS, resourceVersion=since, fieldSelector=running)
    assert told(replayed.take(5)) == expected
    replayed.close()


def test_a_selection_by_label_and_by_node(client: Client) -> None:
    since = version(client)
    by_label = client.watch(PODS, resourceVersion=since, labelSelector="app=web")
    by_node = client.watch("/api/v1/pods", resourceVersion=since, fieldSelector="spec.nodeName=node-1")
    client.post(PODS, pod("other"))
    client.post(PODS, pod("web", labels={"app": "web"}))
    client.post(f"{PODS}/web/binding", binding("web", "node-1"))
    assert told(by_label.take(2)) == [("ADDED", "web"), ("MODIFIED", "web")]
    assert told([by_node.next()]) == [("ADDED", "web")]
    for stream in (by_label, by_node):
        stream.close()


def test_a_watch_of_one_namespace_hears_of_no_other(client: Client) -> None:
    client.post("/api/v1/namespaces", {"metadata": {"name": "elsewhere"}})
    stream = client.watch("/api/v1/namespaces/elsewhere/pods", resourceVersion=version(client))
    client.post(PODS, pod("here"))
    client.post("/api/v1/namespaces/elsewhere/pods", pod("there"))
    assert told([stream.next()]) == [("ADDED", "there")]
    stream.close()


def test_a_write_that_changes_nothing_is_no_event(client: Client) -> None:
    created = client.post(PODS, pod("a", labels={"x": "y"}))
    stream = client.watch(PODS, resourceVersion=version(client))
    patched = client.patch(f"{PODS}/a", {"metadata": {"labels": {"x": "y"}}}, MERGE)
    assert patched == created
    client.post(PODS, pod("b"))
    assert told([stream.next()]) == [("ADDED", "b")]
    stream.close()


def test_a_dry_run_is_no_event(client: Client) -> None:
    client.post(PODS, pod("there"))
    stream = client.watch(PODS, resourceVersion=version(client))
    client.post(PODS, pod("not"), dryRun="All")
    client.patch(f"{PODS}/there", {"metadata": {"labels": {"x": "y"}}}, MERGE, dryRun="All")
    client.delete(f"{PODS}/there", dryRun="All")
    client.post(PODS, pod("real"))
    assert told([stream.next()]) == [("ADDED", "real")]
    assert client.request("GET", f"{PODS}/not").code == 404
    stream.close()


def test_table_rows_are_watched_as_tables(client: Client) -> None:
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
    stream = client.watch(PODS, accept=accept, resourceVersion=version(client))
    for name in ("a", "b"):
        client.post(PODS, pod(name))
    first, second = stream.take(2)
    assert first["object"]["kind"] == "Table"
    assert first["object"]["columnDefinitions"]
    assert second["object"]["columnDefinitions"] is None
    assert [row["object"]["metadata"]["name"] for row in second["object"]["rows"]] == ["b"]
    stream.close()


def test_a_watch_that_cannot_show_a_change_is_cut_and_the_others_hear_of_it(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    since = version(client)
    table = client.watch(PODS, accept="application/json;as=Table;v=v1;g=meta.k8s.io", resourceVersion=since)
    plain = client.watch(PODS, resourceVersion=since)

    def broken(*_: object, **__: object) -> dict[str, Any]:
        raise RuntimeError("no such column")

    monkeypatch.setattr("ksched.sandbox.forms.table", broken)
    client.post(PODS, pod("a"))
    assert told([plain.next()]) == [("ADDED", "a")]
    with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
        table.response.read()
    for stream in (table, plain):
        stream.close()
