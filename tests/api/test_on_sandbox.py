"""The whole client path against the sandbox in a process of its own: what a script cannot make up, a server can."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from ksched.api.client import Client
from ksched.api.decode import NODE, POD, ObjectDecoder
from ksched.api.events import EventRecorder
from ksched.api.watch import Event, Reflector
from ksched.api.writes import BindOutcome, BindResult, Writes
from ksched.errors import ApiError, KubeconfigError
from ksched.model.pod import Pod
from ksched.sandbox.process import SandboxProcess
from ksched.sandbox.server import SandboxOptions

PODS = "/api/v1/namespaces/default/pods"


def options(**changes: Any) -> SandboxOptions:
    return SandboxOptions(**{"agent": False, "deployments": False, "nodes": 3, **changes})


@pytest.fixture(scope="module", params=["http", "https"])
def shared(request: pytest.FixtureRequest) -> Iterator[SandboxProcess]:
    """One sandbox for all tests that do not mind what others have left there."""
    with SandboxProcess(options(tls=request.param == "https", token="secret")) as sandbox:
        yield sandbox


@asynccontextmanager
async def connected(sandbox: SandboxProcess) -> AsyncIterator[Client]:
    client = await Client.from_kubeconfig(str(sandbox.kubeconfig), rng=random.Random(1), sweep_seconds=0.02)
    try:
        yield client
    finally:
        await client.close()


def run(test: Callable[[], Any]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(50):
            await test()

    asyncio.run(bounded())


async def make_pods(client: Client, *names: str) -> dict[str, str]:
    """Make pods; name -> uid."""
    made = {}
    for name in names:
        spec = {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1m"}}}]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        made[name] = (await client.json("POST", PODS, body=pod))["metadata"]["uid"]
    return made


async def disturb(client: Client, **faults: Any) -> None:
    await client.json("POST", "/sandbox/faults", body=faults)


class Mirror:
    """A handler that keeps what it is told, and checks that it makes sense."""

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}
        self.synced_kinds: list[str] = []
        self.news = asyncio.Event()

    def apply(self, events: list[Event[Any]]) -> None:
        for event in events:
            if event.type == "ADDED":
                assert event.key not in self.objects
            else:
                assert self.objects[event.key].uid == event.uid
            if event.type == "DELETED":
                del self.objects[event.key]
            else:
                self.objects[event.key] = event.object
        self.news.set()

    def synced(self, kind: str) -> None:
        self.synced_kinds.append(kind)
        self.news.set()

    async def until(self, true: Callable[[], Any]) -> None:
        async with asyncio.timeout(20):
            while not true():
                self.news.clear()
                await self.news.wait()


@asynccontextmanager
async def mirrored(
    client: Client, path: str, decoder: ObjectDecoder[Any], **options: Any
) -> AsyncIterator[tuple[Mirror, Reflector[Any]]]:
    mirror = Mirror()
    reflector = Reflector(client, path, decoder, mirror, rng=random.Random(3), **options)
    task = asyncio.ensure_future(reflector.run())
    try:
        await mirror.until(lambda: mirror.synced_kinds)
        yield mirror, reflector
        assert not task.done()
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def test_it_is_a_kubernetes_and_knows_us(shared: SandboxProcess) -> None:
    async def check() -> None:
        async with connected(shared) as client:
            assert (await client.check())["gitVersion"].startswith("v1.")
            with pytest.raises(ApiError) as refused:
                await client.json("GET", f"{PODS}/none")
            assert (refused.value.code, refused.value.reason) == (404, "NotFound")

    run(check)


def test_a_wrong_token_is_refused_in_one_line(shared: SandboxProcess, tmp_path: Any) -> None:
    wrong = tmp_path / "kubeconfig"
    wrong.write_text(shared.kubeconfig.read_text().replace("secret", "guess"))

    async def check() -> None:
        client = await Client.from_kubeconfig(str(wrong))
        with pytest.raises(KubeconfigError, match="the server refused the credentials"):
            await client.check()
        await client.close()

    run(check)


@pytest.mark.parametrize("use_watch_list", [True, False], ids=["watch list", "pages"])
def test_a_list_and_its_changes(shared: SandboxProcess, use_watch_list: bool) -> None:
    async def check() -> None:
        names = [f"listed-{use_watch_list}-{number}".lower() for number in range(5)]
        async with connected(shared) as client:
            uids = await make_pods(client, *names[:3])
            how: dict[str, Any] = {"use_watch_list": use_watch_list, "page_size": 2}
            async with mirrored(client, "/api/v1/pods", POD, **how) as (mirror, reflector):
                assert {f"default/{name}" for name in names[:3]} <= set(mirror.objects)
                uids |= await make_pods(client, *names[3:])
                await mirror.until(lambda: f"default/{names[4]}" in mirror.objects)
                writes = Writes(client, rng=random.Random(2))
                assert (await writes.bind_pod("default", names[0], uids[names[0]], "node-000000")).bound
                await mirror.until(lambda: mirror.objects[f"default/{names[0]}"].node_name == "node-000000")
                await client.json("DELETE", f"{PODS}/{names[1]}", query={"gracePeriodSeconds": "0"})
                await mirror.until(lambda: f"default/{names[1]}" not in mirror.objects)
                counters = reflector.counters
            async with mirrored(client, "/api/v1/nodes", NODE) as (nodes, _):
                assert len(nodes.objects) == 3
        assert (counters.malformed, counters.expired, counters.cut) == (0, 0, 0)

    run(check)


def test_binds_and_what_is_refused(shared: SandboxProcess) -> None:
    async def check() -> None:
        async with connected(shared) as client:
            uids = await make_pods(client, "bind-a", "bind-b")
            writes = Writes(client, rng=random.Random(2))
            results = [
                await writes.bind_pod("default", "bind-a", uids["bind-a"], "node-000000"),
                await writes.bind_pod("default", "bind-a", uids["bind-a"], "node-000001"),
                await writes.bind_pod("default", "bind-b", "another", "node-000001"),
                await writes.bind_pod("default", "none", "u", "node-000001"),
            ]
        assert [result.outcome for result in results] == [
            BindOutcome.BOUND,
            BindOutcome.CONFLICT,
            BindOutcome.UID_MISMATCH,
            BindOutcome.NOT_FOUND,
        ]

    run(check)


def test_status_and_events(shared: SandboxProcess) -> None:
    async def check() -> None:
        async with connected(shared) as client:
            uids = await make_pods(client, "told")
            pod = POD.object((await client.request("GET", f"{PODS}/told")).body)
            writes = Writes(client, rng=random.Random(2))
            recorder = EventRecorder(client, hostname="here", rng=random.Random(4))
            await recorder.discover()
            condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no"}
            writes.patch_pod_status(
                "default", "told", uids["told"], {"status": {"conditions": [condition]}}, lambda result: None
            )
            for _ in range(3):
                recorder.record(pod, "Warning", "FailedScheduling", "Scheduling", "no", "default-scheduler")
                assert await recorder.flush(10) == 0
            assert await writes.drain(10) == 0
            recorder.close()
            after: Pod = POD.object((await client.request("GET", f"{PODS}/told")).body)
            events = await client.json("GET", "/apis/events.k8s.io/v1/namespaces/default/events")
            core = await client.json(
                "GET", "/api/v1/namespaces/default/events", query={"fieldSelector": "involvedObject.name=told"}
            )
        assert [(made.reason, made.message) for made in after.status.conditions] == [("Unschedulable", "no")]
        [event] = [event for event in events["items"] if event["regarding"]["name"] == "told"]
        assert (event["reason"], event["note"], event["series"]["count"]) == ("FailedScheduling", "no", 2)
        assert [event["message"] for event in core["items"]] == ["no"]

    run(check)


RULES = {
    "the answers are cut off": [{"verbs": ["bind"], "probability": 0.3, "cut_after_answer": True}],
    "the requests are cut off": [{"verbs": ["bind"], "probability": 0.3, "cut_before_answer": True}],
    "429 and 500": [
        {"verbs": ["bind"], "probability": 0.3, "status": 429, "retry_after_seconds": 0},
        {"verbs": ["bind"], "probability": 0.3, "status": 500},
    ],
    "looking fails, too": [
        {"verbs": ["bind"], "probability": 0.4, "cut_after_answer": True},
        {"verbs": ["get"], "probability": 0.3, "status": 503},
    ],
}


@pytest.mark.parametrize("rules", list(RULES.values()), ids=list(RULES))
def test_every_bind_happens_once_and_is_known(rules: list[dict[str, Any]]) -> None:
    async def check(sandbox: SandboxProcess) -> None:
        async with connected(sandbox) as client:
            uids = await make_pods(client, *(f"p{number}" for number in range(40)))
            before = (await client.json("GET", "/sandbox/stats"))["binds"]
            await disturb(client, seed=5, rules=rules)
            writes = Writes(client, rng=random.Random(2))
            results: dict[str, BindResult] = {}
            for name, uid in uids.items():
                writes.bind(
                    "default", name, uid, "node-000001", lambda result, name=name: results.update({name: result})
                )
            assert await writes.drain(30) == 0
            await client.json("DELETE", "/sandbox/faults")
            pods = await client.json("GET", PODS)
            after = (await client.json("GET", "/sandbox/stats"))["binds"]
        bound = {pod["metadata"]["name"] for pod in pods["items"] if pod["spec"].get("nodeName") == "node-000001"}
        assert {name for name, result in results.items() if result.bound} == bound
        assert after - before == len(bound)
        assert len(bound) == 40

    with SandboxProcess(options()) as sandbox:
        run(lambda: check(sandbox))


@pytest.mark.parametrize(
    "faults",
    [
        pytest.param({"cut_watches": True}, id="watches are cut"),
        pytest.param({"expire_watches": True}, id="watches expire"),
        pytest.param({"expire_history": True, "cut_watches": True}, id="history is gone"),
        pytest.param({"silence_watches": True}, id="watches fall silent"),
        pytest.param({"duplicate_events": 0.5, "reorder_events": 0.5}, id="events repeat and change places"),
    ],
)
def test_a_mirror_stays_true(faults: dict[str, Any]) -> None:
    async def check(sandbox: SandboxProcess) -> None:
        async with connected(sandbox) as client:
            how: dict[str, Any] = {"silence_seconds": 1.0}
            async with mirrored(client, "/api/v1/pods", POD, **how) as (mirror, _):
                uids = await make_pods(client, *(f"p{number}" for number in range(10)))
                await mirror.until(lambda: len(mirror.objects) == 10)
                await disturb(client, seed=5, **faults)
                writes = Writes(client, rng=random.Random(2))
                for number in range(5):
                    assert (await writes.bind_pod("default", f"p{number}", uids[f"p{number}"], "node-000001")).bound
                    await client.json("DELETE", f"{PODS}/p{number + 5}", query={"gracePeriodSeconds": "0"})
                await make_pods(client, "p5", "last")
                keys = {"default/last", *(f"default/p{number}" for number in range(6))}
                await mirror.until(lambda: set(mirror.objects) == keys)
                await mirror.until(
                    lambda: all(mirror.objects[f"default/p{number}"].node_name == "node-000001" for number in range(5))
                )

    with SandboxProcess(options(bookmark_seconds=0.3)) as sandbox:
        run(lambda: check(sandbox))


@pytest.mark.parametrize("keeps", [True, False], ids=["with its objects", "without"])
def test_a_server_that_is_killed_and_started_again(keeps: bool, tmp_path: Any) -> None:
    async def check(sandbox: SandboxProcess) -> None:
        async with connected(sandbox) as client, mirrored(client, "/api/v1/pods", POD) as (mirror, _):
            await make_pods(client, "before", "too")
            await mirror.until(lambda: len(mirror.objects) == 2)
            await asyncio.to_thread(sandbox.restart, crash=True)
            await make_pods(client, "after")
            there = {"default/before", "default/too", "default/after"} if keeps else {"default/after"}
            await mirror.until(lambda: set(mirror.objects) == there)

    with SandboxProcess(options(bookmark_seconds=0.3, data_dir=str(tmp_path / "data") if keeps else None)) as sandbox:
        run(lambda: check(sandbox))
