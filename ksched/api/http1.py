"""HTTP/1.1 as bytes: request heads out, answers in; no I/O.

`ResponseReader` takes bytes in pieces of any size and keeps the state of one answer at a time: nothing is pipelined, so
bytes beyond the end of an answer are a fault. Headers are not parsed unless someone asks: a bind's answer is read for
its status and body alone, and skipping the rest is a third of its cost. `transport` gives this its socket.
"""

from __future__ import annotations

from httptools import HttpParserError, HttpResponseParser

from ksched.api.decode import status_of
from ksched.errors import ApiError, ConnectionFailed

MAX_HEAD_BYTES = 256 * 1024
"""What a server may send before the end of its headers; more is not an API server's answer."""


class Response:
    """An answer: its status, its body, and its headers when asked for."""

    __slots__ = ("_head", "_headers", "body", "status")

    def __init__(self, status: int, head: bytes, body: bytes) -> None:
        self.status = status
        self.body = body
        self._head = head
        self._headers: dict[str, str] | None = None

    def __repr__(self) -> str:
        return f"Response({self.status}, {len(self.body)} bytes)"

    @property
    def ok(self) -> bool:
        """Whether the request succeeded."""
        return 200 <= self.status < 300

    @property
    def headers(self) -> dict[str, str]:
        """The headers by lower-case name; the last one of a name wins."""
        if self._headers is None:
            self._headers = parse_headers(self._head)
        return self._headers

    @property
    def retry_after_seconds(self) -> float | None:
        """How long the server asks to stay away, from Retry-After or the `Status`. Kubernetes sends no dates."""
        header = self.headers.get("retry-after", "")
        if header.isdigit():
            return float(header)
        status = status_of(self.body)
        if status is not None and status.details is not None and status.details.retry_after_seconds is not None:
            return float(max(0, status.details.retry_after_seconds))
        return None

    def error(self) -> ApiError:
        """The answer as an exception, with what its `Status` says."""
        status = status_of(self.body)
        if status is None:
            text = self.body[:200].decode("utf-8", "replace").strip()
            return ApiError(self.status, "", text, retry_after_seconds=self.retry_after_seconds)
        return ApiError(self.status, status.reason, status.message, retry_after_seconds=self.retry_after_seconds)


class ResponseReader:
    """Reads one answer after another from one connection.

    `feed` returns True when the answer is complete; `take` hands it out and makes room for the next one. A streaming
    reader calls `take_body` after each `feed` instead of waiting for the end.
    """

    __slots__ = (
        "_head",
        "_head_bytes",
        "_heads_done",
        "_parser",
        "_surplus",
        "chunks",
        "complete",
        "keep_alive",
        "started",
        "status",
    )

    def __init__(self) -> None:
        self._parser = HttpResponseParser(self)
        self._reset()

    def _reset(self) -> None:
        self.status = 0
        self.chunks: list[bytes] = []
        self.complete = False
        self.keep_alive = False
        self.started = False
        self._heads_done = False
        self._surplus = False
        self._head: list[bytes] = []
        self._head_bytes = 0

    def feed(self, data: bytes) -> bool:
        """Take what came; True when the answer is complete. Raises ConnectionFailed when it is not HTTP."""
        self.started = True
        if not self._heads_done:
            self._head.append(data)
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES and len(self._head) > 1:
                raise ConnectionFailed(f"the answer is not HTTP: no end of the headers after {self._head_bytes} bytes")
        try:
            self._parser.feed_data(data)
        except HttpParserError as error:
            raise ConnectionFailed(f"the answer is not HTTP: {error}: {data[:40]!r}") from None
        if self._surplus:
            raise ConnectionFailed("the server sent bytes beyond the end of its answer")
        return self.complete

    def finish(self) -> bool:
        """The server closed the connection: True when that was the end of an answer without a length."""
        if not self._heads_done or self.complete:
            return False
        headers = parse_headers(b"".join(self._head))
        self.complete = "content-length" not in headers and "transfer-encoding" not in headers
        return self.complete

    def take(self) -> Response:
        """The complete answer; the reader is ready for the next one."""
        chunks = self.chunks
        body = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        heads = self._head
        response = Response(self.status, heads[0] if len(heads) == 1 else b"".join(heads), body)
        self._reset()
        return response

    def take_body(self) -> bytes:
        """What came of the body since the last call."""
        chunks = self.chunks
        if not chunks:
            return b""
        self.chunks = []
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    @property
    def has_head(self) -> bool:
        """Whether status and headers are complete."""
        return self._heads_done

    # What the parser calls.

    def on_message_begin(self) -> None:
        if self.complete:
            self._surplus = True

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status >= 200 and not self.complete:
            self.status = status
            self._heads_done = True

    def on_body(self, data: bytes) -> None:
        self.chunks.append(data)

    def on_message_complete(self) -> None:
        # 1xx answers are only announcements; the real one follows.
        if self._heads_done:
            self.complete = True
            self.keep_alive = self._parser.should_keep_alive()


def request_bytes(method: str, target: str, headers: str, content_type: str, body: bytes | None) -> bytes:
    """A whole request; `headers` are complete lines that every request on the connection has."""
    if body is None:
        return f"{method} {target} HTTP/1.1\r\n{headers}\r\n".encode("latin-1")
    head = f"{method} {target} HTTP/1.1\r\n{headers}Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode("latin-1") + body


def parse_headers(head: bytes) -> dict[str, str]:
    """Headers by lower-case name from the bytes of an answer that start with its status line."""
    while head.startswith(b"HTTP/1.1 1"):
        head = head.partition(b"\r\n\r\n")[2]
    head = head.partition(b"\r\n\r\n")[0]
    headers: dict[str, str] = {}
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        headers[name.strip().lower().decode("latin-1")] = value.strip().decode("latin-1")
    return headers
