"""One HTTP/1.1 connection: kept alive with a request at a time on it, or given to a watch.

A connection knows its request and its socket; which request comes next, and what becomes of one that failed, is the
pool's business (`transport`).
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from ksched.api.http1 import Response, ResponseReader
from ksched.errors import ConnectionFailed

if TYPE_CHECKING:
    from ksched.api.transport import Request, Transport

IDLE_SECONDS = 90.0
"""Unused connections are closed after this; API servers and load balancers keep theirs longer."""


class _Connection(ResponseReader, asyncio.BufferedProtocol):
    """What pooled and streaming connections share.

    All read into one buffer of the pool. A loop that makes the bytes itself takes 256 KiB from the system for every
    read under TLS and gives most of it back: 55 us a bind instead of 32.
    """

    __slots__ = ("lost", "pool", "transport")

    transport: asyncio.Transport

    def __init__(self, pool: Transport) -> None:
        super().__init__()
        self.pool = pool
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not every loop's transports derive from asyncio's classes.
        self.transport = cast(asyncio.Transport, transport)
        _keep_alive(transport.get_extra_info("socket"))

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the loop puts what it reads; it tells at once, before any other connection reads."""
        return self.pool.read_buffer

    def buffer_updated(self, nbytes: int) -> None:
        """So much was read."""
        self.data_received(bytes(self.pool.read_buffer[:nbytes]))

    def data_received(self, data: bytes) -> None:
        """Some bytes of an answer."""
        raise NotImplementedError

    def abort(self) -> None:
        """Close the connection now; `connection_lost` follows."""
        self.transport.abort()

    def end(self) -> None:
        """The connection is gone: let go of the parser, which refers back to this object, and tell who waits."""
        del self._parser
        if not self.lost.done():
            self.lost.set_result(None)


class PooledConnection(_Connection):
    """A kept-alive connection: idle, or with one request in flight."""

    __slots__ = ("generation", "idle_since", "request", "reserved")

    def __init__(self, pool: Transport, generation: int, *, reserved: bool = False) -> None:
        super().__init__(pool)
        self.generation = generation
        self.reserved = reserved
        self.request: Request | None = None
        self.idle_since = 0.0

    def start(self, request: Request) -> None:
        """Write `request`; its answer or failure goes to `request.finished`."""
        pool = self.pool
        self.request = request
        request.connection = self
        request.headers = pool.headers
        pool.counters.sent += 1
        self.transport.write(pool.bytes_of(request))

    def data_received(self, data: bytes) -> None:
        request = self.request
        if request is None:
            # Bytes nobody asked for: whatever they are, they must not be taken for the next answer.
            self.abort()
            return
        try:
            if not self.feed(data):
                return
        except ConnectionFailed as failure:
            self._fail(f"{self.pool.address}: {failure}")
            self.abort()
            return
        self._complete(request)

    def _complete(self, request: Request) -> None:
        """Hand out the answer; the connection first takes the next request, so that it is never idle meanwhile."""
        keep_alive = self.keep_alive
        response = self.take()
        self.request = request.connection = None
        if keep_alive:
            self.pool.release(self)
        else:
            self.transport.close()
        self.pool.deliver(request, response)

    def connection_lost(self, exc: Exception | None) -> None:
        request = self.request
        if request is not None:
            if self.finish():
                self._complete(request)
            elif not self.started and request.idempotent and self.pool.resend(request):
                self.request = request.connection = None
            else:
                why = f"the connection was closed before the answer{f': {exc}' if exc else ''}"
                if self.started:
                    why = f"the connection was cut in the middle of the answer{f': {exc}' if exc else ''}"
                self._fail(f"{self.pool.address}: {why}")
        self.pool.lost_connection(self)
        self.end()

    def check(self, now: float) -> None:
        """Called by the sweep: a request past its deadline fails, a connection unused for long is closed."""
        request = self.request
        if request is None:
            if now - self.idle_since > IDLE_SECONDS:
                self.abort()
        elif request.deadline <= now:
            self.pool.counters.timed_out += 1
            self._fail(f"{self.pool.address}: no answer within {request.timeout_seconds:g} s")
            self.abort()

    def _fail(self, why: str) -> None:
        request = self.request
        if request is not None:
            self.request = request.connection = None
            self.pool.deliver(request, ConnectionFailed(why, sent=True))


class StreamConnection(_Connection):
    """A connection whose answer is handed on as it comes: a watch."""

    __slots__ = ("_deadline", "_done", "_heard", "_on_data", "_request", "_silence_seconds")

    def __init__(
        self,
        pool: Transport,
        request: Request,
        on_data: Callable[[bytes], None],
        done: asyncio.Future[Response | None],
        silence_seconds: float,
    ) -> None:
        super().__init__(pool)
        self._request = request
        self._on_data = on_data
        self._done = done
        self._silence_seconds = silence_seconds
        self._heard = 0.0
        self._deadline = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        pool, request = self.pool, self._request
        self._heard = asyncio.get_running_loop().time()
        self._deadline = self._heard + request.timeout_seconds
        pool.streams.add(self)
        pool.counters.sent += 1
        self.transport.write(pool.bytes_of(request))

    def data_received(self, data: bytes) -> None:
        if self._done.done():
            return
        self._heard = asyncio.get_running_loop().time()
        try:
            complete = self.feed(data)
            if self.has_head and 200 <= self.status < 300:
                if body := self.take_body():
                    self._on_data(body)
                if complete:
                    self._end(None)
            elif complete:
                self._end(self.take())
        except Exception as fault:  # noqa: BLE001 - on_data's faults belong to whoever awaits the stream
            self._break(fault)

    def connection_lost(self, exc: Exception | None) -> None:
        self.pool.streams.discard(self)
        if not self._done.done():
            if self.finish():
                self._end(None if 200 <= self.status < 300 else self.take())
            else:
                self._break(ConnectionFailed(f"{self.pool.address}: the watch was cut{f': {exc}' if exc else ''}"))
        self.end()

    def check(self, now: float) -> None:
        """Called by the sweep: silence and overlong answers are the sign of a dead connection."""
        if self._done.done():
            return
        if now - self._heard > self._silence_seconds:
            self.pool.counters.timed_out += 1
            self._break(ConnectionFailed(f"{self.pool.address}: nothing came for {self._silence_seconds:g} s"))
        elif now > self._deadline:
            self.pool.counters.timed_out += 1
            self._break(ConnectionFailed(f"{self.pool.address}: the watch did not end when it should have"))

    def _end(self, outcome: Response | None) -> None:
        if not self._done.done():
            self.pool.counters.answered += 1
            self._done.set_result(outcome)

    def _break(self, fault: Exception) -> None:
        if not self._done.done():
            self.pool.counters.failed += 1
            self._done.set_exception(fault)


def _keep_alive(connection: socket.socket | None) -> None:
    """Small writes go out at once, and a peer that vanished without a word is noticed within a minute."""
    if connection is None or connection.family not in (socket.AF_INET, socket.AF_INET6):
        return
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
