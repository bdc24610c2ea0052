"""Servers for the sandbox's tests: each in a thread of this process, on a loop of its own, over real sockets."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest

from ksched.sandbox.server import Sandbox, SandboxOptions

from .wire import Client

Start = Callable[[SandboxOptions], Client]


@contextmanager
def running(options: SandboxOptions) -> Iterator[Sandbox]:
    """A sandbox that runs in a thread."""
    started: list[Sandbox | BaseException] = []
    ready, stop = threading.Event(), threading.Event()

    async def serve() -> None:
        sandbox = Sandbox(options)
        try:
            await sandbox.start()
            started.append(sandbox)
            ready.set()
            await asyncio.get_running_loop().run_in_executor(None, stop.wait)
        finally:
            await sandbox.stop()

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:  # noqa: BLE001 handed to the test, which would wait for ever otherwise
            started.append(error)
            ready.set()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert ready.wait(10)
        first = started[0]
        if isinstance(first, BaseException):
            raise first
        yield first
    finally:
        stop.set()
        thread.join(10)
    assert not thread.is_alive()
    if len(started) > 1 and isinstance(started[1], BaseException):
        raise started[1]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a sandbox with options of the test's own; it ends with the test."""
    with ExitStack() as stack:

        def started(options: SandboxOptions) -> Client:
            client = Client(stack.enter_context(running(options)).url)
            stack.callback(client.close)
            return client

        yield started


@pytest.fixture
def client(start: Start) -> Client:
    """A sandbox without controllers, with two nodes: node-1 in zone a, node-2 in zone b."""
    client = start(SandboxOptions(agent=False, deployments=False))
    for name, zone in (("node-1", "a"), ("node-2", "b")):
        labels = {"topology.kubernetes.io/zone": zone, "kubernetes.io/hostname": name}
        client.post(
            "/api/v1/nodes",
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "labels": labels},
                "status": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
            },
        )
    return client
