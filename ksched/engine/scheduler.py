"""A scheduler's life: start, turn after turn, a clean stop.

Everything runs on one event loop. A turn takes pods from the queue and runs their cycles, one after the other, until a
few milliseconds are gone; then the loop gets to read watches and answers before the next turn. There is no task per pod
and no lock: a cycle is ordinary code that nothing can interrupt.

All state comes from the API server. A scheduler that was killed starts again with what the server says: pods it had
chosen a node for, without having bound them, are pending like any other.
"""

from __future__ import annotations

import asyncio
import logging
import random
import socket
import time
from collections.abc import Callable, Iterable, Mapping

from prometheus_client.registry import Collector

from ksched.api.client import Client
from ksched.api.events import EventRecorder
from ksched.api.writes import Writes
from ksched.cache.cluster import Cluster
from ksched.config.gates import FeatureGates
from ksched.config.types import Configuration
from ksched.engine.garbage import Garbage
from ksched.engine.outlet import Outlet
from ksched.engine.pipeline import Pipeline
from ksched.engine.sources import Sources
from ksched.framework.plugin import Plugin
from ksched.framework.profile import Profile
from ksched.metrics import Metrics
from ksched.queue.scheduling_queue import SchedulingQueue

log = logging.getLogger("ksched.scheduler")

TURN_SECONDS = 0.003
"""Cycles run for so long before the loop gets to read and write. Longer turns delay what the server tells."""

MOST_BINDINGS = 128
"""No pod gets a node while so many bindings are being written: as many again as there are connections, so that none is
idle. An urgent pod waits behind no more than these, and what is chosen long before it is written is chosen on old
knowledge. Pods that plugins hold back do not count: others may have to come before they are let go."""

UNSCHEDULABLE_FLUSH_SECONDS = 30.0


class Scheduler:
    """Schedules the pods of one API server that ask for one of the configuration's profiles.

    Made and run on the event loop of `client`, which stays its maker's to close.
    """

    def __init__(
        self,
        client: Client,
        configuration: Configuration,
        gates: FeatureGates,
        *,
        clock: Callable[[], float] = time.time,
        timer: Callable[[], float] = time.perf_counter,
        rng: random.Random | None = None,
        plugins: Iterable[type[Plugin]] = (),
        forms: str | None = None,
        max_nodes: int | None = None,
    ) -> None:
        """`clock` tells the time of day, `timer` measures durations, `rng` decides between equal nodes.

        `plugins` are classes beside the in-tree ones. Raises ConfigurationError where profiles cannot be made.
        """
        self._loop = asyncio.get_running_loop()
        self._clock = clock
        self._timer = timer
        rng = rng or random.Random()
        # Jitter has dice of its own, so that what is decided does not depend on how the network behaved.
        jitter = random.Random(rng.getrandbits(64))
        recorder = EventRecorder(client, hostname=socket.gethostname(), clock=lambda: int(clock() * 1e9), rng=jitter)
        self._outlet = Outlet(client, Writes(client, rng=jitter), recorder)
        self._pipeline = Pipeline(
            self._outlet,
            configuration,
            gates,
            clock=clock,
            timer=timer,
            rng=rng,
            plugins=plugins,
            forms=forms,
            max_nodes=max_nodes,
            on_ready=self._wake,
            on_synced=self._kind_synced,
        )
        self._garbage = Garbage()
        self._sources = Sources(
            client,
            self._pipeline.feed,
            rng=jitter,
            on_list_start=self._garbage.list_starts,
            on_list_end=self._garbage.list_ends,
        )
        self._unsynced = set(self._sources.kinds)
        self._timers: list[asyncio.TimerHandle] = []
        self._turn_is_due = False
        self._running = False
        self._stopping = False
        self._stopped = asyncio.Event()
        self.synced = asyncio.Event()
        """Set once everything that the API server has was shown; scheduling starts then."""
        self.metrics.events_dropped = self._outlet.events_dropped
        self.metrics.undecodable_objects = self._sources.malformed

    @property
    def metrics(self) -> Metrics:
        """What this scheduler counts."""
        return self._pipeline.metrics

    @property
    def cluster(self) -> Cluster:
        """The cluster as the scheduler knows it."""
        return self._pipeline.cluster

    @property
    def queue(self) -> SchedulingQueue:
        """The pods that wait."""
        return self._pipeline.queue

    @property
    def profiles(self) -> Mapping[str, Profile]:
        """The profiles by scheduler name."""
        return self._pipeline.profiles

    def collector(self) -> Collector:
        """The metrics, for an exposition."""
        return self.metrics

    # -- life

    async def run(self) -> None:
        """Schedule until `stop` is called, or until this is cancelled. What makes it impossible to go on is raised."""
        try:
            await self._outlet.discover()
            await self._sources.run(self._stopped)
        finally:
            self._running = False
            for timer in self._timers:
                timer.cancel()
            await self._pipeline.bindings.finish(0.0)
            self._outlet.close()
            self._garbage.release()

    async def stop(self, grace_seconds: float = 10.0) -> None:
        """Start no more cycles, let bindings finish and events be written, and end `run`."""
        self._stopping = True
        self._running = False
        deadline = self._loop.time() + grace_seconds
        left = await self._pipeline.bindings.finish(grace_seconds)
        if left:
            log.warning("bindings not finished count=%d graceSeconds=%g", left, grace_seconds)
        await self._outlet.flush(max(0.0, deadline - self._loop.time()))
        self._stopped.set()

    def _kind_synced(self, kind: str) -> None:
        """All objects of a kind have been shown. After the last kind the cluster is known: begin."""
        self._unsynced.discard(kind)
        if self._unsynced:
            return
        cluster, waiting = self.cluster, len(self.queue)
        log.info("cluster known nodes=%d pods=%d pending=%d", cluster.node_count, cluster.pod_count, waiting)
        self.synced.set()
        self._running = not self._stopping
        self._timers = [
            self._loop.call_later(self._until_next_second(), self._every_second),
            self._loop.call_later(UNSCHEDULABLE_FLUSH_SECONDS, self._every_half_minute),
        ]
        self._wake()

    # -- turns

    def _wake(self) -> None:
        """There may be something to do."""
        if self._running and not self._turn_is_due:
            self._turn_is_due = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        """Run cycles for a while."""
        self._turn_is_due = False
        pipeline, end = self._pipeline, self._timer() + TURN_SECONDS
        while self._running and self._outlet.binds < MOST_BINDINGS:
            queued = pipeline.queue.pop()
            if queued is None:
                return
            pipeline.schedule(queued)
            if self._timer() >= end:
                self._wake()
                return

    # -- timers

    def _until_next_second(self) -> float:
        return 1.0 - self._clock() % 1.0

    def _every_second(self) -> None:
        self._timers[0] = self._loop.call_later(self._until_next_second(), self._every_second)
        self.queue.flush_backoff()
        if not self.queue.has_next():
            self._garbage.idle()
        # Whatever kept a turn from being due, pods that are ready wait no longer than this.
        self._wake()

    def _every_half_minute(self) -> None:
        self._timers[1] = self._loop.call_later(UNSCHEDULABLE_FLUSH_SECONDS, self._every_half_minute)
        self.queue.flush_unschedulable()
