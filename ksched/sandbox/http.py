"""HTTP/1.1 on the wire: parsing, keep-alive, pipelining, chunked streams, and connections that are cut on request.

One `Connection` per client. Requests are answered in the order in which they came: while one waits (latency on
request) or streams (a watch), those behind it wait in a queue. What a request means is the application's
(`routes.py`); here it is bytes.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from typing import Protocol, cast
from urllib.parse import parse_qsl

import httptools

from ksched.sandbox.faults import Rule
from ksched.sandbox.watches import Watch

log = logging.getLogger(__name__)

BODY_LIMIT_BYTES = 3 * 1024 * 1024
"""What upstream's API server accepts."""

_HIGH_WATER_BYTES = 4 * 1024 * 1024


class Request:
    """One request as it came in."""

    __slots__ = ("accept", "authorization", "body", "content_type", "keep_alive", "method", "path", "query")

    def __init__(self) -> None:
        self.method = ""
        self.path = ""
        self.query = ""
        self.accept = ""
        self.content_type = ""
        self.authorization = ""
        self.body = b""
        self.keep_alive = True

    def parameters(self) -> dict[str, str]:
        """The query string; a parameter given twice has its first value."""
        if not self.query:
            return {}
        return dict(reversed(parse_qsl(self.query, keep_blank_values=True)))


TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
"""How a parameter may say yes: what Go's parser takes, since clients in other languages write it their way."""


@dataclass(slots=True)
class Answer:
    """A whole answer."""

    code: int
    body: bytes
    content_type: bytes = b"application/json"
    retry_after_seconds: int | None = None


class Application(Protocol):
    """What the wire asks of the server behind it."""

    def fault(self, request: Request) -> Rule | None:
        """The rule that disturbs this request, if any."""

    def handle(self, request: Request) -> Answer | Watch:
        """Answer a request; never raises."""

    def refuse(self, rule: Rule) -> Answer:
        """The answer of a rule that has a status."""

    def too_large(self) -> Answer:
        """The answer to a body beyond the limit."""

    def settle(self) -> None:
        """Make sure that what answers are about to tell is kept; called before they are written."""


