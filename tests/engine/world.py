"""The engine without a server or a loop: what it writes is recorded, and answered by the test."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from ksched.cache.shapes import PodInfo
from ksched.config.gates import FeatureGates
from ksched.config.types import Configuration
from ksched.engine.pipeline import Pipeline
from ksched.errors import ClientError
from ksched.framework.plugin import Plugin
from ksched.model.pod import Pod
from ksched.testing import PodBuilder

START = 1_800_000_000.0


class Outbox:
    """What would have been written. Bindings wait for `answer`."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, str]] = []
        self.patches: list[tuple[str, dict[str, Any]]] = []
        self.binds: dict[str, tuple[str, Callable[[ClientError | None], None]]] = {}

    def event(self, pod: Pod, kind: str, reason: str, action: str, note: str) -> None:
        self.events.append((pod.key, reason, note))

    def status(self, pod: Pod, patch: dict[str, Any]) -> None:
        self.patches.append((pod.key, patch["status"]))

    def bind(self, pod: PodInfo, node_name: str, done: Callable[[ClientError | None], None]) -> None:
        self.binds[pod.key] = (node_name, done)

    def answer(self, key: str, error: ClientError | None = None) -> str:
        """Answer the binding of a pod; returns the node."""
        node_name, done = self.binds.pop(key)
        done(error)
        return node_name


class World(Pipeline):
    """A pipeline on a clock that the test turns, writing into an outbox."""

    def __init__(self, configuration: Configuration | None = None, plugins: Iterable[type[Plugin]] = ()) -> None:
        gates = FeatureGates()
        self.now = START
        self.version = 0
        self.out = Outbox()
        super().__init__(
            self.out,
            configuration or Configuration.default(gates),
            gates,
            clock=self.clock,
            timer=self.clock,
            rng=random.Random(1),
            plugins=plugins,
            max_nodes=256,
        )

    def clock(self) -> float:
        return self.now

    def pod(self, pod: PodBuilder | Pod, **metadata: Any) -> Pod:
        """The API server shows a pod, in a new version; `metadata` replaces fields."""
        built = pod.build() if isinstance(pod, PodBuilder) else pod
        self.version += 1
        fields = {"resource_version": str(self.version), **metadata}
        shown = msgspec.structs.replace(built, metadata=msgspec.structs.replace(built.metadata, **fields))
        self.feed.put_pod(shown)
        return shown

    def turn(self) -> list[str]:
        """Try every pod that is ready; returns the keys of those that were tried."""
        tried = []
        while (queued := self.queue.pop()) is not None:
            tried.append(queued.key)
            self.schedule(queued)
        return tried

    def place(self, key: str) -> str:
        """Where a pod is: in the words of its queue, `in flight`, `assumed`, `bound`, `unreadable` or `nowhere`."""
        found = []
        queued = self.queue.get(key)
        if queued is not None:
            found.append("gated" if queued.is_gated else queued.place.value)
        if key in self.pending.unreadable:
            found.append("unreadable")
        for node in self.cluster.nodes():
            for pod in node.pods.values():
                if pod.key == key:
                    found.append("assumed" if self.cluster.is_assumed(pod.uid) else "bound")
        assert len(found) < 2, f"{key} is in two places: {found}"
        return found[0] if found else "nowhere"


def on_a_loop(test: Callable[[], Any]) -> None:
    """Run a coroutine function to its end."""
    asyncio.run(asyncio.wait_for(test(), 20))
