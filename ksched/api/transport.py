"""A pool of keep-alive HTTP/1.1 connections, one request at a time on each.

A bind costs a few microseconds here and not a hundred because nothing is made per request but the request: no task, no
future, no timer. `send` writes at once when a connection is free and otherwise queues by priority; the answer is handed
to `Request.finished` from the protocol callback. One sweep, a few times a second, looks at the deadlines of everything
that waits. Watches have connections of their own (`stream`), outside the limit, as they are for the API server.

What is tried again here is only what cannot have had an effect: a request that was never written, or an idempotent one
whose kept-alive connection the server had closed before a byte of the answer. Everything else is for `client`.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

from ksched.api.connection import PooledConnection, StreamConnection
from ksched.api.http1 import Response, request_bytes
from ksched.errors import ConnectionFailed

DEFAULT_CONNECTIONS = 64
"""Stays below an API server's default limit of mutating requests in flight (200), with room for other clients."""

RESERVED_CONNECTIONS = 1
"""Connections beyond the limit that only the lease may open."""

CONNECT_SECONDS = 10.0

READ_BYTES = 256 * 1024
"""How much is read at once at most; a list or the start of a watch comes in pieces of this size."""

MAX_RESENDS = 2
"""How often a request may meet a kept-alive connection that the server had just closed."""

EVENTS_MAY_WAIT = 256
"""Events that may wait behind everything else; while there are more, they get every second free connection."""

JSON = "application/json"


class Priority(IntEnum):
    """Who goes first when every connection is busy."""

    LEASE = 0
    BIND = 1
    READ = 2
    STATUS = 3
    EVENT = 4


class Request:
    """A request on its way. `finished` is called exactly once, on the loop, unless the request was abandoned."""

    __slots__ = (
        "abandoned",
        "body",
        "connection",
        "content_type",
        "deadline",
        "headers",
        "idempotent",
        "method",
        "priority",
        "resends",
        "target",
        "timeout_seconds",
    )

    def __init__(
        self,
        method: str,
        target: str,
        body: bytes | None = None,
        content_type: str = JSON,
        priority: Priority = Priority.READ,
        timeout_seconds: float = 30.0,
        idempotent: bool = False,
    ) -> None:
        self.method = method
        self.target = target
        self.body = body
        self.content_type = content_type
        self.priority = priority
        self.timeout_seconds = timeout_seconds
        self.idempotent = idempotent
        self.deadline = 0.0
        self.headers = ""
        self.resends = 0
        self.abandoned = False
        self.connection: PooledConnection | None = None

    def finished(self, outcome: Response | ConnectionFailed) -> None:
        """The answer, or why there is none."""
        raise NotImplementedError


@dataclass(slots=True)
class TransportCounters:
    """What the pool has done since it was made."""

    sent: int = 0
    answered: int = 0
    failed: int = 0
    timed_out: int = 0
    resent: int = 0
    opened: int = 0
    refused: int = 0


