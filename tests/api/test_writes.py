"""A pod is bound once and whoever asked learns the truth, whatever happens to the answers."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from ksched.api import writes as writes_module
from ksched.api.client import Client
from ksched.api.kubeconfig import Address
from ksched.api.writes import BindOutcome, BindResult, WriteOutcome, WriteResult, Writes, bind_body, merged
from tests.api.rawserver import RawServer, Seen, answering, failure, on_loop, reply
from tests.api.test_transport import free_port

CREATED = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


@dataclass
class Cluster:
    """One pod, and a server that misbehaves as it is told: one word per bind; the last one stays."""

    binds: list[str] = field(default_factory=lambda: ["bind"])
    looks: list[str] = field(default_factory=lambda: ["look"])
    node: str = ""
    uid: str = "u1"
    gone: bool = False
    applied: int = 0

    def answer(self, seen: Seen) -> bytes | None:
        if seen.method == "GET":
            return self._look(self.looks.pop(0) if len(self.looks) > 1 else self.looks[0])
        return self._bind(seen, self.binds.pop(0) if len(self.binds) > 1 else self.binds[0])

    def _look(self, word: str) -> bytes | None:
        if word == "cut":
            return None
        if word.isdigit():
            return failure(int(word), "X")
        if word == "nonsense":
            return reply(200, {"metadata": {"name": 1}})
        if self.gone:
            return failure(404, "NotFound")
        spec = {"nodeName": self.node} if self.node else {}
        return reply(200, {"metadata": {"name": "a", "namespace": "n", "uid": self.uid}, "spec": spec})

    def _bind(self, seen: Seen, word: str) -> bytes | None:
        """`bind`, or `CODE` (no effect), or `cut`; `+` after it means that it had its effect all the same."""
        if word == "bind" or word.endswith("+"):
            if self.gone:
                return failure(404, "NotFound", 'pods "a" not found')
            if seen.json["metadata"]["uid"] != self.uid:
                return failure(409, "Conflict", "Precondition failed: UID in precondition: x, UID in object meta: y")
            if self.node:
                return failure(409, "Conflict", f'pod a is already assigned to node "{self.node}"')
            self.node = seen.json["target"]["name"]
            self.applied += 1
        if word == "bind":
            return reply(201, CREATED)
        if word.startswith("cut"):
            return None
        if word == "gone":
            self.gone = True
            return None
        if word == "replaced":
            self.uid = "u2"
            return None
        if word == "taken":
            self.node = "other"
            return None
        return failure(int(word.rstrip("+")), "X", "no", **({"Retry_After": "0"} if word == "429" else {}))


async def writing(server: RawServer, **options: Any) -> tuple[Client, Writes]:
    source = Address(server.url)
    client = Client(await source.load(), source, rng=random.Random(1), sweep_seconds=0.01)
    return client, Writes(client, rng=random.Random(2), **options)


@pytest.mark.parametrize(
    ("cluster", "outcome", "applied"),
    [
        pytest.param(Cluster(), BindOutcome.BOUND, 1, id="bound"),
        pytest.param(Cluster(binds=["cut+"]), BindOutcome.BOUND, 1, id="bound, and the answer cut off"),
        pytest.param(Cluster(binds=["cut", "bind"]), BindOutcome.BOUND, 1, id="cut before it had its effect"),
        pytest.param(Cluster(binds=["500+"]), BindOutcome.BOUND, 1, id="bound, and answered with 500"),
        pytest.param(Cluster(binds=["500", "503", "bind"]), BindOutcome.BOUND, 1, id="500 and 503 without effect"),
        pytest.param(
            Cluster(binds=["504+"], looks=["cut", "500", "look"]), BindOutcome.BOUND, 1, id="looking fails at first"
        ),
        pytest.param(
            Cluster(binds=["cut+"], looks=["nonsense", "look"]),
            BindOutcome.BOUND,
            1,
            id="looking shows nonsense at first",
        ),
        pytest.param(Cluster(binds=["429", "429", "bind"]), BindOutcome.BOUND, 1, id="429 is waited for"),
        pytest.param(Cluster(node="other"), BindOutcome.CONFLICT, 0, id="on another node already"),
        pytest.param(Cluster(uid="u2"), BindOutcome.UID_MISMATCH, 0, id="another pod has the name"),
        pytest.param(Cluster(gone=True), BindOutcome.NOT_FOUND, 0, id="gone"),
        pytest.param(Cluster(binds=["403"]), BindOutcome.REFUSED, 0, id="forbidden"),
        pytest.param(Cluster(binds=["422"]), BindOutcome.REFUSED, 0, id="invalid"),
        pytest.param(Cluster(binds=["gone"]), BindOutcome.NOT_FOUND, 0, id="cut, then gone"),
        pytest.param(Cluster(binds=["replaced"]), BindOutcome.UID_MISMATCH, 0, id="cut, then replaced"),
        pytest.param(Cluster(binds=["taken"]), BindOutcome.CONFLICT, 0, id="cut, then taken by another scheduler"),
        pytest.param(Cluster(binds=["500"]), BindOutcome.REFUSED, 0, id="500 for ever: known to be unbound"),
    ],
)
def test_a_bind_ends_with_the_truth(cluster: Cluster, outcome: BindOutcome, applied: int) -> None:
    server_seen: list[str] = []

    async def bind() -> BindResult:
        async with answering(cluster.answer) as server:
            client, writes = await writing(server)
            result = await writes.bind_pod("n", "a", "u1", "node-1")
            assert writes.in_flight == 0
            await client.close()
            server_seen.extend(server.targets())
            return result

    result = asyncio.run(bind())
    assert result.outcome is outcome
    assert result.bound is (outcome is BindOutcome.BOUND)
    assert cluster.applied == applied
    assert server_seen[0] == "POST /api/v1/namespaces/n/pods/a/binding"
    if outcome is BindOutcome.CONFLICT and len(server_seen) > 1:
        assert result.node == "other"


@on_loop
async def test_a_bind_that_takes_effect_after_looking_is_not_a_conflict() -> None:
    """The first request is still on its way when looking shows no node; the second then conflicts with it."""
    cluster = Cluster(binds=["cut", "bind"])

    def answer(seen: Seen) -> bytes | None:
        answered = cluster.answer(seen)
        if seen.method == "GET":
            cluster.node = "node-1"
        return answered

    async with answering(answer) as server:
        client, writes = await writing(server)
        result = await writes.bind_pod("n", "a", "u1", "node-1")
        await client.close()
    assert result.bound
    assert [target.split()[0] for target in server.targets()] == ["POST", "GET", "POST", "GET"]


@on_loop
async def test_a_bind_without_an_answer_in_time() -> None:
    cluster = Cluster()

    async def answer(seen: Seen) -> bytes | None:
        answered = cluster.answer(seen)
        if seen.method == "POST":
            await asyncio.sleep(1)
        return answered

    async with answering(answer) as server:
        client, writes = await writing(server, timeout_seconds=0.05)
        assert (await writes.bind_pod("n", "a", "u1", "node-1")).bound
        assert writes.counters.looks == 1
        await client.close()


@on_loop
async def test_a_server_that_asks_for_time_gets_it() -> None:
    answers = [failure(503, "ServiceUnavailable", Retry_After="1"), reply(201, CREATED)] * 2
    loop = asyncio.get_running_loop()

    def answer(seen: Seen) -> bytes | None:
        return Cluster().answer(seen) if seen.method == "GET" else answers.pop(0)

    async with answering(answer) as server:
        client, writes = await writing(server)
        start = loop.time()
        assert (await writes.bind_pod("n", "a", "u1", "node-1")).bound
        assert loop.time() - start >= 1.0
        start = loop.time()
        assert [result.outcome for result in await patched(writes, condition("x"))] == [WriteOutcome.DONE]
        assert loop.time() - start >= 1.0
        await client.close()


@on_loop
async def test_nobody_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writes_module, "MAX_LOOKS", 2)
    cluster = Cluster(binds=["cut+"], looks=["403"])
    async with answering(cluster.answer) as server:
        client, writes = await writing(server)
        result = await writes.bind_pod("n", "a", "u1", "node-1")
        await client.close()
    assert result.outcome is BindOutcome.LOST
    assert writes.counters.binds_lost == 1


@on_loop
async def test_no_server_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writes_module, "MAX_BINDS", 2)
    client, writes = await writing(RawServer(free_port()))
    result = await writes.bind_pod("n", "a", "u1", "node-1")
    await client.close()
    assert result.outcome is BindOutcome.REFUSED
    assert "connection refused" in str(result.error)
    assert writes.counters.looks == 0


def test_the_body_of_a_bind() -> None:
    assert bind_body("default", "low-a", "U", "node-000000") == (
        b'{"kind":"Binding","apiVersion":"v1","metadata":{"name":"low-a","namespace":"default","uid":"U"},'
        b'"target":{"kind":"Node","name":"node-000000"}}'
    )


def condition(message: str) -> dict[str, Any]:
    return {"status": {"conditions": [{"type": "PodScheduled", "status": "False", "message": message}]}}


async def patched(writes: Writes, *patches: dict[str, Any]) -> list[WriteResult]:
    results: list[asyncio.Future[WriteResult]] = []
    for patch in patches:
        future: asyncio.Future[WriteResult] = asyncio.get_running_loop().create_future()
        results.append(future)
        writes.patch_pod_status("n", "a", "u1", patch, future.set_result)
    return list(await asyncio.gather(*results))


@pytest.mark.parametrize(
    ("answers", "outcome", "attempts"),
    [
        pytest.param(["200"], WriteOutcome.DONE, 1, id="patched"),
        pytest.param(["409", "500", "503", "200"], WriteOutcome.DONE, 4, id="four attempts"),
        pytest.param(["500"], WriteOutcome.REFUSED, 4, id="but not five"),
        pytest.param(["", "200"], WriteOutcome.DONE, 2, id="a cut connection"),
        pytest.param([""], WriteOutcome.LOST, 4, id="cut each time"),
        pytest.param(["422"], WriteOutcome.REFUSED, 1, id="invalid"),
        pytest.param(["404"], WriteOutcome.NOT_FOUND, 1, id="gone"),
        pytest.param(["429", "200"], WriteOutcome.DONE, 2, id="429 is no attempt"),
    ],
)
@on_loop
async def test_a_status_patch(answers: list[str], outcome: WriteOutcome, attempts: int) -> None:
    left = list(answers)

    def answer(seen: Seen) -> bytes | None:
        word = left.pop(0) if len(left) > 1 else left[0]
        if not word:
            return None
        return reply(200, {}) if word == "200" else failure(int(word), "X", Retry_After="0")

    async with answering(answer) as server:
        client, writes = await writing(server)
        [result] = await patched(writes, condition("x"))
        await client.close()
    assert result.outcome is outcome
    assert len(server.seen) == attempts
    assert server.seen[0].target == "/api/v1/namespaces/n/pods/a/status"
    assert server.seen[0].headers["content-type"] == "application/strategic-merge-patch+json"
    assert server.seen[0].json == condition("x")


@on_loop
async def test_a_newer_patch_replaces_one_that_was_not_sent() -> None:
    async with answering(lambda seen: reply(200, {})) as server:
        client, writes = await writing(server)
        nominated = {"status": {"nominatedNodeName": "node-1", **condition("one")["status"]}}
        results = await patched(writes, nominated, condition("two"), condition("three"))
        await client.close()
    assert [result.outcome for result in results] == [
        WriteOutcome.SUPERSEDED,
        WriteOutcome.SUPERSEDED,
        WriteOutcome.DONE,
    ]
    assert [seen.json for seen in server.seen] == [
        {"status": {"nominatedNodeName": "node-1", **condition("three")["status"]}}
    ]


@on_loop
async def test_patches_of_one_pod_do_not_overtake_each_other() -> None:
    gate = asyncio.Event()

    async def answer(seen: Seen) -> bytes:
        await gate.wait()
        return reply(200, {})

    async with answering(answer) as server:
        client, writes = await writing(server)
        first = asyncio.ensure_future(patched(writes, condition("one")))
        await server.until(lambda: server.seen)
        later = asyncio.ensure_future(patched(writes, condition("two"), condition("three")))
        await asyncio.sleep(0.01)
        assert len(server.seen) == 1
        gate.set()
        results = [*await first, *await later]
        await client.close()
    assert [result.outcome for result in results] == [WriteOutcome.DONE, WriteOutcome.SUPERSEDED, WriteOutcome.DONE]
    assert [seen.json for seen in server.seen] == [condition("one"), condition("three")]
    assert (writes.in_flight, writes.counters.patched, writes.counters.patches_superseded) == (0, 2, 1)


ORDER = "$setElementOrder/conditions"


@pytest.mark.parametrize(
    ("older", "newer", "both"),
    [
        pytest.param({"conditions": [1]}, {"conditions": [2]}, {"conditions": [2]}, id="the newer condition wins"),
        pytest.param(
            {"nominatedNodeName": "n"},
            {"conditions": [2]},
            {"nominatedNodeName": "n", "conditions": [2]},
            id="a nomination is kept",
        ),
        pytest.param(
            {"nominatedNodeName": "n"},
            {"nominatedNodeName": None},
            {"nominatedNodeName": None},
            id="unless it is taken back",
        ),
        pytest.param(
            {ORDER: [1], "conditions": [2]}, {"conditions": [3]}, {"conditions": [3]}, id="an order is its conditions'"
        ),
    ],
)
def test_two_patches_in_one(older: dict[str, Any], newer: dict[str, Any], both: dict[str, Any]) -> None:
    assert merged({"status": older}, {"status": newer}) == {"status": both}


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        pytest.param(200, WriteOutcome.DONE, id="deleted"),
        pytest.param(404, WriteOutcome.NOT_FOUND, id="gone already"),
        pytest.param(403, WriteOutcome.REFUSED, id="forbidden"),
    ],
)
@on_loop
async def test_deletion(code: int, outcome: WriteOutcome) -> None:
    async with answering(lambda seen: failure(code, "X") if code != 200 else reply(200, {})) as server:
        client, writes = await writing(server)
        results: list[WriteResult] = []
        writes.delete_pod("n", "a", "u1", results.append)
        writes.delete_pod("n", "a", "u1", results.append, only_uid=True)
        assert await writes.drain(5) == 0
        await client.close()
    assert [result.outcome for result in results] == [outcome] * 2
    plain = {"kind": "DeleteOptions", "apiVersion": "v1"}
    bodies = [seen.json for seen in server.seen]
    assert plain in bodies
    assert {**plain, "preconditions": {"uid": "u1"}} in bodies


@on_loop
async def test_draining_waits_for_what_is_in_flight_but_not_for_ever() -> None:
    gate = asyncio.Event()

    async def answer(seen: Seen) -> bytes:
        await gate.wait()
        return reply(201, CREATED)

    async with answering(answer) as server:
        client, writes = await writing(server)
        results: list[BindResult] = []
        writes.bind("n", "a", "u1", "node-1", results.append)
        writes.bind("n", "b", "u2", "node-1", results.append)
        assert writes.in_flight == 2
        assert await writes.drain(0.02) == 2
        gate.set()
        assert await writes.drain(5) == 0
        await client.close()
    assert [result.bound for result in results] == [True, True]


@on_loop
async def test_closing_ends_what_waits_for_another_try() -> None:
    async with answering(lambda seen: failure(503, "ServiceUnavailable")) as server:
        client, writes = await writing(server)
        results: list[Any] = []
        writes.patch_pod_status("n", "a", "u1", condition("one"), results.append)
        await server.until(lambda: server.seen)
        while not writes.counters.patches_again:  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(0.001)
        writes.close()
        await client.close()
    assert [result.outcome for result in results] == [WriteOutcome.LOST]
    assert writes.in_flight == 0
