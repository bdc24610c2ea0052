"""Requests to one API server: credentials, rate, and what may be tried again.

A request goes out through `send` with a callback (nothing is made per request but the `Call`) or through `request`,
which waits. Answers that are not errors pass straight to the callback. The rest is decided in one place,
`Client._troubled`: 401 gets fresh credentials and one more try; 429 is obeyed for every request, since the server did
nothing; a 5xx or a broken connection is tried again only for idempotent requests, a connection that could not be made
for all. Everything has a bound, and what is left is the caller's: `writes` looks before it binds again, `watch` has its
own back-off.
"""

from __future__ import annotations

import asyncio
import logging
import random
import re
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

import orjson

from ksched import __version__
from ksched.api.http1 import Response
from ksched.api.kubeconfig import Access, AccessSource, find_access
from ksched.api.transport import DEFAULT_CONNECTIONS, JSON, Priority, Request, Transport
from ksched.errors import ClientError, ConnectionFailed, KubeconfigError

log = logging.getLogger(__name__)

USER_AGENT = f"ksched/{__version__} (linux/amd64) scheduler"

MAX_TRIES = 5
"""Tries of an idempotent request whose answers fail."""

FIRST_DELAY_SECONDS = 0.1
"""Before the second try; each further one waits twice as long."""

MAX_DELAY_SECONDS = 5.0

MAX_THROTTLED = 20
"""How often one request may be answered with 429 before its caller hears of it."""

MAX_RETRY_AFTER_SECONDS = 30.0
"""Retry-After is obeyed up to this; a longer one would outlive the reason for the request."""

FILES_SECONDS = 60.0
"""How often certificates and tokens on disk are looked at."""

TRY_AGAIN = frozenset({500, 502, 503, 504})

Outcome = Response | ConnectionFailed


class Call(Request):
    """A request, and what was tried so far. `done` gets the answer, errors included, or why there is none."""

    __slots__ = ("client", "max_tries", "refreshed", "throttled", "tries")

    client: Client

    def __init__(
        self,
        method: str,
        target: str,
        body: bytes | None,
        content_type: str,
        priority: Priority,
        timeout_seconds: float,
        idempotent: bool,
        max_tries: int,
    ) -> None:
        Request.__init__(self, method, target, body, content_type, priority, timeout_seconds, idempotent)
        self.max_tries = max_tries
        self.tries = 1
        self.throttled = 0
        self.refreshed = False

    def renew(self) -> None:
        """Forget what was tried: the call is about to be sent anew."""
        self.resends = 0
        self.tries = 1
        self.throttled = 0
        self.refreshed = False

    def done(self, outcome: Outcome) -> None:
        """What the caller wants to happen at the end."""
        raise NotImplementedError

    def finished(self, outcome: Outcome) -> None:
        """Hand on a success; the client decides about the rest."""
        if isinstance(outcome, Response) and outcome.status < 400:
            self.client._count(self.method, outcome.status)
            self.done(outcome)
        else:
            self.client._troubled(self, outcome)


class _CallWithCallback(Call):
    __slots__ = ("on_done",)

    on_done: Callable[[Outcome], None]

    def done(self, outcome: Outcome) -> None:
        self.on_done(outcome)


@dataclass(slots=True)
class ClientCounters:
    """What the client has done since it was made; `answers` counts by (method, status), 0 where none came."""

    answers: dict[tuple[str, int], int] = field(default_factory=dict)
    tried_again: int = 0
    throttled: int = 0
    refreshed: int = 0
    reloaded: int = 0
    rate_limited: int = 0