class Transport:
    """Sends requests to one address over at most `limit` connections."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        headers: str,
        ssl_context: ssl.SSLContext | None = None,
        server_name: str | None = None,
        base_path: str = "",
        limit: int = DEFAULT_CONNECTIONS,
        reserved: int = RESERVED_CONNECTIONS,
        sweep_seconds: float = 0.1,
    ) -> None:
        self.host = host
        self.port = port
        self.headers = headers
        self.base_path = base_path
        self.limit = limit
        self.reserved = reserved
        self.counters = TransportCounters()
        self.read_buffer = memoryview(bytearray(READ_BYTES))
        self.ssl_context = ssl_context
        self._server_name = server_name
        self._generation = 0
        self._sweep_seconds = sweep_seconds
        self._loop = asyncio.get_running_loop()
        self._queues: tuple[deque[Request], ...] = tuple(deque() for _ in Priority)
        self._connections: set[PooledConnection] = set()
        self._idle: list[PooledConnection] = []
        self._idle_reserved: list[PooledConnection] = []
        self._opening = 0
        # Connections open or opening, by whether they are reserved for the lease.
        self._count = {False: 0, True: 0}
        self.streams: set[StreamConnection] = set()
        self._connecting: set[asyncio.Task[None]] = set()
        self._sweeper: asyncio.TimerHandle | None = None
        self._event_is_next = False
        self._closed = False

    @property
    def address(self) -> str:
        """`https://host:port`, for messages."""
        return f"{'https' if self.ssl_context else 'http'}://{self.host}:{self.port}"

    @property
    def queued(self) -> int:
        """How many requests wait for a connection."""
        return sum(map(len, self._queues))

    @property
    def open_connections(self) -> int:
        """How many connections are open, watches not counted."""
        return len(self._connections)

    def send(self, request: Request) -> None:
        """Write `request` at once if a connection is free, or queue it by its priority."""
        request.deadline = self._loop.time() + request.timeout_seconds
        if self._sweeper is None:
            self._start_sweeping()
        if self._closed:
            self._loop.call_soon(request.finished, ConnectionFailed("the client is closed", sent=False))
        elif not self._start_on_idle(request):
            self._queues[request.priority].append(request)
            self._open_for(request)

    def abandon(self, request: Request) -> None:
        """Nobody waits for `request` any more; `finished` will not be called. Its connection cannot be used again."""
        request.abandoned = True
        if request.connection is not None:
            request.connection.request = None
            request.connection.abort()
            return
        queue = self._queues[request.priority]
        if request in queue:
            queue.remove(request)

    async def stream(
        self, request: Request, on_data: Callable[[bytes], None], *, silence_seconds: float
    ) -> Response | None:
        """Hand the body of the answer to `on_data` as it comes; return when the server ends it.

        Returns the `Response` when it is not a success (its body is read to the end), None after a success. Raises
        ConnectionFailed when the connection breaks, when nothing comes for `silence_seconds`, or when the answer has
        not ended after the request's timeout. What `on_data` raises ends the stream and is raised here.
        """
        done: asyncio.Future[Response | None] = self._loop.create_future()
        connection = StreamConnection(self, request, on_data, done, silence_seconds)
        await self._connect(lambda: connection)
        if self._sweeper is None:
            self._start_sweeping()
        try:
            return await done
        finally:
            connection.abort()

    def renew(self, headers: str, ssl_context: ssl.SSLContext | None) -> None:
        """Use other headers from now on, and another TLS context for new connections; old ones finish what they do."""
        self.headers = headers
        if ssl_context is self.ssl_context:
            return
        self.ssl_context = ssl_context
        self._generation += 1
        for connection in self._idle.copy():
            connection.abort()

    async def close(self) -> None:
        """Close every connection; requests without an answer fail. Returns when nothing is left open."""
        self._closed = True
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        connecting = list(self._connecting)
        for task in connecting:
            task.cancel()
        await asyncio.gather(*connecting, return_exceptions=True)
        self._fail_queued(ConnectionFailed("the client is closed", sent=False))
        lost = [connection.lost for connection in (*self._connections, *self.streams)]
        for connection in (*self._connections, *self.streams):
            connection.abort()
        await asyncio.gather(*lost)

    # What connections call.

    def bytes_of(self, request: Request) -> bytes:
        """`request` as it is sent."""
        path = self.base_path + request.target
        return request_bytes(request.method, path, self.headers, request.content_type, request.body)

    def release(self, connection: PooledConnection) -> None:
        """`connection` is free: give it the next request, or keep it for later."""
        if connection.generation != self._generation or self._closed:
            connection.abort()
            return
        if connection.transport.is_closing():
            return
        request = self._next_lease() if connection.reserved else self._next()
        if request is not None:
            connection.start(request)
            return
        connection.idle_since = self._loop.time()
        (self._idle_reserved if connection.reserved else self._idle).append(connection)

    def lost_connection(self, connection: PooledConnection) -> None:
        """`connection` is gone; open another if requests wait for it."""
        if connection not in self._connections:
            return
        self._connections.remove(connection)
        self._count[connection.reserved] -= 1
        for idle in (self._idle, self._idle_reserved):
            if connection in idle:
                idle.remove(connection)
        waiting = self._next()
        if waiting is not None:
            self._queues[waiting.priority].appendleft(waiting)
            self._open_for(waiting)

    def resend(self, request: Request) -> bool:
        """Send `request` once more, on another connection; False when it has had its chances."""
        if request.resends >= MAX_RESENDS or self._closed:
            return False
        request.resends += 1
        self.counters.resent += 1
        if not self._start_on_idle(request):
            self._queues[request.priority].appendleft(request)
            self._open_for(request)
        return True

    def _start_on_idle(self, request: Request) -> bool:
        """Start `request` if a connection is free."""
        idle = self._idle
        if not idle and request.priority is Priority.LEASE:
            idle = self._idle_reserved
        while idle:
            connection = idle.pop()
            # One that the server closed just now is not reported lost yet.
            if not connection.transport.is_closing():
                connection.start(request)
                return True
        return False

    # Opening connections.

    def _open_for(self, request: Request) -> None:
        """Open a connection if more requests wait than connections are on their way, and the limit allows it."""
        if self._count[False] < self.limit:
            reserved = False
        elif request.priority is Priority.LEASE and self._count[True] < self.reserved:
            reserved = True
        else:
            return
        if self._opening >= self.queued or self._closed:
            return
        self._opening += 1
        self._count[reserved] += 1
        connection = PooledConnection(self, self._generation, reserved=reserved)
        task = self._loop.create_task(self._open(connection))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    async def _open(self, connection: PooledConnection) -> None:
        """Open a pooled connection; if that fails and there is no other, everyone who waits is told."""
        failed: ConnectionFailed | None = None
        try:
            await self._connect(lambda: connection)
        except ConnectionFailed as failure:
            failed = failure
        finally:
            self._opening -= 1
        if failed is None and connection.lost.done():
            failed = ConnectionFailed(f"{self.address}: the server closed the connection at once", sent=False)
        if failed is None:
            self._connections.add(connection)
            self.release(connection)
            return
        self._count[connection.reserved] -= 1
        self.counters.refused += 1
        if not self._count[False]:
            self._fail_queued(failed)

    async def _connect(self, protocol: Callable[[], asyncio.BufferedProtocol]) -> None:
        """Connect; raises ConnectionFailed in one clear line."""
        server_name = (self._server_name or self.host) if self.ssl_context else None
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await self._loop.create_connection(
                    protocol, self.host, self.port, ssl=self.ssl_context, server_hostname=server_name
                )
        except (OSError, ssl.SSLError, TimeoutError) as error:
            raise ConnectionFailed(f"{self.address}: {_why(error)}", sent=False) from error
        self.counters.opened += 1

    # Queues and deadlines.

    def _next(self) -> Request | None:
        """The request that goes next: by priority, but while events pile up every second one is an event.

        A scheduler writes as many events as binds. If binds always went first under load, events would only pile up.
        """
        events = self._queues[Priority.EVENT]
        if len(events) > EVENTS_MAY_WAIT and not self._queues[Priority.LEASE]:
            self._event_is_next = not self._event_is_next
            if self._event_is_next:
                return events.popleft()
        for queue in self._queues:
            if queue:
                return queue.popleft()
        return None

    def _next_lease(self) -> Request | None:
        queue = self._queues[Priority.LEASE]
        return queue.popleft() if queue else None

    def _fail_queued(self, failure: ConnectionFailed) -> None:
        """Tell everyone in the queues; those who send again at once wait for the next attempt."""
        waiting = [request for queue in self._queues for request in queue]
        for queue in self._queues:
            queue.clear()
        for request in waiting:
            self.deliver(request, failure)

    def deliver(self, request: Request, outcome: Response | ConnectionFailed) -> None:
        """Call `request.finished`. A fault in there is its owner's: it is reported, and the connection goes on."""
        if outcome.__class__ is Response:
            self.counters.answered += 1
        else:
            self.counters.failed += 1
        if request.abandoned:
            return
        try:
            request.finished(outcome)
        except Exception as fault:  # noqa: BLE001 - whatever a callback raises must not close a connection that others use
            self._loop.call_exception_handler(
                {"message": f"the callback of {request.method} {request.target} failed", "exception": fault}
            )

    def _start_sweeping(self) -> None:
        if not self._closed:
            self._sweeper = self._loop.call_later(self._sweep_seconds, self._sweep)

    def _sweep(self) -> None:
        """The one timer: end what has waited too long."""
        self._sweeper = None
        now = self._loop.time()
        for queue in self._queues:
            late = [request for request in queue if request.deadline <= now]
            for request in late:
                queue.remove(request)
                self.counters.timed_out += 1
                failure = f"{self.address}: no connection was free within {request.timeout_seconds:g} s"
                self.deliver(request, ConnectionFailed(failure, sent=False))
        for connection in list(self._connections):
            connection.check(now)
        for stream in list(self.streams):
            stream.check(now)
        if self._connections or self.streams or self._opening or self.queued:
            self._start_sweeping()


def _why(error: Exception) -> str:
    """Why a connection could not be made, in words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the server's certificate is not trusted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        if error.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"):
            return "the server does not speak TLS on this port"
        return f"TLS failed: {error.reason or error}"
    if isinstance(error, TimeoutError):
        return f"no connection within {CONNECT_SECONDS:g} s"
    # A name with several addresses gives one error with all of theirs in its text.
    if isinstance(error, ConnectionRefusedError) or f"Errno {errno.ECONNREFUSED}]" in str(error):
        return "connection refused: nothing listens there"
    if isinstance(error, socket.gaierror):
        return f"the host name cannot be resolved: {error.strerror}"
    if isinstance(error, ConnectionResetError):
        return "the server hung up while the connection was being made"
    said = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
    return f"cannot connect: {said}"
