"""The pool: who goes first, what is sent again, and what a broken connection is called."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ksched.api import connection as connection_module
from ksched.api.http1 import Response
from ksched.api.transport import EVENTS_MAY_WAIT, Priority, Request, Transport
from ksched.errors import ConnectionFailed
from tests.api.certificates import Authority
from tests.api.rawserver import CHUNKED, Conversation, Seen, answering, chunk, on_loop, reply, serving

Outcome = Response | ConnectionFailed


class Asked(Request):
    """A request that remembers how it ended."""

    __slots__ = ("done",)

    def __init__(self, method: str = "GET", target: str = "/", body: bytes | None = None, **options: Any) -> None:
        super().__init__(method, target, body, **options)
        self.done: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

    def finished(self, outcome: Outcome) -> None:
        self.done.set_result(outcome)


def pool(port: int, **options: Any) -> Transport:
    options.setdefault("sweep_seconds", 0.01)
    return Transport("127.0.0.1", port, headers=f"Host: 127.0.0.1:{port}\r\n", **options)


async def ask(transport: Transport, *args: Any, **options: Any) -> Outcome:
    request = Asked(*args, **options)
    transport.send(request)
    return await request.done


@on_loop
async def test_requests_share_one_kept_alive_connection() -> None:
    async with answering(lambda seen: reply(200, seen.target.encode())) as server:
        transport = pool(server.port)
        answers = [await ask(transport, target=f"/{number}") for number in range(3)]
        await transport.close()
    assert [answer.body for answer in answers if isinstance(answer, Response)] == [b"/0", b"/1", b"/2"]
    assert len(server.conversations) == 1


@on_loop
async def test_a_body_goes_out_with_its_length_and_type() -> None:
    async with answering(lambda seen: reply(201, seen.body)) as server:
        transport = pool(server.port)
        await ask(transport, "PATCH", "/x", b'{"a":1}', content_type="application/merge-patch+json")
        await transport.close()
    assert server.seen[0].body == b'{"a":1}'
    assert server.seen[0].headers["content-type"] == "application/merge-patch+json"
    assert "accept-encoding" not in server.seen[0].headers


@on_loop
async def test_no_more_connections_than_the_limit() -> None:
    async with answering(lambda seen: reply()) as server:
        transport = pool(server.port, limit=3)
        answers = await asyncio.gather(*(ask(transport, target=f"/{number}") for number in range(50)))
        open_connections = transport.open_connections
        await transport.close()
    assert all(isinstance(answer, Response) for answer in answers)
    assert len(server.conversations) == open_connections == 3


def holding(gate: asyncio.Event) -> Callable[[Seen], Any]:
    """Answers that wait for `gate`, where the target says so."""

    async def answer(seen: Seen) -> bytes:
        if seen.target == "/hold":
            await gate.wait()
        return reply()

    return answer


@on_loop
async def test_the_more_urgent_goes_first_when_all_connections_are_busy() -> None:
    gate = asyncio.Event()
    async with answering(holding(gate)) as server:
        transport = pool(server.port, limit=1, reserved=0)
        waiting = [Asked(target="/hold")]
        waiting += [
            Asked(target=f"/{priority.name}-{number}", priority=priority)
            for number in range(2)
            for priority in reversed(Priority)
        ]
        transport.send(waiting[0])
        await server.until(lambda: server.seen)
        for request in waiting[1:]:
            transport.send(request)
        assert transport.queued == len(waiting) - 1
        gate.set()
        await asyncio.gather(*(request.done for request in waiting))
        await transport.close()
    order = [f"/{priority.name}-{number}" for priority in Priority for number in range(2)]
    assert [seen.target for seen in server.seen] == ["/hold", *order]


@on_loop
async def test_events_that_pile_up_get_every_second_connection() -> None:
    gate = asyncio.Event()
    async with answering(holding(gate)) as server:
        transport = pool(server.port, limit=1, reserved=0)
        waiting = [Asked(target="/hold")]
        waiting += [Asked(target=f"/event-{i}", priority=Priority.EVENT) for i in range(EVENTS_MAY_WAIT + 3)]
        waiting += [Asked(target=f"/bind-{i}", priority=Priority.BIND) for i in range(5)]
        transport.send(waiting[0])
        await server.until(lambda: server.seen)
        for request in waiting[1:]:
            transport.send(request)
        gate.set()
        await asyncio.gather(*(request.done for request in waiting))
        await transport.close()
    order = [seen.target for seen in server.seen][1:10]
    assert order == [
        "/event-0",
        "/bind-0",
        "/event-1",
        "/bind-1",
        "/event-2",
        "/bind-2",
        "/bind-3",
        "/bind-4",
        "/event-3",
    ]


@on_loop
async def test_the_lease_has_a_connection_of_its_own() -> None:
    gate = asyncio.Event()
    async with answering(holding(gate)) as server:
        transport = pool(server.port, limit=1, reserved=1)
        held, bind = Asked(target="/hold"), Asked(target="/bind", priority=Priority.BIND)
        transport.send(held)
        await server.until(lambda: server.seen)
        transport.send(bind)
        for _ in range(3):
            assert isinstance(await ask(transport, target="/lease", priority=Priority.LEASE), Response)
        assert not bind.done.done()
        gate.set()
        await asyncio.gather(held.done, bind.done)
        await transport.close()
    assert len(server.conversations) == 2


def cutting(number_of_cuts: int, *, after: bytes = b"") -> Callable[[Conversation], Any]:
    """Answers once per connection; the second request on the first connections is cut after `after`."""

    async def talk(conversation: Conversation) -> None:
        requests = 0
        while await conversation.request() is not None:
            requests += 1
            if requests == 2 and conversation.number < number_of_cuts:
                await conversation.send(after)
                conversation.cut()
                return
            await conversation.send(reply(200, b"%d" % conversation.number))

    return talk


@pytest.mark.parametrize(
    ("method", "idempotent", "after", "answered"),
    [
        pytest.param("GET", True, b"", True, id="an idempotent request is sent again"),
        pytest.param("POST", False, b"", False, id="another is not: it may have had its effect"),
        pytest.param("GET", True, b"HTTP/1.1 200", False, id="nor is one whose answer had begun"),
    ],
)
@on_loop
async def test_a_kept_alive_connection_that_breaks(method: str, idempotent: bool, after: bytes, answered: bool) -> None:
    async with serving(cutting(1, after=after)) as server:
        transport = pool(server.port)
        await ask(transport)
        outcome = await ask(transport, method, "/", idempotent=idempotent)
        await transport.close()
    assert isinstance(outcome, Response) is answered
    if isinstance(outcome, ConnectionFailed):
        assert outcome.sent


@on_loop
async def test_sending_again_has_an_end() -> None:
    async def talk(conversation: Conversation) -> None:
        await conversation.request()
        conversation.cut()

    async with serving(talk) as server:
        transport = pool(server.port)
        outcome = await ask(transport, idempotent=True)
        await transport.close()
    assert isinstance(outcome, ConnectionFailed)
    assert len(server.conversations) == 3


@on_loop
async def test_a_server_that_closes_idle_connections_costs_nothing() -> None:
    async def talk(conversation: Conversation) -> None:
        await conversation.request()
        await conversation.send(reply())

    async with serving(talk) as server:
        transport = pool(server.port)
        for _ in range(5):
            assert isinstance(await ask(transport, "POST", "/", b"{}"), Response)
            await asyncio.sleep(0.01)
        await transport.close()
    assert len(server.conversations) == 5


@on_loop
async def test_connections_that_nobody_needs_are_closed() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection_module, "IDLE_SECONDS", 0.05)
        async with answering(lambda seen: reply()) as server:
            transport = pool(server.port)
            await asyncio.gather(*(ask(transport) for _ in range(4)))
            async with asyncio.timeout(5):
                while transport.open_connections:  # noqa: ASYNC110 - there is no event for it
                    await asyncio.sleep(0.01)
            assert isinstance(await ask(transport), Response)
            await transport.close()


@on_loop
async def test_an_answer_without_a_length_ends_with_the_connection() -> None:
    async def talk(conversation: Conversation) -> None:
        await conversation.request()
        await conversation.send(b"HTTP/1.1 200 OK\r\n\r\nall of it")

    async with serving(talk) as server:
        transport = pool(server.port)
        outcome = await ask(transport)
        await transport.close()
    assert isinstance(outcome, Response)
    assert outcome.body == b"all of it"


@pytest.mark.parametrize("method", ["GET", "POST"])
@on_loop
async def test_no_answer_in_time(method: str) -> None:
    gate = asyncio.Event()
    async with answering(holding(gate)) as server:
        transport = pool(server.port)
        outcome = await ask(transport, method, "/hold", timeout_seconds=0.05)
        after = await ask(transport)
        await transport.close()
    assert isinstance(outcome, ConnectionFailed)
    assert "no answer within 0.05 s" in str(outcome)
    assert outcome.sent
    assert isinstance(after, Response)


@on_loop
async def test_waiting_for_a_connection_has_an_end() -> None:
    gate = asyncio.Event()
    async with answering(holding(gate)) as server:
        transport = pool(server.port, limit=1)
        held = Asked(target="/hold")
        transport.send(held)
        outcome = await ask(transport, timeout_seconds=0.05)
        gate.set()
        await held.done
        await transport.close()
    assert isinstance(outcome, ConnectionFailed)
    assert "no connection was free within 0.05 s" in str(outcome)
    assert not outcome.sent


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@on_loop
async def test_a_refused_connection_is_told_to_everyone_who_waits() -> None:
    transport = pool(free_port())
    outcomes = await asyncio.gather(*(ask(transport) for _ in range(20)))
    await transport.close()
    for outcome in outcomes:
        assert isinstance(outcome, ConnectionFailed)
        assert str(outcome) == f"http://127.0.0.1:{transport.port}: connection refused: nothing listens there"
        assert not outcome.sent


@on_loop
async def test_a_request_sent_from_a_failure_is_tried_too() -> None:
    transport = pool(free_port())
    second = Asked()

    class First(Request):
        def finished(self, outcome: Outcome) -> None:
            transport.send(second)

    transport.send(First("GET", "/"))
    assert isinstance(await second.done, ConnectionFailed)
    await transport.close()


@on_loop
async def test_bytes_that_nobody_asked_for_end_the_connection() -> None:
    async def talk(conversation: Conversation) -> None:
        await conversation.request()
        await conversation.send(reply(200, b"asked"))
        await asyncio.sleep(0.01)
        await conversation.send(reply(200, b"stale"))
        await conversation.request()

    async with serving(talk) as server:
        transport = pool(server.port)
        await ask(transport)
        await asyncio.sleep(0.03)
        outcome = await ask(transport)
        await transport.close()
    assert isinstance(outcome, Response)
    assert outcome.body == b"asked"
    assert len(server.conversations) == 2


@on_loop
async def test_a_fault_in_a_callback_does_not_harm_the_connection() -> None:
    faults: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: faults.append(context))

    class Faulty(Request):
        def finished(self, outcome: Outcome) -> None:
            raise ZeroDivisionError

    async with answering(lambda seen: reply()) as server:
        transport = pool(server.port)
        transport.send(Faulty("GET", "/"))
        await ask(transport)
        await ask(transport)
        await transport.close()
    assert [type(fault["exception"]) for fault in faults] == [ZeroDivisionError]


@on_loop
async def test_closing_fails_what_is_not_answered() -> None:
    gate = asyncio.Event()
    async with answering(holding(gate)) as server:
        transport = pool(server.port, limit=1)
        requests = [Asked(target="/hold"), Asked(target="/queued")]
        for request in requests:
            transport.send(request)
        await server.until(lambda: server.seen)
        await transport.close()
        outcomes = [await request.done for request in requests]
        late = await ask(transport)
    assert [outcome.sent for outcome in (*outcomes, late) if isinstance(outcome, ConnectionFailed)] == [
        True,
        False,
        False,
    ]


@on_loop
async def test_an_abandoned_request_is_not_answered_and_not_sent_again() -> None:
    gate = asyncio.Event()
    async with answering(holding(gate)) as server:
        transport = pool(server.port, limit=1)
        held, queued = Asked(target="/hold", idempotent=True), Asked(target="/queued")
        transport.send(held)
        transport.send(queued)
        await server.until(lambda: server.seen)
        transport.abandon(queued)
        transport.abandon(held)
        assert isinstance(await ask(transport, target="/next"), Response)
        await transport.close()
    assert not held.done.done()
    assert [seen.target for seen in server.seen] == ["/hold", "/next"]


@on_loop
async def test_a_stream_hands_on_what_comes() -> None:
    async def talk(conversation: Conversation) -> None:
        await conversation.request()
        await conversation.send(CHUNKED + chunk(b"one"))
        await asyncio.sleep(0.01)
        await conversation.send(chunk(b"two") + chunk(b"three") + chunk(b""))

    pieces: list[bytes] = []
    async with serving(talk) as server:
        transport = pool(server.port, limit=1)
        assert await transport.stream(Request("GET", "/"), pieces.append, silence_seconds=5) is None
        assert transport.open_connections == 0
        await transport.close()
    assert b"".join(pieces) == b"onetwothree"
    assert pieces[0] == b"one"


@pytest.mark.parametrize(
    ("sent", "complaint"),
    [
        pytest.param([CHUNKED, chunk(b"x")], "nothing came for 0.05 s", id="silence after an event"),
        pytest.param([], "nothing came for 0.05 s", id="silence from the start"),
        pytest.param([CHUNKED, chunk(b"x"), None], "the watch was cut", id="a cut"),
        pytest.param([*[chunk(b"x")] * 3], "not HTTP", id="nonsense"),
        pytest.param([CHUNKED, *[chunk(b"x")] * 100], "did not end", id="more than was asked for"),
    ],
)
@on_loop
async def test_a_stream_that_breaks(sent: list[bytes | None], complaint: str) -> None:
    async def talk(conversation: Conversation) -> None:
        await conversation.request()
        for data in sent:
            if data is None:
                return
            await conversation.send(data)
            await asyncio.sleep(0.02)
        await conversation.request()

    async with serving(talk) as server:
        transport = pool(server.port)
        with pytest.raises(ConnectionFailed, match=complaint):
            await transport.stream(Request("GET", "/", timeout_seconds=0.3), lambda data: None, silence_seconds=0.05)
        await transport.close()


@on_loop
async def test_a_stream_that_is_refused_is_an_answer() -> None:
    async with answering(lambda seen: reply(410, b"too old")) as server:
        transport = pool(server.port)
        pieces: list[bytes] = []
        outcome = await transport.stream(Request("GET", "/"), pieces.append, silence_seconds=5)
        await transport.close()
    assert outcome is not None
    assert (outcome.status, outcome.body, pieces) == (410, b"too old", [])


@on_loop
async def test_what_the_reader_of_a_stream_raises_ends_it() -> None:
    def read(data: bytes) -> None:
        raise KeyError(data)

    async def talk(conversation: Conversation) -> None:
        await conversation.request()
        await conversation.send(CHUNKED + chunk(b"x"))
        await conversation.request()

    async with serving(talk) as server:
        transport = pool(server.port)
        with pytest.raises(KeyError):
            await transport.stream(Request("GET", "/"), read, silence_seconds=5)
        await transport.close()


@on_loop
async def test_tls(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    async with answering(lambda seen: reply(200, b"safe"), tls=authority.server_context()) as server:
        transport = pool(server.port, ssl_context=authority.client_context())
        answers = await asyncio.gather(*(ask(transport) for _ in range(5)))
        await transport.close()
    assert [answer.body for answer in answers if isinstance(answer, Response)] == [b"safe"] * 5


@pytest.mark.parametrize(
    ("server_name", "works"),
    [
        pytest.param("kubernetes.default.svc", True, id="the name that the certificate has"),
        pytest.param("elsewhere", False, id="another name"),
    ],
)
@on_loop
async def test_tls_server_name(tmp_path: Path, server_name: str, works: bool) -> None:
    authority = Authority(tmp_path)
    tls = authority.server_context(dns="kubernetes.default.svc")
    async with answering(lambda seen: reply(), tls=tls) as server:
        transport = pool(server.port, ssl_context=authority.client_context(), server_name=server_name)
        outcome = await ask(transport)
        await transport.close()
    assert isinstance(outcome, Response) is works


@on_loop
async def test_another_authority_is_not_trusted(tmp_path: Path) -> None:
    theirs, ours = Authority(tmp_path / "a", "theirs"), Authority(tmp_path / "b", "ours")
    async with answering(lambda seen: reply(), tls=theirs.server_context()) as server:
        transport = pool(server.port, ssl_context=ours.client_context())
        outcome = await ask(transport)
        await transport.close()
    assert isinstance(outcome, ConnectionFailed)
    assert "the server's certificate is not trusted: " in str(outcome)
    assert "\n" not in str(outcome)


@on_loop
async def test_tls_to_a_server_that_has_none() -> None:
    async def talk(conversation: Conversation) -> None:
        await conversation.reader.read(100)
        await conversation.send(b"HTTP/1.0 400 Bad Request\r\n\r\n")

    async with serving(talk) as server:
        transport = pool(server.port, ssl_context=ssl.create_default_context())
        outcome = await ask(transport)
        await transport.close()
    assert isinstance(outcome, ConnectionFailed)
    assert "does not speak TLS" in str(outcome)


@on_loop
async def test_tls_to_a_server_that_hangs_up() -> None:
    async def talk(conversation: Conversation) -> None:
        await conversation.reader.read(100)

    async with serving(talk) as server:
        transport = pool(server.port, ssl_context=ssl.create_default_context())
        outcome = await ask(transport)
        await transport.close()
    assert isinstance(outcome, ConnectionFailed)
    assert "the server hung up while the connection was being made" in str(outcome)


@on_loop
async def test_new_credentials_are_used_at_once(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    async with answering(lambda seen: reply(), tls=authority.server_context()) as server:
        transport = pool(server.port, ssl_context=authority.client_context())
        await ask(transport)
        transport.renew("Host: x\r\nAuthorization: Bearer new\r\n", authority.client_context())
        await ask(transport)
        await transport.close()
    assert server.seen[1].headers["authorization"] == "Bearer new"
    assert len(server.conversations) == 2
