"""A pod's whole way, put together once: cluster, queue, profiles, cycle, binding, failure handling, feed.

What is missing is a loop that keeps it going and a network: `scheduler` adds them. Whoever turns the clock by hand, as
tests do, drives a pipeline directly. Nothing here waits or knows HTTP; `Out` is where writing begins.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from ksched.cache.cluster import Cluster
from ksched.config.gates import FeatureGates
from ksched.config.types import Configuration
from ksched.engine.binding import Binder, Bindings, BindWriter
from ksched.engine.cycle import Cycle, Placement, Unplaced
from ksched.engine.failure import Failure, FailureHandler, Reports
from ksched.engine.feed import Feed, Pending
from ksched.engine.handle import Handle
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


class Out(BindWriter, Reports, Protocol):
    """Where everything is written."""


def _nothing() -> None:
    """Nobody needs to be told."""


class Pipeline:
    """Everything between what the API server tells (`feed`) and what is written to it (`out`)."""

    def __init__(
        self,
        out: Out,
        configuration: Configuration,
        gates: FeatureGates,
        *,
        clock: Callable[[], float],
        timer: Callable[[], float],
        rng: random.Random,
        plugins: Iterable[type[Plugin]] = (),
        forms: str | None = None,
        max_nodes: int | None = None,
        on_ready: Callable[[], None] = _nothing,
        on_synced: Callable[[str], None] = lambda kind: None,
    ) -> None:
        """`clock` tells the time of day, `timer` measures durations, `rng` decides between equal nodes.

        `plugins` are classes beside the in-tree ones. `on_ready` is told when there may be a pod to try, or room for
        another binding; `on_synced` when all objects of a kind have been shown. Raises ConfigurationError where
        profiles cannot be made.
        """
        self._out = out
        self._timer = timer
        registry = {**IN_TREE, **{plugin.name: plugin for plugin in plugins}}
        rules = request_rules(gates)
        self.metrics = Metrics()
        self.cluster = Cluster(rules=rules) if max_nodes is None else Cluster(rules=rules, max_nodes=max_nodes)
        self.waiting = WaitingPods()
        self.pending = Pending()
        handle = Handle(self.cluster, gates, Binder(out), self.waiting)
        self.profiles: Mapping[str, Profile] = build_profiles(configuration, gates, handle, registry, forms=forms)
        self.cycle = Cycle(self.cluster, rng=rng)
        registrations = Registrations.of(registry, without_events=_missing(registry))
        self.queue = SchedulingQueue(
            self.profiles,
            dict.fromkeys(self.profiles, registrations),
            clock=clock,
            waits=self.pending.has,
            initial_backoff_seconds=configuration.pod_initial_backoff_seconds,
            max_backoff_seconds=configuration.pod_max_backoff_seconds,
            pop_from_backoff=gates.enabled("SchedulerPopFromBackoffQ"),
            rules=rules,
            incoming=self.metrics.incoming,
            ready=on_ready,
        )
        self.failures = FailureHandler(self.queue, self.pending.get, out, self.metrics, clock)
        self.bindings = Bindings(
            self.cluster,
            self.queue,
            self.waiting,
            out,
            self.failures,
            out,
            self.metrics,
            clock=clock,
            timer=timer,
            on_ended=on_ready,
        )
        self.feed = Feed(
            self.cluster,
            self.queue,
            self.pending,
            self.waiting,
            self.metrics,
            scheduler_names=self.profiles,
            declared_features=gates.enabled("NodeDeclaredFeatures"),
            mark_unreadable=self.failures.unreadable,
            on_synced=on_synced,
        )
        self.metrics.pending_pods = self.queue.counts
        self.metrics.unschedulable_pods = self.queue.rejections
        self.metrics.cache_size = self._cache_size
        self.metrics.binds_in_flight = self.bindings.__len__

    def schedule(self, queued: QueuedPod) -> None:
        """One popped pod's cycle, and what follows from it: its binding begins, or it goes back with the reason."""
        pod = queued.pod
        if pod.pod.is_terminating:
            note = f"skip schedule deleting pod: {pod.key}"
            self._out.event(pod.pod, "Warning", "FailedScheduling", "Scheduling", note)
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
            self.bindings.start(profile, queued, outcome, started)
        else:
            self.failures.handle(queued, _failure(outcome), self._timer() - started)

    def _outcome(self, profile: Profile, queued: QueuedPod) -> Placement | Unplaced:
        try:
            return self.cycle.schedule(profile, queued.pod, self.queue.nominator.promised())
        except Exception as fault:  # a fault that one pod brings out must not end scheduling for all others
            log.exception('cycle failed pod="%s"', queued.key)
            if self.cluster.is_assumed(queued.uid):
                self.cluster.forget(queued.uid)
            return Unplaced(queued.pod, Status.error(str(fault)), f"{type(fault).__name__}: {fault}")

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


def _failure(unplaced: Unplaced) -> Failure:
    return Failure(
        unplaced.reason,
        unplaced.message,
        unplaced.unschedulable_plugins,
        unplaced.pending_plugins,
        unplaced.nominated_node,
    )


def _missing(registry: Mapping[str, type[Plugin]]) -> list[str]:
    """Plugins that ksched does not have: nothing that happens in the cluster helps a pod that needs one."""
    return [name for name, plugin in registry.items() if issubclass(plugin, MissingPlugin)]
