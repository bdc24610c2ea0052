"""A server for tests that says exactly the bytes it is told to, and cuts connections where it is told to."""

from __future__ import annotations

import asyncio
import functools
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import uvloop


def on_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run an async test on a loop of its own, with an end: on asyncio's, then on uvloop, which ksched runs on."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(20):
                await test(*args, **kwargs)

        for new_loop in (asyncio.new_event_loop, uvloop.new_event_loop):
            with asyncio.Runner(loop_factory=new_loop) as runner:
                runner.run(bounded())

    return run


@dataclass
class Seen:
    """A request as the server saw it."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.target).query, keep_blank_values=True))

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Conversation:
    """One connection, from the server's side."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        self.reader = reader
        self.writer = writer
        self.number = number

    async def request(self) -> Seen | None:
        """The next request, or None when the client closed the connection."""
        try:
            head = await self.reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        lines = head.decode("latin-1").split("\r\n")
        method, target, _ = lines[0].split(" ")
        headers = {
            name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)
        }
        body = await self.reader.readexactly(int(headers.get("content-length", 0)))
        return Seen(method, target, headers, body)

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    def cut(self) -> None:
        self.writer.transport.abort()


@dataclass
class RawServer:
    """Where the server listens, and what it saw."""

    port: int
    seen: list[Seen] = field(default_factory=list)
    conversations: list[Conversation] = field(default_factory=list)
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def saw(self, seen: Seen) -> None:
        self.seen.append(seen)
        self._news.set()

    async def until(self, true: Callable[[], Any]) -> None:
        """Wait until `true()`, looked at after every request."""
        while not true():
            self._news.clear()
            await self._news.wait()

    def targets(self) -> list[str]:
        return [f"{seen.method} {seen.target}" for seen in self.seen]


@asynccontextmanager
async def serving(
    talk: Callable[[Conversation], Awaitable[None]], *, tls: ssl.SSLContext | None = None
) -> AsyncIterator[RawServer]:
    """A server whose every connection is handled by `talk`."""
    raw = RawServer(0)
    tasks: set[asyncio.Task[Any]] = set()

    async def conversing(conversation: Conversation) -> None:
        try:
            await talk(conversation)
        except ConnectionError:
            pass
        finally:
            conversation.writer.close()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        conversation = Conversation(reader, writer, len(raw.conversations))
        raw.conversations.append(conversation)
        task = asyncio.ensure_future(conversing(conversation))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls, limit=2**22)
    raw.port = server.sockets[0].getsockname()[1]
    try:
        yield raw
    finally:
        server.close()
        for task in tasks.copy():
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


@asynccontextmanager
async def answering(
    answer: Callable[[Seen], bytes | Awaitable[bytes | None] | None], *, tls: ssl.SSLContext | None = None
) -> AsyncIterator[RawServer]:
    """A server that answers every request with `answer(request)`; None cuts the connection instead."""
    raw: RawServer

    async def talk(conversation: Conversation) -> None:
        while (seen := await conversation.request()) is not None:
            raw.saw(seen)
            answered = answer(seen)
            if not isinstance(answered, bytes | None):
                answered = await answered
            if answered is None:
                conversation.cut()
                return
            await conversation.send(answered)

    async with serving(talk, tls=tls) as raw:
        yield raw


def reply(status: int = 200, body: Any = b"", **headers: str) -> bytes:
    """An answer with a length; a body that is not bytes is written as JSON."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(data)}", "Content-Type: application/json"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


def status(code: int, reason: str, message: str = "", **details: Any) -> dict[str, Any]:
    """A `Status` object."""
    made = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message or reason}
    return {**made, "reason": reason, "code": code, **({"details": details} if details else {})}


def failure(code: int, reason: str, message: str = "", **headers: str) -> bytes:
    """An error answer with its `Status`."""
    return reply(code, status(code, reason, message), **headers)


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body; an empty one ends it."""
    return b"%x\r\n%s\r\n" % (len(data), data)


CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


def event(type: str, object: Any) -> bytes:
    """One watch line, as a chunk."""
    return chunk(json.dumps({"type": type, "object": object}).encode() + b"\n")
