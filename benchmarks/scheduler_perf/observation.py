"""When pods were created and bound, and how many are bound by now.

At a sandbox the server itself is asked: its clock, noted when the change took effect, and cheap to ask while a run
goes on. A real cluster has no such clock (its timestamps are whole seconds), so there the loader watches all pods and
notes when it saw them; that costs the loader CPU and adds the wire's delay to both ends.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any, Protocol

import msgspec

from benchmarks.scheduler_perf.loader import Api
from benchmarks.scheduler_perf.measures import PodTimes
from ksched.api.decode import ObjectDecoder
from ksched.api.watch import DELETED, Event, Reflector
from ksched.model.objects import ObjectMeta


class Observer(Protocol):
    """Who knows the times of pods."""

    clock: str
    """Whose clock it is, for results."""

    async def start(self) -> None:
        """Begin."""

    async def stop(self) -> None:
        """End."""

    async def bound(self, namespace: str) -> int:
        """How many bindings there were so far in a namespace."""

    async def times(self, namespaces: Collection[str]) -> list[PodTimes]:
        """The times of every pod that there is or was."""


class SandboxObserver:
    """Asks the sandbox."""

    clock = "server"

    def __init__(self, api: Api) -> None:
        self._api = api
        self._seen = 0
        self._bound: Counter[str] = Counter()

    async def start(self) -> None:
        """Nothing is to be begun: the server notes everything."""

    async def stop(self) -> None:
        """Nor ended."""

    async def bound(self, namespace: str) -> int:
        """Counted from the bindings since the last question."""
        news = (await self._api.get("/sandbox/placements", {"after": str(self._seen)}))["placements"]
        self._seen += len(news)
        for place, _, _ in news:
            self._bound[place] += 1
        return self._bound[namespace]

    async def times(self, namespaces: Collection[str]) -> list[PodTimes]:
        """What the server noted."""
        found = []
        for namespace in namespaces:
            answer = await self._api.get("/sandbox/times", {"namespace": namespace})
            found += [PodTimes(namespace, *each) for each in answer["pods"]]
        return found


class _Placed(msgspec.Struct, rename="camel", gc=False):
    node_name: str = ""


class _Pod(msgspec.Struct, gc=False):
    metadata: ObjectMeta
    spec: _Placed = msgspec.field(default_factory=_Placed)


class WatchObserver:
    """Watches all pods of a cluster."""

    clock = "loader's watch"

    def __init__(self, api: Api) -> None:
        self._reflector: Reflector[_Pod] = Reflector(
            api.client, "/api/v1/pods", ObjectDecoder("Pod", _Pod), self, rng=random.Random(0)
        )
        self._times: dict[str, dict[str, Any]] = {}
        self._bound: Counter[str] = Counter()
        self._synced = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to watch, and wait until everything that is there was seen."""
        self._task = asyncio.create_task(self._reflector.run())
        waiting = asyncio.create_task(self._synced.wait())
        await asyncio.wait({self._task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if self._task.done():
            self._task.result()

    async def stop(self) -> None:
        """End the watch."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def bound(self, namespace: str) -> int:
        """Counted as events come."""
        await asyncio.sleep(0)
        return self._bound[namespace]

    async def times(self, namespaces: Collection[str]) -> list[PodTimes]:
        """What was seen."""
        return [PodTimes(**each) for each in self._times.values() if each["namespace"] in namespaces]

    def apply(self, events: list[Event[_Pod]]) -> None:
        """Called by the reflector."""
        now = time.time_ns()
        for event in events:
            pod = event.object
            if event.type == DELETED or pod is None:
                continue
            noted = self._times.get(event.uid)
            if noted is None:
                metadata = pod.metadata
                noted = {"namespace": metadata.namespace, "name": metadata.name, "node": "", "created": now, "bound": 0}
                self._times[event.uid] = noted
            if pod.spec.node_name and not noted["node"]:
                noted["node"], noted["bound"] = pod.spec.node_name, now
                self._bound[noted["namespace"]] += 1

    def synced(self, kind: str) -> None:
        """Called by the reflector."""
        self._synced.set()


def matches(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    """Whether labels have all that a selector asks for."""
    return all(labels.get(key) == value for key, value in selector.items())
