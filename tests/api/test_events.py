"""Events are written as kube-scheduler writes them, repeat as series, and never hold anything up."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksched.api import events as events_module
from ksched.api.client import Client
from ksched.api.events import EventRecorder, ObjectReference, note_of
from ksched.api.kubeconfig import Address
from ksched.model.objects import ObjectMeta
from ksched.model.pod import Pod
from tests.api.rawserver import RawServer, Seen, answering, failure, on_loop, reply

# 2026-12-01T02:21:04.716203Z
NOW = 1796091664716203117

POD = Pod(metadata=ObjectMeta(name="low-a", namespace="default", uid="U", resource_version="218"))


class Clock:
    """Nanoseconds, turned by hand."""

    def __init__(self) -> None:
        self.ns = NOW

    def __call__(self) -> int:
        return self.ns


async def recording(server: RawServer, **options: Any) -> tuple[Client, EventRecorder]:
    source = Address(server.url)
    client = Client(await source.load(), source, rng=random.Random(1), sweep_seconds=0.01)
    options.setdefault("clock", Clock())
    return client, EventRecorder(client, hostname="HOST", rng=random.Random(2), **options)


async def finish(client: Client, recorder: EventRecorder) -> None:
    assert await recorder.flush(5) == 0
    recorder.close()
    await client.close()


def scheduled(recorder: EventRecorder, pod: Any = POD) -> None:
    note = "Successfully assigned default/low-a to node-000000"
    recorder.record(pod, "Normal", "Scheduled", "Binding", note, "default-scheduler")


def failed(recorder: EventRecorder, note: str = "0/1 nodes are available.") -> None:
    recorder.record(POD, "Warning", "FailedScheduling", "Scheduling", note, "default-scheduler")


@on_loop
async def test_an_event_field_by_field() -> None:
    async with answering(lambda seen: reply(201, {})) as server:
        client, recorder = await recording(server)
        scheduled(recorder)
        await finish(client, recorder)
    [seen] = server.seen
    assert (seen.method, seen.target) == ("POST", "/apis/events.k8s.io/v1/namespaces/default/events")
    assert seen.body == (
        b'{"kind":"Event","apiVersion":"events.k8s.io/v1","metadata":{"name":"low-a.18ecffda5b73186d","namespace":"default"},'
        b'"eventTime":"2026-12-01T02:21:04.716203Z","reportingController":"default-scheduler",'
        b'"reportingInstance":"default-scheduler-HOST","action":"Binding","reason":"Scheduled",'
        b'"regarding":{"kind":"Pod","namespace":"default","name":"low-a","uid":"U","apiVersion":"v1","resourceVersion":"218"},'
        b'"note":"Successfully assigned default/low-a to node-000000","type":"Normal",'
        b'"deprecatedSource":{},"deprecatedFirstTimestamp":null,"deprecatedLastTimestamp":null}'
    ).replace(b"18ecffda5b73186d", f"{NOW:x}".encode())


@on_loop
async def test_names_differ_even_when_the_clock_stands_still() -> None:
    async with answering(lambda seen: reply(201, {})) as server:
        client, recorder = await recording(server)
        for _ in range(3):
            scheduled(recorder)
        await finish(client, recorder)
    assert len({seen.json["metadata"]["name"] for seen in server.seen}) == 3


@on_loop
async def test_the_second_of_an_event_is_a_patch_and_later_ones_are_counted() -> None:
    clock = Clock()
    async with answering(lambda seen: reply(200, {})) as server:
        client, recorder = await recording(server, clock=clock)
        failed(recorder)
        assert await recorder.flush(5) == 0
        clock.ns += 1_000_000_000
        failed(recorder, "another text is no other event")
        assert await recorder.flush(5) == 0
        for _ in range(5):
            failed(recorder)
        assert await recorder.flush(5) == 0
        recorder._refresh()
        assert await recorder.flush(5) == 0
        recorder._refresh()
        await finish(client, recorder)
    assert [seen.method for seen in server.seen] == ["POST", "PATCH", "PATCH"]
    name = server.seen[0].json["metadata"]["name"]
    assert server.seen[1].target == f"/apis/events.k8s.io/v1/namespaces/default/events/{name}"
    assert server.seen[1].headers["content-type"] == "application/strategic-merge-patch+json"
    assert server.seen[1].body == b'{"series":{"count":2,"lastObservedTime":"2026-12-01T02:21:05.716203Z"}}'
    assert server.seen[2].json["series"]["count"] == 7
    assert (recorder.counters.recorded, recorder.counters.counted) == (7, 6)


@on_loop
async def test_a_quiet_series_ends_with_its_count() -> None:
    clock = Clock()
    async with answering(lambda seen: reply(200, {})) as server:
        client, recorder = await recording(server, clock=clock)
        for _ in range(4):
            failed(recorder)
        assert await recorder.flush(5) == 0
        clock.ns += 361 * 10**9
        recorder._end_quiet_series()
        assert await recorder.flush(5) == 0
        failed(recorder)
        await finish(client, recorder)
    assert [seen.method for seen in server.seen][-2:] == ["PATCH", "POST"]
    assert server.seen[-2].json["series"]["count"] == 4


@on_loop
async def test_a_pod_that_changed_is_another_subject() -> None:
    async with answering(lambda seen: reply(201, {})) as server:
        client, recorder = await recording(server)
        failed(recorder)
        changed = Pod(metadata=ObjectMeta(name="low-a", namespace="default", uid="U", resource_version="219"))
        recorder.record(changed, "Warning", "FailedScheduling", "Scheduling", "x", "default-scheduler")
        await finish(client, recorder)
    assert [seen.method for seen in server.seen] == ["POST", "POST"]


@on_loop
async def test_a_series_whose_event_has_expired_begins_anew() -> None:
    async with answering(lambda seen: reply(201, {}) if seen.method == "POST" else failure(404, "NotFound")) as server:
        client, recorder = await recording(server)
        failed(recorder)
        assert await recorder.flush(5) == 0
        failed(recorder)
        await finish(client, recorder)
    assert [seen.method for seen in server.seen] == ["POST", "PATCH", "POST"]
    assert server.seen[2].json["series"]["count"] == 2
    assert server.seen[2].json["metadata"] == server.seen[0].json["metadata"]


@on_loop
async def test_what_is_too_much_is_dropped_and_counted() -> None:
    gate = asyncio.Event()

    async def answer(seen: Seen) -> bytes:
        await gate.wait()
        return reply(201, {})

    async with answering(answer) as server:
        client, recorder = await recording(server, queue_size=3)
        for _ in range(10):
            scheduled(recorder)
        assert recorder.outstanding == 3
        assert await recorder.flush(0.01) == 3
        gate.set()
        await finish(client, recorder)
    assert (recorder.counters.recorded, recorder.counters.dropped, recorder.counters.sent) == (10, 7, 3)


@pytest.mark.parametrize(
    ("answers", "sent", "rejected"),
    [
        pytest.param([None, reply(201, {})], 1, 0, id="a cut connection is tried again"),
        pytest.param([None, failure(409, "AlreadyExists")], 1, 0, id="and had its effect already"),
        pytest.param([failure(409, "AlreadyExists")], 0, 1, id="a name that was taken is a rejection"),
        pytest.param([failure(403, "Forbidden")], 0, 1, id="a rejection is final"),
        pytest.param([failure(500, "InternalError")], 0, 1, id="so is a fault of the server"),
        pytest.param([failure(429, "TooManyRequests", Retry_After="0"), reply(201, {})], 1, 0, id="429 is waited for"),
    ],
)
@on_loop
async def test_what_is_tried_again(answers: list[bytes | None], sent: int, rejected: int) -> None:
    left = list(answers)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(events_module, "RETRY_SECONDS", 0.01)
        async with answering(lambda seen: left.pop(0)) as server:
            client, recorder = await recording(server)
            scheduled(recorder)
            await finish(client, recorder)
    assert (recorder.counters.sent, recorder.counters.rejected) == (sent, rejected)
    assert not left


@on_loop
async def test_trying_again_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events_module, "RETRY_SECONDS", 0.001)
    async with answering(lambda seen: None) as server:
        client, recorder = await recording(server)
        scheduled(recorder)
        await finish(client, recorder)
    assert len(server.seen) == 12
    assert recorder.counters.dropped == 1


@on_loop
async def test_a_server_without_the_newer_api() -> None:
    def answer(seen: Seen) -> bytes:
        return failure(404, "NotFound") if seen.method == "GET" else reply(201, {})

    async with answering(answer) as server:
        client, recorder = await recording(server)
        await recorder.discover()
        failed(recorder)
        assert await recorder.flush(5) == 0
        failed(recorder)
        await finish(client, recorder)
    assert server.seen[0].target == "/apis/events.k8s.io/v1"
    assert server.seen[1].target == "/api/v1/namespaces/default/events"
    body = server.seen[1].json
    assert body["involvedObject"]["resourceVersion"] == "218"
    assert (body["message"], body["count"], body["source"]) == (
        "0/1 nodes are available.",
        1,
        {"component": "default-scheduler"},
    )
    assert server.seen[2].json == {"count": 2, "lastTimestamp": "2026-12-01T02:21:04Z"}


@on_loop
async def test_an_event_of_leader_election() -> None:
    lease = ObjectReference("Lease", "kube-system", "kube-scheduler", "U", "coordination.k8s.io/v1", "222")
    async with answering(lambda seen: reply(201, {})) as server:
        client, recorder = await recording(server)
        recorder.record_core(lease, "Normal", "LeaderElection", "HOST_UUID became leader", "default-scheduler")
        await finish(client, recorder)
    [seen] = server.seen
    assert seen.target == "/api/v1/namespaces/kube-system/events"
    assert seen.body == (
        b'{"kind":"Event","apiVersion":"v1","metadata":{"name":"kube-scheduler.HEX","namespace":"kube-system"},'
        b'"involvedObject":{"kind":"Lease","namespace":"kube-system","name":"kube-scheduler","uid":"U",'
        b'"apiVersion":"coordination.k8s.io/v1","resourceVersion":"222"},'
        b'"reason":"LeaderElection","message":"HOST_UUID became leader","source":{"component":"default-scheduler"},'
        b'"firstTimestamp":"2026-12-01T02:21:04Z","lastTimestamp":"2026-12-01T02:21:04Z","count":1,"type":"Normal",'
        b'"eventTime":null,"reportingComponent":"default-scheduler","reportingInstance":""}'
    ).replace(b"HEX", f"{NOW:x}".encode())


@on_loop
async def test_names_that_would_not_be_valid_and_objects_without_a_namespace() -> None:
    async with answering(lambda seen: reply(201, {})) as server:
        client, recorder = await recording(server)
        recorder.record(
            ObjectReference("Node", "", "n" * 250, "U", "v1"), "Normal", "R", "A", "note", "s", related=None
        )
        related = ObjectReference("Node", "", "node-1", "N", "v1")
        recorder.record(ObjectReference("Node", "", "Odd_Name", "U", "v1"), "Normal", "R", "A", "note", "s", related)
        await finish(client, recorder)
    first, second = sorted((seen.json for seen in server.seen), key=lambda event: "related" in event)
    for event in (first, second):
        assert len(event["metadata"]["name"]) == 36
        assert event["metadata"]["namespace"] == "default"
    assert second["related"] == {"kind": "Node", "name": "node-1", "uid": "N", "apiVersion": "v1"}
    assert list(second)[list(second).index("regarding") + 1] == "related"


@pytest.mark.parametrize(
    ("text", "note"),
    [
        pytest.param("short", "short", id="a short text stays"),
        pytest.param("x" * 1024, "x" * 1024, id="1024 bytes fit"),
        pytest.param("x" * 1025, "x" * 1020 + " ...", id="one more is cut"),
        pytest.param("x" * 1019 + "\u20ac" * 2, "x" * 1019 + " ...", id="never through a character"),
        pytest.param("100% of nodes", "100% of nodes", id="a percent sign is only that"),
    ],
)
def test_notes(text: str, note: str) -> None:
    assert note_of(text) == note


@given(st.text(st.characters(exclude_categories=()), max_size=2000))
def test_any_note_fits_and_can_be_sent(text: str) -> None:
    note = note_of(text)
    assert len(orjson.dumps(note)) > 1
    assert len(note.encode()) <= 1024
