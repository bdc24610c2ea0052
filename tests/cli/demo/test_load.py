"""Creating objects over real HTTP, against a sandbox in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from ksched.api.client import Client
from ksched.cli.demo.follow import Server
from ksched.cli.demo.load import create_all
from ksched.cli.demo.report import Pending
from ksched.errors import KschedError
from ksched.sandbox.clusters import node
from ksched.sandbox.server import Sandbox, SandboxOptions

PODS = "/api/v1/namespaces/{namespace}/pods"


def on_sandbox(folder: Path, story: Callable[[Client], Awaitable[Any]]) -> Any:
    """Run `story` with a client of a new sandbox."""

    async def run() -> Any:
        sandbox = Sandbox(SandboxOptions(kubeconfig_out=str(folder / "kubeconfig"), agent=False))
        await sandbox.start()
        try:
            client = await Client.from_kubeconfig(str(folder / "kubeconfig"))
            try:
                return await story(client)
            finally:
                await client.close()
        finally:
            await sandbox.stop()

    return asyncio.run(run())


def pod(name: str, **spec: Any) -> dict[str, Any]:
    """A pod in JSON."""
    spec = {"containers": [{"name": "main", "image": "app"}], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


@pytest.mark.parametrize("count", [pytest.param(0, id="none"), pytest.param(1, id="one"), pytest.param(100, id="many")])
def test_all_objects_are_created_and_counted(tmp_path: Path, count: int) -> None:
    async def story(client: Client) -> tuple[list[int], int]:
        seen: list[int] = []
        await create_all(client, "/api/v1/nodes", [node(f"n{number}") for number in range(count)], seen.append)
        return seen, len((await client.json("GET", "/api/v1/nodes"))["items"])

    seen, there = on_sandbox(tmp_path, story)
    assert seen == list(range(1, count + 1))
    assert there == count


def test_the_first_object_that_is_refused_ends_it(tmp_path: Path) -> None:
    async def story(client: Client) -> None:
        await create_all(client, PODS, [pod("a"), pod("B!"), pod("c")])

    with pytest.raises(KschedError, match=r"cannot create default/B!: POST /api/v1/namespaces/default/pods: .*B!"):
        on_sandbox(tmp_path, story)


def test_a_server_that_has_gone_ends_it(tmp_path: Path) -> None:
    async def run() -> None:
        sandbox = Sandbox(SandboxOptions(kubeconfig_out=str(tmp_path / "kubeconfig"), agent=False))
        await sandbox.start()
        client = await Client.from_kubeconfig(str(tmp_path / "kubeconfig"))
        await sandbox.stop()
        try:
            await create_all(client, PODS, [pod("a")])
        finally:
            await client.close()

    with pytest.raises(KschedError, match=r"cannot create default/a: .*refused"):
        asyncio.run(run())


def test_pending_pods_are_listed_page_by_page_with_what_they_were_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ksched.cli.demo.follow.PAGE", 2)

    async def story(client: Client) -> list[Pending]:
        gated = pod("gated", schedulingGates=[{"name": "example.com/wait"}])
        placed = [pod(f"on-{number}", nodeName="n1") for number in range(3)]
        await create_all(client, "/api/v1/nodes", [node("n1")])
        await create_all(client, PODS, [*placed, *(pod(f"p{number}") for number in range(4)), gated])
        return await Server(client).pending()

    pending = {each.key: each for each in on_sandbox(tmp_path, story)}
    assert sorted(pending) == ["default/gated", "default/p0", "default/p1", "default/p2", "default/p3"]
    assert pending["default/gated"].reason == "SchedulingGated"
    assert pending["default/p0"] == Pending("default", "p0", "", "")
