"""Answers are the same however the network cuts their bytes."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksched.api.http1 import Response, ResponseReader, parse_headers, request_bytes
from ksched.errors import ConnectionFailed

PLAIN = b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 11\r\nX-One: 1\r\n\r\nhello world"
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nRetry-After: 7\r\n\r\n"
    b"5\r\nhello\r\n6\r\n world\r\n0\r\nTrailer: x\r\n\r\n"
)
EMPTY = b"HTTP/1.1 204 No Content\r\nX-Two: 2\r\n\r\n"
ANNOUNCED = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + PLAIN
CLOSING = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"


def read(pieces: list[bytes]) -> list[tuple[int, bytes, dict[str, str], bool]]:
    reader = ResponseReader()
    answers = []
    for piece in pieces:
        if reader.feed(piece):
            keep_alive = reader.keep_alive
            answer = reader.take()
            answers.append((answer.status, answer.body, answer.headers, keep_alive))
    return answers


@pytest.mark.parametrize(
    ("raw", "status", "body", "header", "keep_alive"),
    [
        pytest.param(PLAIN, 201, b"hello world", ("x-one", "1"), True, id="a body with a length"),
        pytest.param(CHUNKED, 200, b"hello world", ("retry-after", "7"), True, id="a chunked body"),
        pytest.param(EMPTY, 204, b"", ("x-two", "2"), True, id="no body"),
        pytest.param(ANNOUNCED, 201, b"hello world", ("x-one", "1"), True, id="an answer after an announcement"),
        pytest.param(CLOSING, 200, b"ok", ("connection", "close"), False, id="the last answer of a connection"),
    ],
)
@given(cuts=st.sets(st.integers(1, 200), max_size=12))
def test_any_cut_of_the_bytes_gives_the_same_answer(
    raw: bytes, status: int, body: bytes, header: tuple[str, str], keep_alive: bool, cuts: set[int]
) -> None:
    edges = [0, *sorted(cut for cut in cuts if cut < len(raw)), len(raw)]
    pieces = [raw[start:end] for start, end in itertools.pairwise(edges)]
    [answer] = read(pieces)
    assert answer[:2] == (status, body)
    assert answer[2][header[0]] == header[1]
    assert answer[3] is keep_alive


def test_one_byte_at_a_time() -> None:
    [answer] = read([bytes([byte]) for byte in CHUNKED])
    assert answer[:2] == (200, b"hello world")


def test_a_reader_reads_one_answer_after_another() -> None:
    assert [answer[0] for answer in read([PLAIN, EMPTY, CHUNKED, PLAIN])] == [201, 204, 200, 201]


@pytest.mark.parametrize(
    ("pieces", "complaint"),
    [
        pytest.param([b"SSH-2.0-OpenSSH_9.2\r\n"], "the answer is not HTTP", id="another protocol"),
        pytest.param([b"\x15\x03\x01\x00\x02\x02"], "the answer is not HTTP", id="a TLS alert"),
        pytest.param([PLAIN + PLAIN], "beyond the end", id="an answer that nobody asked for"),
        pytest.param(
            [b"HTTP/1.1 200 OK\r\n", *[b"X: " + b"y" * 60_000 + b"\r\n"] * 6], "no end of the headers", id="headers"
        ),
        pytest.param([b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"], "not HTTP", id="a bad chunk"),
    ],
)
def test_what_is_no_answer_is_refused(pieces: list[bytes], complaint: str) -> None:
    with pytest.raises(ConnectionFailed, match=complaint):
        read(pieces)


@pytest.mark.parametrize(
    ("raw", "ends"),
    [
        pytest.param(b"HTTP/1.1 200 OK\r\n\r\nall of it", True, id="a body without a length ends with the connection"),
        pytest.param(PLAIN[:-3], False, id="a body with a length does not"),
        pytest.param(CHUNKED[:-9], False, id="a chunked body does not"),
        pytest.param(b"HTTP/1.1 200 OK\r\nX: y\r\n", False, id="headers do not"),
        pytest.param(b"", False, id="nothing is no answer"),
    ],
)
def test_a_closed_connection(raw: bytes, ends: bool) -> None:
    reader = ResponseReader()
    if raw:
        reader.feed(raw)
    assert reader.finish() is ends


@pytest.mark.parametrize(
    ("response", "seconds"),
    [
        pytest.param(Response(429, b"HTTP/1.1 429 X\r\nRetry-After: 3\r\n\r\n", b""), 3.0, id="the header"),
        pytest.param(
            Response(429, b"HTTP/1.1 429 X\r\n\r\n", b'{"status":"Failure","details":{"retryAfterSeconds":2}}'),
            2.0,
            id="the Status",
        ),
        pytest.param(Response(429, b"HTTP/1.1 429 X\r\nRetry-After: soon\r\n\r\n", b""), None, id="neither"),
    ],
)
def test_when_to_come_back(response: Response, seconds: float | None) -> None:
    assert response.retry_after_seconds == seconds


def test_an_error_says_what_the_server_said() -> None:
    error = Response(
        409, b"HTTP/1.1 409 X\r\n\r\n", b'{"status":"Failure","reason":"Conflict","message":"taken","code":409}'
    ).error()
    assert (error.code, error.reason, error.message) == (409, "Conflict", "taken")
    assert Response(502, b"HTTP/1.1 502 X\r\n\r\n", b"<html>bad gateway").error().message == "<html>bad gateway"


def test_a_request_as_bytes() -> None:
    assert request_bytes("GET", "/x", "Host: h\r\n", "", None) == b"GET /x HTTP/1.1\r\nHost: h\r\n\r\n"
    assert request_bytes("POST", "/x", "Host: h\r\n", "application/json", b"{}") == (
        b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
    )


def test_headers_without_a_value() -> None:
    assert parse_headers(b"HTTP/1.1 200 OK\r\nA:\r\nB: c: d\r\n\r\nbody: no") == {"a": "", "b": "c: d"}
