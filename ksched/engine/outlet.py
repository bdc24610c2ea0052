"""The way out: what the engine wants written, as requests of the API client.

A binding whose fate the client could not find out is looked up here until it is known, however long the server stays
away: its pod must neither lose its room nor be given up.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from ksched.api.client import Client, Outcome
from ksched.api.decode import POD
from ksched.api.events import EventRecorder
from ksched.api.http1 import Response
from ksched.api.transport import Priority
from ksched.api.writes import BindOutcome, BindResult, WriteOutcome, WriteResult, Writes, pod_path
from ksched.cache.shapes import PodInfo
from ksched.errors import ClientError, ObjectError
from ksched.model.pod import Pod

log = logging.getLogger("ksched.outlet")

LOST_SECONDS = 5.0
"""So long between two looks at a pod whose binding was lost."""


class Outlet:
    """Writes bindings, statuses and events for one scheduler."""

    def __init__(self, client: Client, writes: Writes, recorder: EventRecorder) -> None:
        self._client = client
        self._loop = asyncio.get_running_loop()
        self._writes = writes
        self._recorder = recorder
        self._lost: dict[_Bind, asyncio.TimerHandle] = {}
        self.binds = 0
        """Bindings whose outcome is not known yet."""

    def bind(self, pod: PodInfo, node_name: str, done: Callable[[ClientError | None], None]) -> None:
        """Write a binding; `done` is called with None once the API server has the pod there, else with the reason."""
        self.binds += 1
        self._send(_Bind(pod, node_name, done))

    def status(self, pod: Pod, patch: dict[str, Any]) -> None:
        """Patch a pod's status. What cannot be written is said in the log: the next attempt says it anew."""
        key = pod.key

        def done(result: WriteResult) -> None:
            if not result.ok and result.outcome is not WriteOutcome.NOT_FOUND:
                log.warning('status not written pod="%s" error="%s"', key, result.error)

        self._writes.patch_pod_status(pod.namespace, pod.name, pod.uid, patch, done)

    def event(self, pod: Pod, kind: str, reason: str, action: str, note: str) -> None:
        """Write an event about a pod, in the name of its profile."""
        self._recorder.record(pod, kind, reason, action, note, pod.scheduler_name)

    def events_dropped(self) -> int:
        """How many events were not written."""
        return self._recorder.counters.dropped + self._recorder.counters.rejected

    async def discover(self) -> None:
        """Find out which event API the server has."""
        await self._recorder.discover()

    async def flush(self, seconds: float) -> None:
        """Wait until what is on its way is written, but not longer."""
        end = self._loop.time() + seconds
        left = await self._writes.drain(seconds)
        left += await self._recorder.flush(max(0.0, end - self._loop.time()))
        if left:
            log.warning("writes not finished count=%d", left)

    def close(self) -> None:
        """Give up what waits for another try."""
        for timer in self._lost.values():
            timer.cancel()
        self._lost.clear()
        self._writes.close()
        self._recorder.close()

    # -- bindings

    def _send(self, bind: _Bind) -> None:
        metadata = bind.pod.pod.metadata
        ended = partial(self._ended, bind)
        self._writes.bind(metadata.namespace, metadata.name, metadata.uid, bind.node_name, ended)

    def _ended(self, bind: _Bind, result: BindResult) -> None:
        """The client knows what became of a binding, or has given up finding out."""
        if result.bound:
            self._tell(bind, None)
        elif result.outcome is BindOutcome.LOST:
            log.warning('binding lost, looking until it is found pod="%s" error="%s"', bind.pod.key, result.error)
            self._look_later(bind)
        else:
            self._tell(bind, result.error or ClientError(result.outcome.value))

    def _tell(self, bind: _Bind, error: ClientError | None) -> None:
        self.binds -= 1
        bind.done(error)

    def _look_later(self, bind: _Bind) -> None:
        """Wait before the next look at a pod of whose binding nobody knows."""

        def due() -> None:
            del self._lost[bind]
            self._client.send(
                "GET",
                pod_path(bind.pod.namespace, bind.pod.name),
                on_done=partial(self._looked, bind),
                priority=Priority.BIND,
            )

        self._lost[bind] = self._loop.call_later(LOST_SECONDS, due)

    def _looked(self, bind: _Bind, outcome: Outcome) -> None:
        """The pod as it is decides: bound, bound elsewhere, gone, or to be bound once more."""
        if isinstance(outcome, Response) and outcome.status == 404:
            self._tell(bind, outcome.error())
            return
        try:
            found = POD.object(outcome.body) if isinstance(outcome, Response) and outcome.ok else None
        except ObjectError as error:
            log.warning('lost binding not found out pod="%s" error="%s"', bind.pod.key, error)
            found = None
        if found is None:
            self._look_later(bind)
        elif found.uid != bind.pod.uid:
            text = f"{found.key} is another pod now: uid {found.uid}, expected {bind.pod.uid}"
            self._tell(bind, ClientError(text))
        elif found.node_name == bind.node_name:
            self._tell(bind, None)
        elif found.node_name:
            self._tell(bind, ClientError(f"{found.key} is on node {found.node_name} already"))
        else:
            self._send(bind)


class _Bind:
    """A binding on its way, and who waits for it."""

    __slots__ = ("done", "node_name", "pod")

    def __init__(self, pod: PodInfo, node_name: str, done: Callable[[ClientError | None], None]) -> None:
        self.pod = pod
        self.node_name = node_name
        self.done = done
