"""Where what the feed tells comes from: one reflector for each kind of object that scheduling looks at."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

from ksched.api.client import Client
from ksched.api.decode import (
    DEVICE_CLASS,
    NAMESPACE,
    NODE,
    POD,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    SERVICE,
    STATEFUL_SET,
    ObjectDecoder,
)
from ksched.api.watch import Handler, Reflector

PENDING_OR_RUNNING = "status.phase!=Succeeded,status.phase!=Failed"
"""Pods that have ended take no room; one that ends looks deleted to us."""

# Nodes come first, since pods that arrive before their node have to be kept aside.
_KINDS: tuple[tuple[str, ObjectDecoder[Any], str], ...] = (
    ("/api/v1/nodes", NODE, ""),
    ("/api/v1/pods", POD, PENDING_OR_RUNNING),
    ("/api/v1/namespaces", NAMESPACE, ""),
    ("/api/v1/services", SERVICE, ""),
    ("/api/v1/replicationcontrollers", REPLICATION_CONTROLLER, ""),
    ("/apis/apps/v1/replicasets", REPLICA_SET, ""),
    ("/apis/apps/v1/statefulsets", STATEFUL_SET, ""),
    ("/apis/resource.k8s.io/v1/deviceclasses", DEVICE_CLASS, ""),
)


class Sources:
    """The reflectors of one scheduler."""

    def __init__(
        self,
        client: Client,
        handler: Handler[Any],
        *,
        rng: random.Random,
        on_list_start: Callable[[], None],
        on_list_end: Callable[[], None],
    ) -> None:
        self._reflectors = [
            Reflector(
                client,
                path,
                decoder,
                handler,
                rng=rng,
                field_selector=selector,
                on_list_start=on_list_start,
                on_list_end=on_list_end,
            )
            for path, decoder, selector in _KINDS
        ]

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds that are followed."""
        return frozenset(reflector.kind for reflector in self._reflectors)

    async def run(self, stopped: asyncio.Event) -> None:
        """Follow everything until `stopped` is set; what ends a reflector before that is raised."""
        tasks = {asyncio.ensure_future(reflector.run()) for reflector in self._reflectors}
        stop = asyncio.ensure_future(stopped.wait())
        try:
            done, _ = await asyncio.wait({stop, *tasks}, return_when=asyncio.FIRST_COMPLETED)
            for ended in done - {stop}:
                ended.result()
        finally:
            for task in (stop, *tasks):
                task.cancel()
            await asyncio.gather(stop, *tasks, return_exceptions=True)

    def malformed(self) -> Counter[str]:
        """Objects that could not even be decoded, by kind."""
        return Counter({reflector.kind: reflector.counters.malformed for reflector in self._reflectors})
