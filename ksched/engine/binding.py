"""From a placement to a bound pod: what has to wait.

The usual pod costs one request and no task: nothing holds it back, nothing prepares it, and its binding is
written with a callback. A pod whose profile has more to do gets a task, which waits for permission, prepares
and binds. Either way the room of the pod is held until the API server shows it on its node (`feed`), or the
binding fails and it is given back here.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Protocol

from ksched.cache.cluster import Cluster
from ksched.cache.shapes import PodInfo
from ksched.engine.cycle import Placement, fit_message
from ksched.engine.failure import SCHEDULER_ERROR, Failure, FailureHandler, Reports
from ksched.engine.waiting import WaitingPod, WaitingPods
from ksched.errors import ApiError, ClientError
from ksched.framework.profile import Profile
from ksched.framework.status import Status
from ksched.metrics import Metrics
from ksched.queue import events
from ksched.queue.pools import QueuedPod
from ksched.queue.scheduling_queue import SchedulingQueue

log = logging.getLogger("ksched.binding")


class BindWriter(Protocol):
    """How a binding is written."""

    def bind(self, pod: PodInfo, node_name: str, done: Callable[[ClientError | None], None]) -> None:
        """Write the binding; `done` is called with None once the API server has the pod there, else with the reason."""


class Binder:
    """The way to bind a pod, for bind plugins."""

    def __init__(self, writer: BindWriter) -> None:
        self._writer = writer

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        """Returns once the pod is bound; raises ClientError if it is not."""
        outcome: asyncio.Future[ClientError | None] = asyncio.get_running_loop().create_future()

        def done(error: ClientError | None) -> None:
            if not outcome.done():
                outcome.set_result(error)

        self._writer.bind(pod, node_name, done)
        error = await outcome
        if error is not None:
            raise error


class Binding:
    """One pod on its way from its placement to its node. Called with the outcome of its request."""

    __slots__ = ("bindings", "placement", "profile", "queued", "started")

    def __init__(
        self, bindings: Bindings, profile: Profile, queued: QueuedPod, placement: Placement, started: float
    ) -> None:
        self.bindings = bindings
        self.profile = profile
        self.queued = queued
        self.placement = placement
        self.started = started

    def __call__(self, error: ClientError | None) -> None:
        """The answer to the request of a plain binding."""
        if error is None:
            self.bindings.bound(self)
        else:
            message = f'running Bind plugin "DefaultBinder": {error}'
            self.bindings.failed(self, Failure(SCHEDULER_ERROR, message), error)
        self.bindings.ended(self)


class Bindings:
    """Every pod that has a node and is not bound yet."""

    def __init__(
        self,
        cluster: Cluster,
        queue: SchedulingQueue,
        waiting: WaitingPods,
        writer: BindWriter,
        failures: FailureHandler,
        reports: Reports,
        metrics: Metrics,
        *,
        clock: Callable[[], float],
        timer: Callable[[], float],
        on_ended: Callable[[], None],
    ) -> None:
        """`clock` tells the time of day, `timer` measures; `on_ended` is told whenever a binding has ended."""
        self._cluster = cluster
        self._queue = queue
        self._waiting = waiting
        self._writer = writer
        self._failures = failures
        self._reports = reports
        self._metrics = metrics
        self._clock = clock
        self._timer = timer
        self._on_ended = on_ended
        self._in_flight: set[Binding] = set()
        self._all_ended = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        """How many bindings have not ended."""
        return len(self._in_flight)

    def start(self, profile: Profile, queued: QueuedPod, placement: Placement, started: float) -> None:
        """Bind a pod that has just been assumed on its node."""
        binding = Binding(self, profile, queued, placement, started)
        self._in_flight.add(binding)
        self._queue.nominator.remove(queued.uid)
        if profile.binds_plainly and not placement.waits:
            self._queue.done(queued.uid)
            self._writer.bind(placement.pod, placement.node_name, binding)
            return
        task = asyncio.get_running_loop().create_task(self._bind(binding))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def finish(self, seconds: float) -> int:
        """Wait until every binding has ended, but not longer; how many have not.

        Pods that plugins hold back are let go at once: whoever schedules next will find them pending.
        """
        self._all_ended.clear()
        for waiting in self._waiting:
            waiting.abandon()
        if self._in_flight:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._all_ended.wait(), seconds)
        left = len(self._in_flight)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        return left

    # -- the way with something to wait for

    async def _bind(self, binding: Binding) -> None:
        try:
            await self._steps(binding)
        except Exception as fault:  # a fault in one pod's binding must not leave its room taken for ever
            log.exception('binding failed pod="%s"', binding.queued.key)
            self.failed(binding, Failure(SCHEDULER_ERROR, f"{type(fault).__name__}: {fault}"), None)
        finally:
            self.ended(binding)

    async def _steps(self, binding: Binding) -> None:
        """Permission, preparation, the binding itself."""
        profile, placement = binding.profile, binding.placement
        pod, node_name, state = placement.pod, placement.node_name, placement.state
        status = await self._permission(binding)
        if status is not None:
            self._stopped(binding, status)
            return
        # From here on nothing that happens in the cluster can have helped the pod, should it fail.
        self._queue.done(pod.uid)
        status = await profile.pre_bind(state, pod, node_name) or await profile.bind(state, pod, node_name)
        if status is not None:
            self._stopped(binding, status)
            return
        self.bound(binding)
        await profile.post_bind(state, pod, node_name)

    async def _permission(self, binding: Binding) -> Status | None:
        """Wait for the Permit plugins that hold the pod back."""
        placement = binding.placement
        if not placement.waits:
            return None
        waiting = WaitingPod(placement.pod, placement.waits, asyncio.get_running_loop())
        self._waiting.add(waiting)
        try:
            return await waiting.verdict
        finally:
            self._waiting.remove(placement.pod.uid)

    def _stopped(self, binding: Binding, status: Status) -> None:
        """A plugin turned the pod down, or failed."""
        if not status.is_rejected:
            self.failed(binding, Failure(SCHEDULER_ERROR, status.message), None)
            return
        message = fit_message(1, "", dict.fromkeys(status.reasons, 1), "")
        plugins = frozenset({status.plugin} if status.plugin else ())
        self.failed(binding, Failure("Unschedulable", message, plugins), None)

    # -- the end

    def bound(self, binding: Binding) -> None:
        """The API server has the pod on its node."""
        queued, placement = binding.queued, binding.placement
        pod = placement.pod.pod
        if log.isEnabledFor(logging.DEBUG):
            log.debug(
                'bound pod="%s" node="%s" evaluatedNodes=%d feasibleNodes=%d',
                pod.key, placement.node_name, placement.evaluated, placement.feasible,
            )  # fmt: skip
        self._metrics.scheduled(
            pod.scheduler_name,
            self._timer() - binding.started,
            queued.attempts,
            self._clock() - (queued.initial_attempt or 0.0),
        )
        note = f"Successfully assigned {pod.key} to {placement.node_name}"
        self._reports.event(queued.pod.pod, "Normal", "Scheduled", "Binding", note)

    def failed(self, binding: Binding, failure: Failure, error: ClientError | None) -> None:
        """The pod is not bound: give back what it held, wake those that it kept out, and let it try again."""
        queued, placement = binding.queued, binding.placement
        if error is not None:
            self._metrics.bind_failures[error.reason if isinstance(error, ApiError) else type(error).__name__] += 1
        binding.profile.unreserve(placement.state, placement.pod, placement.node_name)
        if self._cluster.is_assumed(queued.uid):
            self._cluster.forget(queued.uid)
        event, pod, uid = events.ASSIGNED_POD_DELETE, placement.pod.pod, queued.uid
        seconds = self._timer() - binding.started
        if failure.reason == SCHEDULER_ERROR:
            self._queue.move(event, pod, None)
            self._failures.handle(queued, failure, seconds)
        else:
            # The pod itself must not be woken by its own going.
            self._failures.handle(queued, failure, seconds)
            self._queue.move(event, pod, None, lambda other: other.uid != uid)

    def ended(self, binding: Binding) -> None:
        """The binding needs no more of us."""
        self._in_flight.discard(binding)
        if not self._in_flight:
            self._all_ended.set()
        self._on_ended()