class Client:
    """Talks to one API server, on the loop where it was made."""

    def __init__(
        self,
        access: Access,
        source: AccessSource,
        *,
        qps: float | None = None,
        burst: int | None = None,
        connections: int = DEFAULT_CONNECTIONS,
        user_agent: str = USER_AGENT,
        rng: random.Random | None = None,
        files_seconds: float = FILES_SECONDS,
        sweep_seconds: float = 0.1,
    ) -> None:
        self.access = access
        self.counters = ClientCounters()
        self._source = source
        self._user_agent = user_agent
        self._rng = rng or random.Random()
        self._loop = asyncio.get_running_loop()
        self.transport = Transport(
            access.host,
            access.port,
            headers=self._headers(access),
            ssl_context=access.ssl_context(),
            server_name=access.server_name,
            base_path=access.base_path,
            limit=connections,
            sweep_seconds=sweep_seconds,
        )
        # Events have a budget of their own, as in the reference, which writes them with a client of their own.
        limited = qps is not None and qps > 0
        self._rate = _Rate(qps or 0.0, burst or max(1, round(qps or 0.0)), self._loop) if limited else None
        self._event_rate = _Rate(qps or 0.0, burst or max(1, round(qps or 0.0)), self._loop) if limited else None
        self._delayed: dict[Call, asyncio.TimerHandle] = {}
        self._refreshing: asyncio.Task[None] | None = None
        self._unauthorized: list[Call] = []
        self._closed = False
        self._files_seconds = files_seconds
        self._files_seen = access.versions()
        self._tls_seen = access.tls_versions()
        self._files_timer = self._loop.call_later(files_seconds, self._look_at_files)

    @classmethod
    async def from_kubeconfig(
        cls,
        path: str | None,
        *,
        context: str | None = None,
        master: str | None = None,
        qps: float | None = None,
        burst: int | None = None,
        **options: Any,
    ) -> Client:
        """A client for the kubeconfig at `path`, or for `master`, or for the cluster that this pod is in."""
        source = find_access(path, context=context, master=master)
        return cls(await source.load(), source, qps=qps, burst=burst, **options)

    def send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        on_done: Callable[[Outcome], None],
        query: Mapping[str, str] | None = None,
        content_type: str = JSON,
        timeout_seconds: float = 30.0,
        priority: Priority = Priority.READ,
        idempotent: bool | None = None,
        max_tries: int = MAX_TRIES,
    ) -> Call:
        """Send without waiting; `on_done` gets the answer, errors included, or a ConnectionFailed."""
        idempotent = method == "GET" if idempotent is None else idempotent
        call = _CallWithCallback(
            method, target(path, query), body, content_type, priority, timeout_seconds, idempotent, max_tries
        )
        call.on_done = on_done
        self.submit(call)
        return call

    def submit(self, call: Call) -> None:
        """Send a call that was made elsewhere, at the configured rate."""
        call.client = self
        rate = self._event_rate if call.priority is Priority.EVENT else self._rate
        if rate is None or call.priority is Priority.LEASE:
            self.transport.send(call)
        elif not rate.take(call, self.transport.send):
            self.counters.rate_limited += 1

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        timeout_seconds: float = 30.0,
        priority: Priority = Priority.READ,
        idempotent: bool | None = None,
        max_tries: int = MAX_TRIES,
    ) -> Response:
        """Send and wait for the answer, errors included; raises ConnectionFailed when there is none."""
        answer: asyncio.Future[Response] = self._loop.create_future()

        def done(outcome: Outcome) -> None:
            if answer.done():
                return
            if isinstance(outcome, Response):
                answer.set_result(outcome)
            else:
                answer.set_exception(outcome)

        call = self.send(
            method,
            path,
            body,
            on_done=done,
            query=query,
            content_type=content_type,
            timeout_seconds=timeout_seconds,
            priority=priority,
            idempotent=idempotent,
            max_tries=max_tries,
        )
        try:
            return await answer
        except asyncio.CancelledError:
            self.abandon(call)
            raise

    async def json(self, method: str, path: str, *, body: Any = None, **options: Any) -> Any:
        """The decoded answer; raises ApiError when the server answers with an error."""
        encoded = body if body is None or isinstance(body, bytes) else orjson.dumps(body)
        answer = await self.request(method, path, body=encoded, **options)
        if not answer.ok:
            raise answer.error()
        try:
            return orjson.loads(answer.body)
        except orjson.JSONDecodeError as error:
            raise ClientError(
                f"{self.transport.address}: {method} {path}: the answer is not JSON: {answer.body[:80]!r}"
            ) from error

    async def stream(
        self,
        path: str,
        *,
        query: Mapping[str, str],
        on_data: Callable[[bytes], None],
        silence_seconds: float,
        timeout_seconds: float,
    ) -> None:
        """Hand the body of a watch to `on_data` as it comes; return when the server ends it.

        Raises ApiError when the server refuses, ConnectionFailed when the connection breaks or falls silent, and what
        `on_data` raises.
        """
        for attempt in ("first", "with fresh credentials"):
            if self._closed:
                raise ConnectionFailed("the client is closed", sent=False)
            request = Request("GET", target(path, query), timeout_seconds=timeout_seconds)
            refused = await self.transport.stream(request, on_data, silence_seconds=silence_seconds)
            self._count("WATCH", 200 if refused is None else refused.status)
            if refused is None:
                return
            if refused.status != 401 or attempt != "first":
                raise refused.error()
            await asyncio.shield(self._refresh())

    async def check(self) -> dict[str, Any]:
        """The server's version; raises KubeconfigError in one clear line when it is no Kubernetes or refuses us."""
        where = f"{self.access.source}: {self.access.server}"
        try:
            answer = await self.request("GET", "/version", timeout_seconds=10.0, max_tries=1)
        except ConnectionFailed as failure:
            raise KubeconfigError(f"{self.access.source}: {failure}") from failure
        if answer.status == 401:
            raise KubeconfigError(f"{where}: the server refused the credentials (401 Unauthorized)")
        try:
            version = orjson.loads(answer.body)
        except orjson.JSONDecodeError:
            version = None
        if answer.ok and isinstance(version, dict) and isinstance(version.get("gitVersion"), str):
            return version
        if isinstance(version, dict) and version.get("kind") == "Status":
            raise KubeconfigError(f"{where}: GET /version was answered with {answer.error()} ({answer.status})")
        raise KubeconfigError(
            f"{where} is not a Kubernetes API server: expected a version from GET /version, "
            f"got {answer.status} {answer.body[:60]!r}"
        )

    def abandon(self, call: Call) -> None:
        """Nobody waits for `call` any more."""
        delayed = self._delayed.pop(call, None)
        if delayed is not None:
            delayed.cancel()
        for rate in (self._rate, self._event_rate):
            if rate is not None:
                rate.forget(call)
        self.transport.abandon(call)

    async def close(self) -> None:
        """Fail what is not answered and close every connection."""
        self._closed = True
        self._files_timer.cancel()
        if self._refreshing is not None:
            self._refreshing.cancel()
            await asyncio.gather(self._refreshing, return_exceptions=True)
        waiting = list(self._delayed)
        for timer in self._delayed.values():
            timer.cancel()
        self._delayed.clear()
        for rate in (self._rate, self._event_rate):
            if rate is not None:
                waiting += rate.close()
        waiting += self._unauthorized
        self._unauthorized = []
        await self.transport.close()
        for call in waiting:
            call.done(ConnectionFailed("the client is closed", sent=False))

    # What goes wrong.

    def _troubled(self, call: Call, outcome: Outcome) -> None:
        """An error or no answer: try again what may be tried again, hand on the rest."""
        self._count(call.method, outcome.status if isinstance(outcome, Response) else 0)
        delay = None if self._closed else self._delay(call, outcome)
        if delay is None:
            call.done(outcome)
        elif delay == 0.0:
            call.refreshed = True
            if call.headers != self.transport.headers:
                # Refused with credentials that have been replaced meanwhile.
                self.transport.send(call)
                return
            self._unauthorized.append(call)
            self._refresh()
        else:
            self._delayed[call] = self._loop.call_later(delay, self._again, call)

    def _delay(self, call: Call, outcome: Outcome) -> float | None:
        """How long to wait before the next try; 0 means fresh credentials first, None that there is no next try."""
        if isinstance(outcome, ConnectionFailed):
            safe = call.idempotent or not outcome.sent
            return self._jittered(call) if safe and call.tries < call.max_tries else None
        if outcome.status == 401:
            return None if call.refreshed else 0.0
        if outcome.status == 429:
            if call.throttled >= MAX_THROTTLED:
                return None
            call.throttled += 1
            self.counters.throttled += 1
            return self._server_asked(call, outcome)
        if outcome.status in TRY_AGAIN and call.idempotent and call.tries < call.max_tries:
            return self._server_asked(call, outcome)
        return None

    def _server_asked(self, call: Call, answer: Response) -> float:
        """Retry-After and a little more, so that not everyone comes back at once; without it our own back-off."""
        seconds = answer.retry_after_seconds
        if seconds is None:
            return self._jittered(call)
        call.tries += 1
        return min(seconds, MAX_RETRY_AFTER_SECONDS) * (1.0 + 0.1 * self._rng.random()) + 0.001

    def _jittered(self, call: Call) -> float:
        seconds = min(FIRST_DELAY_SECONDS * 2.0 ** min(call.tries - 1, 10), MAX_DELAY_SECONDS)
        call.tries += 1
        return seconds * (0.5 + self._rng.random())

    def _again(self, call: Call) -> None:
        del self._delayed[call]
        self.counters.tried_again += 1
        self.transport.send(call)

    # Credentials.

    def _headers(self, access: Access) -> str:
        lines = [f"Host: {access.host_header}", f"User-Agent: {self._user_agent}", f"Accept: {JSON}"]
        if access.authorization:
            lines.append(f"Authorization: {access.authorization}")
        return "".join(f"{line}\r\n" for line in lines)

    def _refresh(self) -> asyncio.Task[None]:
        """Load the credentials anew, once for everyone who was refused; then their calls go out again."""
        if self._refreshing is None or self._refreshing.done():
            self.counters.refreshed += 1
            self._refreshing = self._loop.create_task(self._reload())
        return self._refreshing

    async def _reload(self) -> None:
        try:
            access = await self._source.load()
            same_tls = access.tls_versions() == self._tls_seen
            context = self.transport.ssl_context if same_tls else access.ssl_context()
            self.access = access
            self._files_seen = access.versions()
            self._tls_seen = access.tls_versions()
            self.counters.reloaded += 1
            self.transport.renew(self._headers(access), context)
        except KubeconfigError as error:
            # The old credentials stay: they may work again, and the answer 401 goes to whoever asked.
            log.error("credentials cannot be loaded again: %s", error)
        finally:
            refused, self._unauthorized = self._unauthorized, []
            for call in refused:
                self.transport.send(call)

    def _look_at_files(self) -> None:
        """Certificates and tokens are replaced while we run; use them before the old ones expire."""
        if self.access.versions() != self._files_seen:
            self._refresh()
        self._files_timer = self._loop.call_later(self._files_seconds, self._look_at_files)

    def _count(self, method: str, status: int) -> None:
        answers = self.counters.answers
        answers[method, status] = answers.get((method, status), 0) + 1


