"""What a reflector tells its handler is consistent, whatever the server does."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ksched.api import watch as watch_module
from ksched.api.client import Client
from ksched.api.decode import NAMESPACE, POD
from ksched.api.kubeconfig import Address
from ksched.api.watch import Event, Reflector
from ksched.model.pod import Pod
from tests.api.rawserver import CHUNKED, Conversation, Seen, chunk, event, failure, on_loop, reply, serving, status


def pod(name: str, version: int | str, uid: str = "", **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "n", "uid": uid or f"uid-{name}", "resourceVersion": str(version)}
    return {"metadata": metadata, "spec": spec}


def bookmark(version: int, *, end: bool = False) -> bytes:
    annotations = {"annotations": {"k8s.io/initial-events-end": "true"}} if end else {}
    return event("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": str(version), **annotations}})


def page(version: int, *pods: dict[str, Any], more: str = "") -> bytes:
    return reply(200, {"metadata": {"resourceVersion": str(version), "continue": more}, "items": list(pods)})


EXPIRED = event("ERROR", status(410, "Expired", "too old resource version"))
CUT = "cut"
END = chunk(b"")
SILENT = "silent"


class Told:
    """A handler that remembers what it was told, and lets a test wait for it."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, str]] = []
        self.objects: list[Pod | None] = []
        self.batches: list[int] = []
        self.synced_after: list[int] = []
        self.news = asyncio.Event()

    def apply(self, events: list[Event[Pod]]) -> None:
        self.batches.append(len(events))
        for told in events:
            version = told.object.metadata.resource_version if told.object is not None else "-"
            self.events.append((told.type, told.key, version))
            self.objects.append(told.object)
        self.news.set()

    def synced(self, kind: str) -> None:
        self.synced_after.append(len(self.events))
        self.news.set()


Answer = list[bytes | str]


async def follow(
    script: list[Answer | Callable[[Seen], Answer]], until: Callable[[Told, list[Seen]], Any], **options: Any
) -> tuple[Told, list[Seen], Reflector[Pod]]:
    """Run a reflector against a server that answers one request after another as scripted, until something is so."""
    seen: list[Seen] = []
    told = Told()
    left = list(script)

    async def talk(conversation: Conversation) -> None:
        while (request := await conversation.request()) is not None:
            seen.append(request)
            told.news.set()
            answer = left.pop(0) if left else [CHUNKED, SILENT]
            for data in answer(request) if callable(answer) else answer:
                if data == CUT:
                    conversation.cut()
                    return
                if data == SILENT:
                    await asyncio.sleep(30)
                assert isinstance(data, bytes)
                await conversation.send(data)
                await asyncio.sleep(0.002)

    async with serving(talk) as server:
        source = Address(server.url)
        client = Client(await source.load(), source, rng=random.Random(1), sweep_seconds=0.01)
        reflector = Reflector(client, "/api/v1/pods", POD, told, rng=random.Random(2), **options)
        task = asyncio.ensure_future(reflector.run())
        async with asyncio.timeout(10):
            while not until(told, seen):
                told.news.clear()
                waiting = asyncio.ensure_future(told.news.wait())
                await asyncio.wait([waiting, task], return_when=asyncio.FIRST_COMPLETED)
                if task.done():
                    waiting.cancel()
                    task.result()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await client.close()
    return told, seen, reflector


def requests(number: int) -> Callable[[Told, list[Seen]], bool]:
    return lambda told, seen: len(seen) >= number


def events(number: int) -> Callable[[Told, list[Seen]], bool]:
    return lambda told, seen: len(told.events) >= number


