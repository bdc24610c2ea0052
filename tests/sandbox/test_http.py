"""HTTP on the wire: what is sent byte by byte, and what comes back in which order."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator

import pytest

from .wire import NODES, PODS, Client, node, pod


class Raw:
    """A socket, for requests that no HTTP library would write."""

    def __init__(self, client: Client) -> None:
        host, _, port = client.address.partition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=10)
        self.received = b""

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def until(self, end: bytes) -> bytes:
        """Everything up to and including `end`."""
        while end not in self.received:
            piece = self.socket.recv(65536)
            assert piece, f"closed before {end!r}: {self.received!r}"
            self.received += piece
        at = self.received.index(end) + len(end)
        found, self.received = self.received[:at], self.received[at:]
        return found

    def answer(self) -> tuple[int, bytes]:
        """The next whole answer: its code and body."""
        head = self.until(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        while len(self.received) < length:
            self.received += self.socket.recv(65536)
        body, self.received = self.received[:length], self.received[length:]
        return int(head.split()[1]), body

    def ended(self) -> bool:
        """Whether the server has closed the connection."""
        return self.socket.recv(1) == b""

    def close(self) -> None:
        self.socket.close()


@pytest.fixture
def raw(client: Client) -> Iterator[Raw]:
    opened = Raw(client)
    yield opened
    opened.close()


def get(path: str, *headers: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: sandbox", *headers, "", ""]).encode()


def post(path: str, body: bytes, *headers: str) -> bytes:
    length = f"Content-Length: {len(body)}"
    lines = [f"POST {path} HTTP/1.1", "Host: sandbox", "Content-Type: application/json", length, *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def test_a_connection_serves_one_request_after_another(raw: Raw) -> None:
    for _ in range(3):
        raw.send(get("/version"))
        assert raw.answer()[0] == 200


def test_pipelined_requests_are_answered_in_order(raw: Raw) -> None:
    raw.send(get("/healthz") + get("/api/v1/nodes/node-1") + get("/api/v1/nodes/nobody") + get("/livez"))
    assert [raw.answer()[0] for _ in range(4)] == [200, 200, 404, 200]


def test_requests_behind_a_slow_one_wait_for_it(client: Client, raw: Raw) -> None:
    client.post("/sandbox/faults", {"rules": [{"path": "/nodes/node-1$", "latency_seconds": 0.2, "count": 1}]})
    began = time.monotonic()
    raw.send(get("/api/v1/nodes/node-1") + get("/healthz"))
    assert json.loads(raw.answer()[1])["metadata"]["name"] == "node-1"
    assert time.monotonic() - began >= 0.2
    assert raw.answer()[1] == b"ok"


def test_a_request_may_come_in_pieces(raw: Raw) -> None:
    request = post(PODS, json.dumps(pod("slow")).encode())
    for at in range(0, len(request), 40):
        raw.send(request[at : at + 40])
        time.sleep(0.001)
    assert raw.answer()[0] == 201


def test_a_chunked_body_is_put_together(raw: Raw) -> None:
    body = json.dumps(pod("chunked")).encode()
    head = f"POST {PODS} HTTP/1.1\r\nHost: sandbox\r\nContent-Type: application/json\r\n"
    raw.send(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
    for piece in (body[:50], body[50:]):
        raw.send(b"%x\r\n%b\r\n" % (len(piece), piece))
    raw.send(b"0\r\n\r\n")
    code, created = raw.answer()
    assert (code, json.loads(created)["metadata"]["name"]) == (201, "chunked")


def test_a_client_that_waits_for_100_continue_gets_it(raw: Raw) -> None:
    request = post(PODS, json.dumps(pod("polite")).encode(), "Expect: 100-continue")
    head, _, body = request.partition(b"\r\n\r\n")
    raw.send(head + b"\r\n\r\n")
    assert raw.until(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    raw.send(body)
    assert raw.answer()[0] == 201


def test_connection_close_is_obeyed(raw: Raw) -> None:
    raw.send(get("/healthz", "Connection: close"))
    assert raw.answer()[1] == b"ok"
    assert raw.ended()


def test_a_body_beyond_three_megabytes_is_refused(raw: Raw) -> None:
    big = node("big", annotations={"filler": "x" * (3 * 1024 * 1024)})
    raw.send(post(NODES, json.dumps(big).encode()))
    code, body = raw.answer()
    assert (code, json.loads(body)["reason"]) == (413, "RequestEntityTooLarge")
    assert raw.ended()


@pytest.mark.parametrize(
    "request_bytes",
    [
        pytest.param(b"HELLO\r\n\r\n", id="not HTTP"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00", id="a TLS client hello"),
    ],
)
def test_what_is_not_a_request_is_answered_400_and_the_connection_closed(raw: Raw, request_bytes: bytes) -> None:
    raw.send(request_bytes)
    assert b" 400 " in raw.until(b"\r\n\r\n")


def test_a_bug_while_serving_is_a_500_in_the_log_and_not_the_clients_fault(
    raw: Raw, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("ksched.sandbox.routes.Routes.fault", broken)
    raw.send(get("/healthz"))
    assert raw.answer()[0] == 500
    assert raw.ended()
    assert "a bug" in caplog.text


def test_an_upgrade_is_not_taken_and_the_request_answered(raw: Raw) -> None:
    raw.send(get("/healthz", "Connection: Upgrade", "Upgrade: h2c") + get("/livez"))
    for _ in range(2):
        assert raw.answer() == (200, b"ok")
    raw.send(get("/readyz"))
    assert raw.answer() == (200, b"ok")


def test_an_answer_to_head_has_no_body(raw: Raw) -> None:
    raw.send(b"HEAD /healthz HTTP/1.1\r\nHost: sandbox\r\n\r\n" + get("/version"))
    assert b"Content-Length: 2\r\n" in raw.until(b"\r\n\r\n")
    assert json.loads(raw.answer()[1])["major"] == "1"


def test_a_watch_stream_ends_and_the_connection_goes_on(raw: Raw) -> None:
    raw.send(get("/api/v1/nodes?watch=true&resourceVersion=0&timeoutSeconds=1") + get("/healthz"))
    stream = raw.until(b"0\r\n\r\n")
    assert b"Transfer-Encoding: chunked" in stream
    assert stream.count(b'"type":"ADDED"') == 2
    assert raw.answer() == (200, b"ok")


def test_a_watcher_that_does_not_read_misses_nothing(client: Client, raw: Raw) -> None:
    raw.send(get("/api/v1/namespaces/default/configmaps?watch=true&timeoutSeconds=2"))
    raw.until(b"\r\n\r\n")
    filler = "x" * 200_000
    for number in range(60):
        client.post(
            "/api/v1/namespaces/default/configmaps", {"metadata": {"name": f"map-{number}"}, "data": {"x": filler}}
        )
    stream = raw.until(b"0\r\n\r\n")
    lines = [json.loads(line) for line in unchunked(stream).splitlines()]
    assert [line["object"]["metadata"]["name"] for line in lines] == [f"map-{number}" for number in range(60)]


def unchunked(stream: bytes) -> bytes:
    """The content of a chunked body."""
    content = b""
    while stream:
        size, _, rest = stream.partition(b"\r\n")
        content += rest[: int(size, 16)]
        stream = rest[int(size, 16) + 2 :]
    return content


def test_a_watcher_that_goes_away_is_forgotten(client: Client) -> None:
    stream = client.watch(PODS)
    assert client.get("/sandbox/stats")["watchers"] == 1
    stream.close()
    deadline = time.monotonic() + 5
    while client.get("/sandbox/stats")["watchers"]:
        assert time.monotonic() < deadline
        time.sleep(0.01)
