"""The null scheduler: binds whatever pod it sees to the next node, round robin, and knows nothing else.

It uses the scheduler's own client, so its rate is the ceiling of the server, the loader and the wire: a scheduler that
comes near it is limited by them. `python -m benchmarks.scheduler_perf.null --kubeconfig FILE` runs it until SIGTERM.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import random
import signal
import sys
from collections import deque

import msgspec
import uvloop

from ksched.api.client import Client, Outcome, segment
from ksched.api.decode import ObjectDecoder
from ksched.api.http1 import Response
from ksched.api.transport import Priority
from ksched.api.watch import DELETED, Event, Reflector
from ksched.model.objects import ObjectMeta

READY = "null scheduler: watching"

SCHEDULER_NAME = "default-scheduler"


class _Named(msgspec.Struct, gc=False):
    """A node, as far as it matters here."""

    metadata: ObjectMeta


class _Spec(msgspec.Struct, rename="camel", gc=False):
    node_name: str = ""
    scheduling_gates: list[msgspec.Raw] = []
    scheduler_name: str = SCHEDULER_NAME


class _Pod(msgspec.Struct, gc=False):
    """A pod, as far as it matters here."""

    metadata: ObjectMeta
    spec: _Spec = msgspec.field(default_factory=_Spec)


class NullScheduler:
    """Round robin over the nodes, without a look at them."""

    def __init__(self, client: Client, *, events: bool = False) -> None:
        self._client = client
        self._events = events
        self._nodes: deque[str] = deque()
        self._waiting: deque[_Pod] = deque()
        self._asked: set[str] = set()
        self._synced = 0
        self.bound = 0
        self.refused = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Bind until told to stop."""
        rng = random.Random(0)
        nodes: Reflector[_Named] = Reflector(
            self._client, "/api/v1/nodes", ObjectDecoder("Node", _Named), _Nodes(self), rng=rng
        )
        pods: Reflector[_Pod] = Reflector(
            self._client,
            "/api/v1/pods",
            ObjectDecoder("Pod", _Pod),
            _Pods(self),
            rng=rng,
            field_selector="status.phase!=Succeeded,status.phase!=Failed",
        )
        tasks = [asyncio.create_task(nodes.run()), asyncio.create_task(pods.run()), asyncio.create_task(stop.wait())]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def synced(self) -> None:
        """Nodes or pods are known; when both are, say so."""
        self._synced += 1
        if self._synced == 2:
            gc.collect()
            gc.freeze()
            print(READY, flush=True)

    def node(self, event: Event[_Named]) -> None:
        """A node came or went."""
        if event.type == DELETED:
            self._nodes.remove(event.key)
        elif event.type == "ADDED":
            self._nodes.append(event.key)
            while self._waiting and self._nodes:
                self._bind(self._waiting.popleft())

    def pod(self, event: Event[_Pod]) -> None:
        """A pod came, changed or went."""
        pod = event.object
        if event.type == DELETED:
            self._asked.discard(event.uid)
            return
        if pod is None or pod.spec.node_name or pod.spec.scheduling_gates or pod.spec.scheduler_name != SCHEDULER_NAME:
            return
        if pod.metadata.deletion_timestamp is None and event.uid not in self._asked:
            self._asked.add(event.uid)
            if self._nodes:
                self._bind(pod)
            else:
                self._waiting.append(pod)

    def _bind(self, pod: _Pod) -> None:
        node = self._nodes[0]
        self._nodes.rotate(-1)
        metadata = pod.metadata
        body = (
            '{"apiVersion":"v1","kind":"Binding",'
            f'"metadata":{{"name":"{metadata.name}","namespace":"{metadata.namespace}","uid":"{metadata.uid}"}},'
            f'"target":{{"apiVersion":"v1","kind":"Node","name":"{node}"}}}}'
        )
        path = f"/api/v1/namespaces/{segment(metadata.namespace)}/pods/{segment(metadata.name)}/binding"

        def done(outcome: Outcome) -> None:
            if isinstance(outcome, Response) and outcome.ok:
                self.bound += 1
                if self._events:
                    self._write_event(metadata, node)
            else:
                self.refused += 1

        self._client.send("POST", path, body.encode(), on_done=done, priority=Priority.BIND)

    def _write_event(self, metadata: ObjectMeta, node: str) -> None:
        about = {"kind": "Pod", "namespace": metadata.namespace, "name": metadata.name, "uid": metadata.uid}
        event = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"generateName": f"{metadata.name}.", "namespace": metadata.namespace},
            "eventTime": "2026-01-01T00:00:00.000000Z",
            "reportingController": SCHEDULER_NAME,
            "reportingInstance": f"{SCHEDULER_NAME}-null",
            "action": "Binding",
            "reason": "Scheduled",
            "type": "Normal",
            "regarding": {"apiVersion": "v1", **about},
            "note": f"Successfully assigned {metadata.namespace}/{metadata.name} to {node}",
        }
        path = f"/apis/events.k8s.io/v1/namespaces/{segment(metadata.namespace)}/events"
        self._client.send("POST", path, msgspec.json.encode(event), on_done=_ignore, priority=Priority.EVENT)


def _ignore(outcome: Outcome) -> None:
    """Events may be lost; the runner counts them at the server."""


class _Nodes:
    def __init__(self, scheduler: NullScheduler) -> None:
        self._scheduler = scheduler

    def apply(self, events: list[Event[_Named]]) -> None:
        for event in events:
            self._scheduler.node(event)

    def synced(self, kind: str) -> None:
        self._scheduler.synced()


class _Pods:
    def __init__(self, scheduler: NullScheduler) -> None:
        self._scheduler = scheduler

    def apply(self, events: list[Event[_Pod]]) -> None:
        for event in events:
            self._scheduler.pod(event)

    def synced(self, kind: str) -> None:
        self._scheduler.synced()


async def _main(kubeconfig: str, events: bool) -> int:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    client = await Client.from_kubeconfig(kubeconfig, user_agent="ksched-null")
    scheduler = NullScheduler(client, events=events)
    try:
        await scheduler.run(stop)
    finally:
        await client.close()
    print(f"null scheduler: {scheduler.bound} bound, {scheduler.refused} refused", flush=True)
    return 0


def main() -> int:
    """Run until stopped."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scheduler_perf.null", description=__doc__)
    parser.add_argument("--kubeconfig", required=True, metavar="FILE", help="how to reach the API server")
    parser.add_argument("--events", action="store_true", help="write one event per pod, as a scheduler does")
    arguments = parser.parse_args()
    gc.set_threshold(100_000, 50, 100)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_main(arguments.kubeconfig, arguments.events))


if __name__ == "__main__":
    sys.exit(main())