@on_loop
async def test_a_watch_list_then_changes() -> None:
    told, seen, reflector = await follow(
        [[
            CHUNKED,
            event("ADDED", pod("a", 5)) + event("ADDED", pod("b", 3)) + bookmark(7, end=True),
            event("MODIFIED", pod("a", 8)) + event("DELETED", pod("b", 9)) + event("ADDED", pod("c", 10)),
        ]],
        events(5),
        field_selector="status.phase!=Succeeded,status.phase!=Failed",
    )  # fmt: skip
    assert told.events == [
        ("ADDED", "n/a", "5"),
        ("ADDED", "n/b", "3"),
        ("MODIFIED", "n/a", "8"),
        ("DELETED", "n/b", "9"),
        ("ADDED", "n/c", "10"),
    ]
    assert told.batches == [2, 3]
    assert told.synced_after == [2]
    assert reflector.resource_version == "10"
    seconds = seen[0].query["timeoutSeconds"]
    assert 300 <= int(seconds) <= 600
    assert seen[0].target == (
        "/api/v1/pods?allowWatchBookmarks=true&fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed"
        f"&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&timeoutSeconds={seconds}&watch=true"
    )


@pytest.mark.parametrize("refusal", [failure(400, "BadRequest"), failure(422, "Invalid")], ids=["400", "422"])
@on_loop
async def test_a_server_without_watch_lists_is_listed_in_pages(refusal: bytes) -> None:
    told, seen, _ = await follow(
        [
            [refusal],
            [page(20, pod("a", 5), more="t1")],
            [page(20, pod("b", 6))],
            [CHUNKED, event("MODIFIED", pod("b", 21)), END],
            [CHUNKED, event("MODIFIED", pod("b", 22)), SILENT],
        ],
        events(4),
        page_size=1,
    )
    assert [told[1:] for told in told.events] == [("n/a", "5"), ("n/b", "6"), ("n/b", "21"), ("n/b", "22")]
    assert [request.target for request in seen[1:3]] == ["/api/v1/pods?limit=1", "/api/v1/pods?continue=t1&limit=1"]
    assert [request.query["resourceVersion"] for request in seen[3:]] == ["20", "21"]
    assert set(seen[3].query) == {"allowWatchBookmarks", "resourceVersion", "timeoutSeconds", "watch"}
    assert told.synced_after == [2]


@on_loop
async def test_a_watch_list_that_ends_without_a_mark_is_given_up() -> None:
    told, seen, _ = await follow(
        [[CHUNKED, event("ADDED", pod("a", 5)), END], [page(9, pod("a", 5), pod("b", 6))]], requests(3)
    )
    assert [told[1] for told in told.events] == ["n/a", "n/b"]
    assert "limit" in seen[1].query


@on_loop
async def test_a_list_token_that_expires_means_starting_over() -> None:
    expired = [failure(410, "Expired")]
    told, seen, _ = await follow(
        [
            [page(20, pod("a", 5), pod("gone", 6), more="t1")],
            expired,
            [page(30, pod("a", 5), more="t2")],
            expired,
            [page(40, pod("a", 5), pod("b", 35))],
        ],
        requests(6),
        use_watch_list=False,
    )
    assert told.events == [
        ("ADDED", "n/a", "5"),
        ("ADDED", "n/gone", "6"),
        ("ADDED", "n/b", "35"),
        ("DELETED", "n/gone", "-"),
    ]
    assert [request.query.get("limit") for request in seen[:5]] == ["500", "500", "500", "500", None]
    assert seen[5].query["resourceVersion"] == "40"


def synced(told: Told, seen: list[Seen]) -> bool:
    return bool(told.synced_after)


LISTED: Answer = [CHUNKED, event("ADDED", pod("a", 5)) + event("ADDED", pod("b", 6)) + bookmark(10, end=True)]


@pytest.mark.parametrize(
    "end",
    [
        pytest.param([EXPIRED], id="as an event"),
        pytest.param([END], id="as an answer"),
        pytest.param([event("ADDED", pod("x", 11))[:-9] + b"\r\n\r\n"], id="after a broken chunk"),
    ],
)
@on_loop
async def test_history_that_is_gone_is_listed_again(end: Answer) -> None:
    script: list[Any] = [[*LISTED, *end]]
    if end != [EXPIRED]:
        script.append([failure(410, "Expired")])
    script.append(
        [CHUNKED, event("ADDED", pod("a", 30)) + event("ADDED", pod("c", 31)) + bookmark(40, end=True), SILENT]
    )
    told, seen, reflector = await follow(script, events(5))
    assert told.events[2:] == [("MODIFIED", "n/a", "30"), ("ADDED", "n/c", "31"), ("DELETED", "n/b", "-")]
    assert told.synced_after == [2]
    assert reflector.counters.expired == 1
    assert "sendInitialEvents" in seen[-1].query