class Connection(asyncio.Protocol):
    """One client's connection."""

    def __init__(self, application: Application, connections: set[Connection]) -> None:
        self._application = application
        self._connections = connections
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._request = Request()
        self._body: list[bytes] = []
        self._body_size = 0
        self._url = b""
        self._waiting: deque[Request] = deque()
        self._busy = False
        self._out: list[bytes] = []
        self._watch: Watch | None = None
        self._delayed: asyncio.TimerHandle | None = None
        self._congested = False
        self._closing = False

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=_HIGH_WATER_BYTES)
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.discard(self)
        self._closing = True
        self._waiting.clear()
        if self._watch is not None:
            self._watch.stop()
            self._watch = None
        if self._delayed is not None:
            self._delayed.cancel()
        self._transport = None

    def data_received(self, data: bytes) -> None:
        if self._closing:
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            # The upgrade was not taken: what follows the request is the next one, for a parser that has not stopped.
            self._parser = httptools.HttpRequestParser(self)
            if rest := data[upgrade.args[0] :]:
                self.data_received(rest)
        except httptools.HttpParserCallbackError:
            # The parser wraps whatever is raised while a request is served; routes.py never raises, so this is a bug.
            log.exception("connection closed: a request could not be served")
            self._fail(500, b"the request could not be served; the server's log says why")
        except httptools.HttpParserError as error:
            self._fail(400, str(error).encode())
        self._write_out()

    def pause_writing(self) -> None:
        self._congested = True

    def resume_writing(self) -> None:
        self._congested = False
        if self._watch is not None:
            self._watch.resume()

    # httptools

    def on_message_begin(self) -> None:
        self._request = Request()
        self._body = []
        self._body_size = 0
        self._url = b""

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        size = len(name)
        if size == 6 and name.lower() == b"accept":
            text = value.decode("latin-1")
            self._request.accept = f"{self._request.accept},{text}" if self._request.accept else text
        elif size == 12 and name.lower() == b"content-type":
            self._request.content_type = value.decode("latin-1")
        elif size == 13 and name.lower() == b"authorization":
            self._request.authorization = value.decode("latin-1")
        elif size == 6 and name.lower() == b"expect" and value.lower() == b"100-continue":
            self._out.append(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        self._body_size += len(body)
        if self._body_size <= BODY_LIMIT_BYTES:
            self._body.append(body)

    def on_message_complete(self) -> None:
        request = self._request
        request.method = self._parser.get_method().decode("ascii")
        request.keep_alive = self._parser.should_keep_alive()
        path, _, query = self._url.partition(b"?")
        request.path = path.decode("latin-1")
        request.query = query.decode("latin-1")
        body = self._body
        request.body = body[0] if len(body) == 1 else b"".join(body)
        if self._closing:
            return
        if self._body_size > BODY_LIMIT_BYTES:
            request.keep_alive = False
            self._write_answer(request, self._application.too_large())
        elif self._busy:
            self._waiting.append(request)
        else:
            self._serve(request)

    # A request's way to its answer

    def _serve(self, request: Request) -> None:
        rule = self._application.fault(request)
        if rule is None:
            self._answer(request)
        elif rule.latency_seconds > 0:
            self._busy = True
            self._delayed = self._loop.call_later(rule.latency_seconds, self._serve_late, request, rule)
        else:
            self._serve_disturbed(request, rule)

    def _serve_late(self, request: Request, rule: Rule) -> None:
        self._busy = False
        self._delayed = None
        self._serve_disturbed(request, rule)
        self._serve_waiting()
        self._write_out()

    def _serve_disturbed(self, request: Request, rule: Rule) -> None:
        if rule.cut_before_answer:
            self.cut()
        elif rule.status is not None:
            self._write_answer(request, self._application.refuse(rule))
        elif rule.cut_after_answer:
            self._application.handle(request)
            self._application.settle()
            self.cut()
        else:
            self._answer(request)

    def _answer(self, request: Request) -> None:
        answer = self._application.handle(request)
        if isinstance(answer, Answer):
            self._write_answer(request, answer)
            return
        self._busy = True
        self._watch = answer
        self._out.append(_stream_head(answer.form.content_type))
        self._write_out()
        answer.start(self, self._loop)

    def _serve_waiting(self) -> None:
        while self._waiting and not self._busy and not self._closing:
            self._serve(self._waiting.popleft())

    def _write_answer(self, request: Request, answer: Answer) -> None:
        head = _head(answer.code, answer.content_type, request.keep_alive, answer.retry_after_seconds)
        self._out.append(b"%b%d\r\n\r\n" % (head, len(answer.body)))
        if request.method != "HEAD":
            self._out.append(answer.body)
        if not request.keep_alive:
            self._close()

    def _write_out(self) -> None:
        if not self._out or self._transport is None:
            return
        self._application.settle()
        out, self._out = self._out, []
        self._transport.write(b"".join(out))

    def _close(self) -> None:
        self._write_out()
        self._closing = True
        if self._transport is not None:
            self._transport.close()

    def _fail(self, code: int, why: bytes) -> None:
        head = _head(code, b"text/plain; charset=utf-8", False, None)
        self._out.append(b"%b%d\r\n\r\n%b" % (head, len(why), why))
        self._close()

    # Sink of a watch

    @property
    def congested(self) -> bool:
        """Whether the client reads too slowly to be sent more now."""
        return self._congested

    def send(self, data: bytes) -> None:
        """Send one chunk of the stream."""
        if self._transport is not None:
            self._transport.write(b"%x\r\n%b\r\n" % (len(data), data))

    def finish(self) -> None:
        """End the stream, and serve what came behind it."""
        self._watch = None
        self._busy = False
        self._out.append(b"0\r\n\r\n")
        self._serve_waiting()
        self._write_out()

    def cut(self) -> None:
        """Drop the connection without a word."""
        self._closing = True
        self._out.clear()
        if self._transport is not None:
            self._transport.abort()

    def shut(self) -> None:
        """Close the connection because the server stops: what is written still goes out."""
        self._close()


@lru_cache(maxsize=256)
def _head(code: int, content_type: bytes, keep_alive: bool, retry_after_seconds: int | None) -> bytes:
    """The head of an answer up to the value of Content-Length."""
    lines = [b"HTTP/1.1 %d %b" % (code, HTTPStatus(code).phrase.encode()), b"Content-Type: " + content_type]
    if retry_after_seconds is not None:
        lines.append(b"Retry-After: %d" % retry_after_seconds)
    if not keep_alive:
        lines.append(b"Connection: close")
    lines.append(b"Content-Length: ")
    return b"\r\n".join(lines)


@lru_cache(maxsize=16)
def _stream_head(content_type: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nTransfer-Encoding: chunked\r\n\r\n" % content_type
