"""Requests: credentials, rate, what is tried again, and what a wrong server is called."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ksched.api import client as client_module
from ksched.api.client import Client, segment, target
from ksched.api.http1 import Response
from ksched.api.kubeconfig import Access, Address
from ksched.api.transport import Priority
from ksched.errors import ApiError, ClientError, ConnectionFailed, KubeconfigError
from tests.api.certificates import Authority
from tests.api.rawserver import CHUNKED, RawServer, Seen, answering, chunk, failure, on_loop, reply, status
from tests.api.test_transport import free_port


@dataclass
class Tokens:
    """A source of credentials that gives one token after another."""

    url: str
    tokens: list[str] = field(default_factory=lambda: ["one", "two", "three"])
    loads: int = 0

    async def load(self) -> Access:
        self.loads += 1
        if not self.tokens:
            raise KubeconfigError("no more tokens")
        return Access("test", self.url, authorization=f"Bearer {self.tokens.pop(0)}")


async def connected(server: RawServer, source: Any = None, **options: Any) -> Client:
    source = source or Address(server.url)
    return Client(await source.load(), source, rng=random.Random(1), sweep_seconds=0.01, **options)


def scripted(*answers: bytes | None) -> Callable[[Seen], bytes | None]:
    """One answer after another; the last one stays."""
    left = list(answers)
    return lambda seen: left.pop(0) if len(left) > 1 else left[0]


@on_loop
async def test_the_headers_of_every_request() -> None:
    async with answering(lambda seen: reply(200, {})) as server:
        client = await connected(server, Tokens(server.url))
        await client.json("GET", "/api/v1/pods", query={"limit": "5", "fieldSelector": "a!=b,c!=d"})
        await client.close()
    [seen] = server.seen
    assert seen.target == "/api/v1/pods?fieldSelector=a%21%3Db%2Cc%21%3Dd&limit=5"
    assert seen.headers == {
        "host": f"127.0.0.1:{server.port}",
        "user-agent": client_module.USER_AGENT,
        "accept": "application/json",
        "authorization": "Bearer one",
    }


@on_loop
async def test_an_error_is_raised_with_its_status() -> None:
    async with answering(lambda seen: failure(404, "NotFound", 'pods "a" not found')) as server:
        client = await connected(server)
        with pytest.raises(ApiError) as refused:
            await client.json("GET", "/api/v1/namespaces/n/pods/a")
        await client.close()
    assert (refused.value.code, refused.value.reason, str(refused.value)) == (404, "NotFound", 'pods "a" not found')


@on_loop
async def test_an_answer_that_is_not_json() -> None:
    async with answering(lambda seen: reply(200, b"<html>")) as server:
        client = await connected(server)
        with pytest.raises(ClientError, match="GET /x: the answer is not JSON: b'<html>'"):
            await client.json("GET", "/x")
        await client.close()


@pytest.mark.parametrize(
    ("method", "answers", "status", "tries"),
    [
        pytest.param("GET", [failure(500, "InternalError"), reply()], 200, 2, id="a read is tried again after 500"),
        pytest.param("GET", [failure(503, "ServiceUnavailable", Retry_After="0"), reply()], 200, 2, id="after 503"),
        pytest.param("GET", [failure(500, "InternalError")], 500, 5, id="but not for ever"),
        pytest.param("POST", [failure(500, "InternalError"), reply()], 500, 1, id="a write after 500 is the caller's"),
        pytest.param(
            "POST", [failure(429, "TooManyRequests", Retry_After="0"), reply()], 200, 2, id="429 is obeyed for writes"
        ),
        pytest.param("POST", [failure(429, "TooManyRequests"), reply(201)], 201, 2, id="429 without Retry-After"),
        pytest.param(
            "POST",
            [reply(429, status(429, "X", retryAfterSeconds=0)), reply(201)],
            201,
            2,
            id="429 with it in the Status",
        ),
        pytest.param("GET", [failure(404, "NotFound")], 404, 1, id="404 is an answer"),
        pytest.param("GET", [None, None, None, None, reply()], 200, 5, id="a cut connection"),
    ],
)
@on_loop
async def test_what_is_tried_again(method: str, answers: list[bytes | None], status: int, tries: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client_module, "FIRST_DELAY_SECONDS", 0.005)
        async with answering(scripted(*answers)) as server:
            client = await connected(server)
            answer = await client.request(method, "/x", body=b"{}" if method == "POST" else None)
            await client.close()
    assert answer.status == status
    assert len(server.seen) == tries


@on_loop
async def test_429_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "MAX_THROTTLED", 3)
    async with answering(lambda seen: failure(429, "TooManyRequests", Retry_After="0")) as server:
        client = await connected(server)
        assert (await client.request("POST", "/x", body=b"{}")).status == 429
        counters = client.counters
        await client.close()
    assert len(server.seen) == 4
    assert (counters.throttled, counters.answers) == (3, {("POST", 429): 4})


@on_loop
async def test_a_write_that_was_cut_is_the_callers() -> None:
    async with answering(lambda seen: None) as server:
        client = await connected(server)
        with pytest.raises(ConnectionFailed) as cut:
            await client.request("POST", "/x", body=b"{}")
        await client.close()
    assert cut.value.sent
    assert len(server.seen) == 1


def accepting(token: str) -> Callable[[Seen], bytes]:
    return lambda seen: (
        reply() if seen.headers.get("authorization") == f"Bearer {token}" else failure(401, "Unauthorized")
    )


@on_loop
async def test_401_gets_fresh_credentials_once_for_everyone() -> None:
    async with answering(accepting("two")) as server:
        source = Tokens(server.url)
        client = await connected(server, source)
        answers = await asyncio.gather(*(client.request("POST", f"/{number}", body=b"{}") for number in range(10)))
        await client.close()
    assert {answer.status for answer in answers} == {200}
    assert source.loads == 2


@pytest.mark.parametrize("tokens", [["one", "two", "three"], ["one"]], ids=["refused again", "cannot be loaded"])
@on_loop
async def test_401_is_an_answer_when_fresh_credentials_do_not_help(tokens: list[str]) -> None:
    async with answering(accepting("never")) as server:
        client = await connected(server, Tokens(server.url, list(tokens)))
        answer = await client.request("GET", "/x")
        await client.close()
    assert answer.status == 401
    assert len(server.seen) == 2


@on_loop
async def test_a_watch_gets_fresh_credentials_too() -> None:
    def answer(seen: Seen) -> bytes:
        return (
            CHUNKED + chunk(b"data") + chunk(b"")
            if seen.headers["authorization"] == "Bearer two"
            else failure(401, "X")
        )

    pieces: list[bytes] = []
    async with answering(answer) as server:
        client = await connected(server, Tokens(server.url))
        await client.stream("/w", query={"watch": "true"}, on_data=pieces.append, silence_seconds=5, timeout_seconds=5)
        await client.close()
    assert pieces == [b"data"]


@on_loop
async def test_a_replaced_token_file_is_used_before_the_server_complains(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old")

    class FromFile:
        async def load(self) -> Access:
            return Access("test", server.url, authorization=f"Bearer {token.read_text()}", watched_files=(str(token),))

    async with answering(lambda seen: reply()) as server:
        client = await connected(server, FromFile(), files_seconds=0.01)
        await client.request("GET", "/1")
        token.write_text("newer")
        while not client.counters.reloaded:  # noqa: ASYNC110 - the client has no event for it
            await asyncio.sleep(0.005)
        await client.request("GET", "/2")
        await client.close()
    assert [seen.headers["authorization"] for seen in server.seen] == ["Bearer old", "Bearer newer"]


@on_loop
async def test_client_certificates(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.sign("me")
    async with answering(
        lambda seen: reply(200, {"gitVersion": "v1.36.0"}), tls=authority.server_context(clients=True)
    ) as server:
        access = Access(
            "test",
            f"https://127.0.0.1:{server.port}",
            ca_file=str(authority.ca),
            cert_file=str(certificate),
            key_file=str(key),
        )
        client = Client(access, Address(access.server))
        assert await client.check() == {"gitVersion": "v1.36.0"}
        await client.close()


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        pytest.param(
            reply(200, b"<html>hello"),
            "is not a Kubernetes API server: expected a version .* got 200 b'<html>hello'",
            id="a web page",
        ),
        pytest.param(
            reply(404, b"not here"), "is not a Kubernetes API server: .* got 404 b'not here'", id="another server"
        ),
        pytest.param(reply(200, [1]), "is not a Kubernetes API server", id="other JSON"),
        pytest.param(b"SSH-2.0-OpenSSH\r\n", "the answer is not HTTP", id="not even HTTP"),
        pytest.param(
            failure(401, "Unauthorized"), r"the server refused the credentials \(401 Unauthorized\)", id="unauthorized"
        ),
        pytest.param(
            failure(403, "Forbidden", "no way"), r"GET /version was answered with no way \(403\)", id="forbidden"
        ),
    ],
)
@on_loop
async def test_a_server_that_is_not_ours(answer: bytes, complaint: str) -> None:
    async with answering(lambda seen: answer) as server:
        client = await connected(server)
        with pytest.raises(KubeconfigError, match=complaint) as refused:
            await client.check()
        await client.close()
    assert "\n" not in str(refused.value)
    assert str(server.port) in str(refused.value)


@on_loop
async def test_a_port_where_nothing_listens() -> None:
    source = Address(f"http://127.0.0.1:{free_port()}")
    client = Client(await source.load(), source)
    with pytest.raises(
        KubeconfigError, match=r"^--master: http://127.0.0.1:\d+: connection refused: nothing listens there$"
    ):
        await client.check()
    await client.close()


@on_loop
async def test_a_name_where_nothing_listens() -> None:
    source = Address(f"http://localhost:{free_port()}")
    client = Client(await source.load(), source)
    with pytest.raises(KubeconfigError, match=r"http://localhost:\d+: connection refused: nothing listens there$"):
        await client.check()
    await client.close()


@on_loop
async def test_a_name_that_is_none() -> None:
    source = Address("http://no-such-host.invalid:1")
    client = Client(await source.load(), source)
    with pytest.raises(KubeconfigError, match=r"http://no-such-host.invalid:1: the host name cannot be resolved: "):
        await client.check()
    await client.close()


@on_loop
async def test_the_wrong_authority(tmp_path: Path) -> None:
    theirs, ours = Authority(tmp_path / "a"), Authority(tmp_path / "b")
    async with answering(lambda seen: reply(), tls=theirs.server_context()) as server:
        access = Access("kubeconfig x", f"https://127.0.0.1:{server.port}", ca_file=str(ours.ca))
        client = Client(access, Address(access.server))
        with pytest.raises(
            KubeconfigError, match=r"^kubeconfig x: https://127.0.0.1:\d+: the server's certificate is not trusted: "
        ):
            await client.check()
        await client.close()


@on_loop
async def test_the_rate_is_obeyed_and_the_more_urgent_goes_first() -> None:
    async with answering(lambda seen: reply()) as server:
        client = await connected(server, qps=100.0, burst=5)
        loop = asyncio.get_running_loop()
        start = loop.time()
        order = [*[Priority.STATUS] * 10, *[Priority.BIND] * 10]
        calls = (client.request("POST", f"/{priority.name}", body=b"{}", priority=priority) for priority in order)
        await asyncio.gather(*calls)
        took = loop.time() - start
        limited = client.counters.rate_limited
        await client.close()
    assert took > 0.14
    assert limited == 15
    assert [seen.target for seen in server.seen][5:15] == ["/BIND"] * 10


@on_loop
async def test_events_have_a_rate_of_their_own() -> None:
    async with answering(lambda seen: reply()) as server:
        client = await connected(server, qps=100.0, burst=5)
        order = [*[Priority.EVENT] * 5, *[Priority.BIND] * 5]
        await asyncio.gather(*(client.request("POST", "/", body=b"{}", priority=priority) for priority in order))
        limited = client.counters.rate_limited
        await client.close()
    assert limited == 0


@on_loop
async def test_a_path_of_the_server_comes_first() -> None:
    async with answering(lambda seen: reply(200, {})) as server:
        client = await connected(server, Address(f"{server.url}/k8s/clusters/one/"))
        await client.json("GET", "/version")
        await client.close()
    assert server.seen[0].target == "/k8s/clusters/one/version"


@on_loop
async def test_closing_tells_everyone_who_waits() -> None:
    async with answering(lambda seen: failure(429, "TooManyRequests", Retry_After="20")) as server:
        client = await connected(server, qps=1.0, burst=1)
        outcomes: list[Any] = []
        client.send("POST", "/throttled", b"{}", on_done=outcomes.append)
        client.send("POST", "/limited", b"{}", on_done=outcomes.append)
        await server.until(lambda: server.seen)
        await asyncio.sleep(0.02)
        await client.close()
    assert [type(outcome) for outcome in outcomes] == [ConnectionFailed] * 2


@on_loop
async def test_giving_up_waiting_gives_up_the_request() -> None:
    gate = asyncio.Event()

    async def answer(seen: Seen) -> bytes:
        if seen.target == "/hold":
            await gate.wait()
        return reply()

    async with answering(answer) as server:
        client = await connected(server, connections=1)
        held = asyncio.ensure_future(client.request("GET", "/hold"))
        await server.until(lambda: server.seen)
        held.cancel()
        assert isinstance(await client.request("GET", "/next"), Response)
        await client.close()
    assert held.cancelled()


def test_segments_and_targets() -> None:
    assert segment("node-1.example.com") == "node-1.example.com"
    assert segment("a/b c?") == "a%2Fb%20c%3F"
    assert (
        target("/api/v1/pods", {"watch": "true", "allowWatchBookmarks": "true"})
        == "/api/v1/pods?allowWatchBookmarks=true&watch=true"
    )
    for bad in ("api", "/a b", "/a\r\nX: y", "/\u00e9"):
        with pytest.raises(ValueError, match="not a path"):
            target(bad)