@on_loop
async def test_a_name_that_passes_to_another_object_between_two_lists() -> None:
    told, _, _ = await follow(
        [
            [*LISTED, EXPIRED],
            [CHUNKED, event("ADDED", pod("a", 30, uid="other")) + event("ADDED", pod("b", 6)) + bookmark(40, end=True)],
        ],
        events(4),
    )
    assert told.events[2:] == [("DELETED", "n/a", "-"), ("ADDED", "n/a", "30")]


@on_loop
async def test_a_server_that_was_restored_to_an_older_state_is_believed() -> None:
    told, _, _ = await follow(
        [
            [*LISTED, EXPIRED],
            [CHUNKED, event("ADDED", pod("a", 2)) + bookmark(3, end=True), event("MODIFIED", pod("a", 4))],
        ],
        events(5),
    )
    assert told.events[2:] == [("MODIFIED", "n/a", "2"), ("DELETED", "n/b", "-"), ("MODIFIED", "n/a", "4")]


@on_loop
async def test_a_server_that_goes_back_is_listed_again() -> None:
    _, seen, _ = await follow([[*LISTED, bookmark(4)]], requests(2))
    assert "sendInitialEvents" in seen[1].query


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param("MODIFIED 11, MODIFIED 11", "MODIFIED 11", id="a repeated change"),
        pytest.param("MODIFIED 12, MODIFIED 11", "MODIFIED 12", id="a change that comes late"),
        pytest.param("ADDED 5", "", id="an addition of what is known"),
        pytest.param("DELETED 11, DELETED 11", "DELETED 11", id="a repeated deletion"),
        pytest.param("DELETED 12, MODIFIED 11", "DELETED 12", id="a change after the deletion"),
        pytest.param("DELETED 11, ADDED 12 other", "DELETED 11, ADDED 12", id="made again"),
        pytest.param("ADDED 12 other, DELETED 11", "DELETED -, ADDED 12", id="made again, and the deletion comes late"),
        pytest.param("ADDED 12 other", "DELETED -, ADDED 12", id="made again, and the deletion does not come"),
        pytest.param("DELETED 12 other", "DELETED -", id="another one is gone already"),
        pytest.param("DELETED 11, ADDED 12", "DELETED 11, ADDED 12", id="selected again"),
        pytest.param("MODIFIED x9", "MODIFIED x9", id="a version that is no number is not judged"),
    ],
)
@on_loop
async def test_repeats_and_stale_events(changes: str, expected: str) -> None:
    data = b""
    for change in changes.split(", "):
        type, version, *uid = change.split()
        data += event(type, pod("a", version, *uid))
    data += event("DELETED", pod("unknown", 80)) + event("ADDED", pod("last", 90))
    told, _, _ = await follow(
        [[*LISTED, data]], lambda told, seen: bool(told.events) and told.events[-1][1] == "n/last"
    )
    assert ", ".join(f"{type} {version}" for type, _, version in told.events[2:-1]) == expected


@on_loop
async def test_a_cut_watch_goes_on_from_the_last_version() -> None:
    told, seen, reflector = await follow(
        [
            [*LISTED, event("MODIFIED", pod("a", 15)), CUT],
            [CHUNKED, bookmark(17), CUT],
            [CHUNKED, event("MODIFIED", pod("a", 18))],
        ],
        events(4),
    )
    assert [request.query.get("resourceVersion") for request in seen] == [None, "15", "17"]
    assert told.events[-1] == ("MODIFIED", "n/a", "18")
    assert (reflector.counters.cut, reflector.counters.lists) == (2, 1)


