"""A scheduler's life: start, turn after turn, a clean stop.

Everything runs on one event loop. A turn takes pods from the queue and runs their cycles, one after the other,
until a few milliseconds are gone; then the loop gets to read watches and answers before the next turn. There is
no task per pod and no lock: a cycle is ordinary code that nothing can interrupt.

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
from typing import Any

from prometheus_client.registry import Collector

from ksched.api.client import Client
from ksched.api.events import EventRecorder
from ksched.api.writes import Writes
from ksched.cache.cluster import Cluster
from ksched.config.gates import FeatureGates
from ksched.config.types import Configuration
from ksched.engine.binding import Binder, Bindings
from ksched.engine.cycle import Cycle, Placement, Unplaced
from ksched.engine.failure import Failure, FailureHandler
from ksched.engine.feed import Feed, Pending
from ksched.engine.garbage import Garbage
from ksched.engine.handle import Handle
from ksched.engine.outlet import Outlet
from ksched.engine.sources import Sources
from ksched.engine.waiting import WaitingPods
from ksched.framework.build import MissingPlugin, build_profiles
from ksched.framework.plugin import Plugin
from ksched.framework.profile import Profile
from ksched.framework.status import Status
from ksched.metrics import Metrics
from ksched.model.requests import RequestRules
from ksched.plugins.registry import IN_TREE
from ksched.queue.pools import QueuedPod
from ksched.queue.registrations import Registrations
from ksched.queue.scheduling_queue import SchedulingQueue

log = logging.getLogger("ksched.scheduler")

TURN_SECONDS = 0.003
"""Cycles run for so long before the loop gets to read and write. Longer turns delay what the server tells."""

MOST_BINDINGS = 1000
"""No pod gets a node while so many wait for their binding: what is chosen too long before it is written is
chosen on old knowledge, and is lost work if the scheduler stops."""

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
        self.metrics = Metrics()
        self._timer = timer
        self._clock = clock
        registry = {**IN_TREE, **{plugin.name: plugin for plugin in plugins}}
        rules = request_rules(gates)
        self.cluster = Cluster(rules=rules) if max_nodes is None else Cluster(rules=rules, max_nodes=max_nodes)
        self.waiting_pods = WaitingPods()
        rng = rng or random.Random()
        # Jitter has dice of its own, so that what is decided does not depend on how the network behaved.
        jitter = random.Random(rng.getrandbits(64))
        recorder = EventRecorder(client, hostname=socket.gethostname(), clock=lambda: int(clock() * 1e9), rng=jitter)
        self._outlet = Outlet(client, Writes(client, rng=jitter), recorder)
        handle = Handle(self.cluster, gates, Binder(self._outlet), self.waiting_pods)
        self.profiles: Mapping[str, Profile] = build_profiles(configuration, gates, handle, registry, forms=forms)
        self._pending = Pending()
        registrations = Registrations.of(registry, without_events=_missing(registry))
        self.queue = SchedulingQueue(
            self.profiles,
            dict.fromkeys(self.profiles, registrations),
            clock=clock,
            waits=self._pending.has,
            initial_backoff_seconds=configuration.pod_initial_backoff_seconds,
            max_backoff_seconds=configuration.pod_max_backoff_seconds,
            pop_from_backoff=gates.enabled("SchedulerPopFromBackoffQ"),
            rules=rules,
            incoming=self.metrics.incoming,
            ready=self._wake,
        )
        self._failures = FailureHandler(self.queue, self._pending.get, self._outlet, self.metrics, clock)
        self._bindings = Bindings(
            self.cluster,
            self.queue,
            self.waiting_pods,
            self._outlet,
            self._failures,
            self._outlet,
            self.metrics,
            clock=clock,
            timer=timer,
            on_ended=self._wake,
        )
        feed = Feed(
            self.cluster,
            self.queue,
            self._pending,
            self.waiting_pods,
            self.metrics,
            scheduler_names=self.profiles,
            declared_features=gates.enabled("NodeDeclaredFeatures"),
            mark_unreadable=self._failures.unreadable,
            on_synced=self._kind_synced,
        )
        self._garbage = Garbage()
        self._sources = Sources(
            client,
            feed,
            rng=jitter,
            on_list_start=self._garbage.list_starts,
            on_list_end=self._garbage.list_ends,
        )
        self._unsynced = set(self._sources.kinds)
        self._cycle = Cycle(self.cluster, rng=rng)
        self._loop = asyncio.get_running_loop()
        self._timers: list[asyncio.TimerHandle] = []
        self._turn_is_due = False
        self._running = False
        self._stopping = False
        self._stopped = asyncio.Event()
        self.synced = asyncio.Event()
        """Set once everything that the API server has was shown; scheduling starts then."""
        self._read_gauges()

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
            self._outlet.close()
            self._garbage.release()

    async def stop(self, grace_seconds: float = 10.0) -> None:
        """Start no more cycles, let bindings finish and events be written, and end `run`."""
        self._stopping = True
        self._running = False
        deadline = self._loop.time() + grace_seconds
        left = await self._bindings.finish(grace_seconds)
        if left:
            log.warning("bindings not finished count=%d graceSeconds=%g", left, grace_seconds)
        await self._outlet.flush(max(0.0, deadline - self._loop.time()))
        self._stopped.set()

    def collector(self) -> Collector:
        """The metrics, for an exposition."""
        return self.metrics

    # -- turns

    def _kind_synced(self, kind: str) -> None:
        """All objects of a kind have been shown. After the last kind the cluster is known: begin."""
        self._unsynced.discard(kind)
        if self._unsynced:
            return
        log.info(
            "cluster known nodes=%d pods=%d pending=%d",
            self.cluster.node_count,
            self.cluster.pod_count,
            len(self.queue),
        )
        self.synced.set()
        self._running = not self._stopping
        self._timers = [
            self._loop.call_later(self._until_next_second(), self._every_second),
            self._loop.call_later(UNSCHEDULABLE_FLUSH_SECONDS, self._every_half_minute),
        ]
        self._wake()

    def _wake(self) -> None:
        """There may be something to do."""
        if self._running and not self._turn_is_due:
            self._turn_is_due = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        """Run cycles for a while."""
        self._turn_is_due = False
        end = self._timer() + TURN_SECONDS
        while self._running and len(self._bindings) < MOST_BINDINGS:
            queued = self.queue.pop()
            if queued is None:
                return
            self._schedule(queued)
            if self._timer() >= end:
                self._wake()
                return

    def _schedule(self, queued: QueuedPod) -> None:
        """One pod's cycle, and what follows from it."""
        pod = queued.pod
        if pod.pod.is_terminating:
            self._outlet.event(
                pod.pod, "Warning", "FailedScheduling", "Scheduling", f"skip schedule deleting pod: {pod.key}"
            )
            self.queue.done(pod.uid)
            return
        if self.cluster.pod(pod.uid) is not None:
            self.queue.done(pod.uid)
            return
        profile = self.profiles[pod.pod.scheduler_name]
        started = self._timer()
        outcome = self._outcome(profile, queued)
        self.metrics.algorithm_seconds.observe(self._timer() - started)
        if isinstance(outcome, Placement):
            self._bindings.start(profile, queued, outcome, started)
            return
        failure = Failure(
            outcome.reason,
            outcome.message,
            outcome.unschedulable_plugins,
            outcome.pending_plugins,
            outcome.nominated_node,
        )
        self._failures.handle(queued, failure, self._timer() - started)

    def _outcome(self, profile: Profile, queued: QueuedPod) -> Placement | Unplaced:
        try:
            return self._cycle.schedule(profile, queued.pod, self.queue.nominator.promised())
        except Exception as fault:  # a fault that one pod brings out must not end scheduling for all others
            log.exception('cycle failed pod="%s"', queued.key)
            if self.cluster.is_assumed(queued.uid):
                self.cluster.forget(queued.uid)
            return Unplaced(queued.pod, Status.error(str(fault)), f"{type(fault).__name__}: {fault}")

    # -- timers

    def _until_next_second(self) -> float:
        return 1.0 - self._clock() % 1.0

    def _every_second(self) -> None:
        self.queue.flush_backoff()
        if not self.queue.has_next():
            self._garbage.idle()
        # Whatever kept a turn from being due, pods that are ready wait no longer than this.
        self._wake()
        self._timers[0] = self._loop.call_later(self._until_next_second(), self._every_second)

    def _every_half_minute(self) -> None:
        self.queue.flush_unschedulable()
        self._timers[1] = self._loop.call_later(UNSCHEDULABLE_FLUSH_SECONDS, self._every_half_minute)

    def _read_gauges(self) -> None:
        self.metrics.pending_pods = self.queue.counts
        self.metrics.unschedulable_pods = self.queue.rejections
        self.metrics.cache_size = self._cache_size
        self.metrics.binds_in_flight = self._bindings.__len__
        self.metrics.events_dropped = self._outlet.events_dropped
        self.metrics.undecodable_objects = self._sources.malformed

    def _cache_size(self) -> dict[str, int]:
        return {
            "nodes": self.cluster.node_count,
            "pods": self.cluster.pod_count,
            "assumed_pods": self.cluster.assumed_count,
        }


def request_rules(gates: FeatureGates) -> RequestRules:
    """How requests are added up under these gates."""
    return RequestRules(
        pod_level_resources=gates.enabled("PodLevelResources"),
        in_place_resize=gates.enabled("InPlacePodVerticalScaling"),
        in_place_pod_level_resize=gates.enabled("InPlacePodLevelResourcesVerticalScaling"),
    )


def _missing(registry: Mapping[str, type[Any]]) -> list[str]:
    """Plugins that ksched does not have: nothing that happens in the cluster helps a pod that needs one."""
    return [name for name, plugin in registry.items() if issubclass(plugin, MissingPlugin)]