class _Rate:
    """`clientConnection.qps` and `burst`: a token bucket that lets the more urgent go first."""

    def __init__(self, qps: float, burst: int, loop: asyncio.AbstractEventLoop) -> None:
        self._qps = qps
        self._burst = float(burst)
        self._tokens = float(burst)
        self._loop = loop
        self._filled = loop.time()
        self._waiting: tuple[deque[tuple[Call, Callable[[Call], None]]], ...] = tuple(deque() for _ in Priority)
        self._timer: asyncio.TimerHandle | None = None

    def take(self, call: Call, send: Callable[[Call], None]) -> bool:
        """Send now if the rate allows it, otherwise as soon as it does; True when it went out now."""
        self._fill()
        if self._timer is None and self._tokens >= 1.0:
            self._tokens -= 1.0
            send(call)
            return True
        self._waiting[call.priority].append((call, send))
        self._arm()
        return False

    def forget(self, call: Call) -> None:
        """`call` does not wait any more."""
        queue = self._waiting[call.priority]
        for entry in [entry for entry in queue if entry[0] is call]:
            queue.remove(entry)

    def close(self) -> list[Call]:
        """Stop; the calls that still waited."""
        if self._timer is not None:
            self._timer.cancel()
        left = [call for queue in self._waiting for call, _ in queue]
        for queue in self._waiting:
            queue.clear()
        return left

    def _fill(self) -> None:
        now = self._loop.time()
        self._tokens = min(self._burst, self._tokens + (now - self._filled) * self._qps)
        self._filled = now

    def _arm(self) -> None:
        if self._timer is None and any(self._waiting):
            # A hair more than needed, or rounding would wake us a moment too early, again and again.
            self._timer = self._loop.call_later(max(0.0, (1.0 - self._tokens) / self._qps) + 1e-4, self._release)

    def _release(self) -> None:
        self._timer = None
        self._fill()
        for queue in self._waiting:
            while queue and self._tokens >= 1.0:
                self._tokens -= 1.0
                call, send = queue.popleft()
                send(call)
        self._arm()


_SAFE_SEGMENT = re.compile(r"[A-Za-z0-9._~-]+")
_SAFE_PATH = re.compile(r"[A-Za-z0-9._~/%:@+,;=!$&'()*?-]+")


def segment(name: str) -> str:
    """`name` as one segment of a path; names from the API server are almost always safe as they are."""
    return name if _SAFE_SEGMENT.fullmatch(name) else quote(name, safe="")


def target(path: str, query: Mapping[str, str] | None = None) -> str:
    """Path and query as they stand in a request, with the query in the order that Go writes: by name."""
    if not path.startswith("/") or not _SAFE_PATH.fullmatch(path):
        raise ValueError(f"not a path of an API server: {path!r}")
    return f"{path}?{urlencode(sorted(query.items()))}" if query else path