@on_loop
async def test_half_an_event_before_the_cut_comes_again_whole() -> None:
    whole = event("MODIFIED", pod("a", 15))
    told, _, _ = await follow([[*LISTED, whole[: len(whole) // 2], CUT], [CHUNKED, whole]], events(3))
    assert told.events[2:] == [("MODIFIED", "n/a", "15")]


@on_loop
async def test_silence_is_a_dead_connection() -> None:
    told, seen, reflector = await follow(
        [[*LISTED, SILENT], [CHUNKED, event("MODIFIED", pod("a", 15))]], events(3), silence_seconds=0.05
    )
    assert seen[1].query["resourceVersion"] == "10"
    assert told.events[-1] == ("MODIFIED", "n/a", "15")
    assert reflector.counters.cut == 1


@on_loop
async def test_watches_that_bring_nothing_end_in_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_module, "PATIENCE", 3)
    _, seen, _ = await follow([[*LISTED, END], [failure(500, "X")], [failure(500, "X")]], requests(4))
    assert [("sendInitialEvents" in request.query) for request in seen] == [True, False, False, True]


@pytest.mark.parametrize("code", [401, 403, 404, 429, 500, 503])
@on_loop
async def test_a_list_that_is_refused_is_tried_again(code: int) -> None:
    told, _, _ = await follow([[failure(code, "X")], LISTED], synced)
    assert told.synced_after == [2]


@on_loop
async def test_a_malformed_object_is_skipped_and_named_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.clear()
    bad = event("ADDED", pod("bad", 7, priority="high"))
    worse = event("MODIFIED", pod("a", 12, priority="high"))
    told, _, reflector = await follow(
        [
            [CHUNKED, event("ADDED", pod("a", 5)) + bad + bookmark(10, end=True), worse + worse, EXPIRED],
            [CHUNKED, bad + worse + bookmark(20, end=True), event("MODIFIED", pod("a", 21))],
        ],
        events(2),
    )
    assert told.events == [("ADDED", "n/a", "5"), ("MODIFIED", "n/a", "21")]
    assert reflector.counters.malformed == 5
    complaints = [record.message for record in caplog.records if "priority" in record.message]
    assert complaints == [
        "Pod n/bad: spec.priority: expected int, got str (resourceVersion 7); it is skipped",
        "Pod n/a: spec.priority: expected int, got str (resourceVersion 12); the last good version is kept",
    ]


@pytest.mark.parametrize(
    ("type", "bad"),
    [
        pytest.param("DELETED", pod("a", 12, priority="x"), id="it is deleted"),
        pytest.param("MODIFIED", pod("a", 12, uid="other", priority="x"), id="another one has taken its name"),
    ],
)
@on_loop
async def test_a_malformed_object_does_not_keep_what_is_gone(type: str, bad: dict[str, Any]) -> None:
    told, _, _ = await follow([[*LISTED, event(type, bad)]], events(3))
    assert told.events[2:] == [("DELETED", "n/a", "-")]


@on_loop
async def test_malformed_objects_in_a_page() -> None:
    told, _, reflector = await follow(
        [[page(9, pod("a", 5), pod("bad", 6, containers=1))]], requests(2), use_watch_list=False
    )
    assert told.events == [("ADDED", "n/a", "5")]
    assert reflector.counters.malformed == 1


@on_loop
async def test_a_line_that_is_no_event_means_listing_again(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    told, seen, _ = await follow([[*LISTED, chunk(b"oops\n")], LISTED], requests(2))
    assert "sendInitialEvents" in seen[1].query
    assert len(told.events) == 2
    assert any("a watch line is not an event" in record.message for record in caplog.records)


@on_loop
async def test_lists_are_announced() -> None:
    calls: list[str] = []
    await follow(
        [[CHUNKED, CUT], [*LISTED, EXPIRED], [CHUNKED, event("ADDED", pod("a", 8)) + bookmark(20, end=True)]],
        lambda told, seen: len(calls) >= 6,
        on_list_start=lambda: calls.append("start"),
        on_list_end=lambda: calls.append("end"),
    )
    assert calls == ["start", "end"] * 3


@on_loop
async def test_a_fault_of_the_handler_is_not_swallowed() -> None:
    class Faulty(Told):
        def apply(self, events: list[Event[Pod]]) -> None:
            raise ZeroDivisionError

    async def talk(conversation: Conversation) -> None:
        await conversation.request()
        for data in LISTED:
            assert isinstance(data, bytes)
            await conversation.send(data)

    async with serving(talk) as server:
        source = Address(server.url)
        client = Client(await source.load(), source)
        reflector = Reflector(client, "/api/v1/pods", POD, Faulty(), rng=random.Random(2))
        with pytest.raises(ZeroDivisionError):
            await reflector.run()
        await client.close()


class Collected:
    """A handler for tests without a loop."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, str]] = []

    def apply(self, events: list[Event[Any]]) -> None:
        self.events += [(told.type, told.key, told.uid) for told in events]

    def synced(self, kind: str) -> None:
        self.events.append(("SYNCED", kind, ""))


def reflector_without_client(handler: Collected) -> Reflector[Any]:
    made = Reflector(None, "/", NAMESPACE, handler, rng=random.Random(1))  # type: ignore[arg-type]
    made._start_list()
    return made


NAMESPACES = [
    *(
        ("ADDED", {"metadata": {"name": f"n{number}", "uid": f"u{number}", "resourceVersion": str(number)}})
        for number in range(1, 6)
    ),
    ("BOOKMARK", {"metadata": {"resourceVersion": "9", "annotations": {"k8s.io/initial-events-end": "true"}}}),
    ("MODIFIED", {"metadata": {"name": "n2", "uid": "u2", "resourceVersion": "10", "labels": {"\u00fc": "\u20ac"}}}),
    ("DELETED", {"metadata": {"name": "n3", "uid": "u3", "resourceVersion": "11"}}),
]
LINES = b"".join(
    json.dumps({"type": type, "object": object}, ensure_ascii=False).encode() + b"\n" for type, object in NAMESPACES
)


@settings(max_examples=200)
@given(cuts=st.sets(st.integers(1, len(LINES) - 1), max_size=20))
def test_any_cut_of_the_lines_tells_the_same(cuts: set[int]) -> None:
    whole, cut = Collected(), Collected()
    reflector_without_client(whole)._read(LINES)
    pieces = reflector_without_client(cut)
    edges = [0, *sorted(cuts), len(LINES)]
    for start, end in itertools.pairwise(edges):
        pieces._read(LINES[start:end])
    assert cut.events == whole.events
    assert len(whole.events) == len(NAMESPACES)
    assert pieces.resource_version == "11"


changes = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.sampled_from(["ADDED", "MODIFIED", "DELETED"]),
        st.integers(10, 30),
        st.sampled_from("xy"),
    ),
    max_size=25,
)


@settings(max_examples=300)
@given(changes)
def test_whatever_comes_what_is_told_is_consistent(events: list[tuple[str, str, int, str]]) -> None:
    """Each name goes ADDED, MODIFIED..., DELETED, always with one uid, and its versions rise."""
    told: list[Event[Any]] = []

    class Keep(Collected):
        def apply(self, events: list[Event[Any]]) -> None:
            told.extend(events)

    reflector = reflector_without_client(Keep())
    reflector._list_complete("9")
    for name, type, version, uid in events:
        line = {"type": type, "object": {"metadata": {"name": name, "uid": uid, "resourceVersion": str(version)}}}
        reflector._read(json.dumps(line).encode() + b"\n")
    alive: dict[str, tuple[str, int]] = {}
    for change in told:
        if change.type == "ADDED":
            assert change.key not in alive
        else:
            assert alive[change.key][0] == change.uid
        version = int(change.object.metadata.resource_version) if change.object is not None else 0
        if change.type == "MODIFIED":
            assert version > alive[change.key][1]
        if change.type == "DELETED":
            del alive[change.key]
        else:
            alive[change.key] = (change.uid, version)
    assert alive == reflector._known
