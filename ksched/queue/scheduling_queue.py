"""The scheduling queue: which pod is next, and what becomes of those that did not fit.

A pod is *active* (ready to be tried), *backing off* (failed a short while ago), *unschedulable* (waits for an event
that could help; gated pods wait there too) or *in flight* (popped, not yet settled). Pods are known by
`namespace/name`; those in flight by uid, because a pod of the same name may come while its predecessor is still being
bound.

The rules are kube-scheduler's, one method for each way a pod can move:

    add, update, delete      the API server told `engine.feed` of a pod
    pop, done, requeue       a pod is tried; it is placed, or it failed and comes back
    move                     something happened that may help pods which wait
    activate                 a plugin wants pods to be tried now
    flush_backoff            back-off has ended for some (every second)
    flush_unschedulable      nothing has happened for long, try them anyway (every half minute)

Every method runs to its end without waiting; the clock is passed in.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import Any, Protocol

from ksched.cache.shapes import PodInfo
from ksched.errors import QueueError
from ksched.framework.status import Code, Status
from ksched.model.pod import Pod
from ksched.model.requests import RequestRules
from ksched.queue import backoff, events
from ksched.queue.changes import pod_changes
from ksched.queue.events import ClusterEvent
from ksched.queue.nominator import Nominator
from ksched.queue.pools import Group, Happening, Heap, InFlight, Place, QueuedPod, UnschedulablePods
from ksched.queue.registrations import Hint, Registrations

log = logging.getLogger("ksched.queue")

MAX_IN_UNSCHEDULABLE_SECONDS = 300.0
"""A pod that nothing has woken for so long is tried again in case an event was missed."""


class QueueProfile(Protocol):
    """What the queue asks of a profile."""

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        """The status of the plugin that gates the pod, or None."""

    def sort_key(self, pod: PodInfo, timestamp: float) -> Any:
        """The pod's place among active pods: smaller goes first."""


class Strategy(IntEnum):
    """What an event means for a pod that waits."""

    SKIP = 0
    AFTER_BACKOFF = 1
    IMMEDIATELY = 2


class SchedulingQueue:
    """All pods of our profiles that have no node yet, in the order in which they are to be tried."""

    def __init__(
        self,
        profiles: Mapping[str, QueueProfile],
        registrations: Mapping[str, Registrations],
        *,
        clock: Callable[[], float],
        waits: Callable[[str], bool],
        initial_backoff_seconds: float = 1.0,
        max_backoff_seconds: float = 10.0,
        max_in_unschedulable_seconds: float = MAX_IN_UNSCHEDULABLE_SECONDS,
        pop_from_backoff: bool = True,
        rules: RequestRules | None = None,
        incoming: Callable[[str, str], None] = lambda queue, event: None,
        ready: Callable[[], None] = lambda: None,
    ) -> None:
        """`profiles` and `registrations` are by scheduler name.

        `waits` says of a key whether such a pod exists and has no node. `incoming` is told of every pod that enters a
        queue, and by what event; `ready` when there may be something to pop.
        """
        self._profiles = profiles
        self._registrations = registrations
        self._clock = clock
        self._initial_backoff = initial_backoff_seconds
        self._max_backoff = max_backoff_seconds
        self._max_in_unschedulable = max_in_unschedulable_seconds
        self._pop_from_backoff = pop_from_backoff
        self._second = 1.0 if pop_from_backoff else None
        self._rules = rules or RequestRules()
        self._incoming = incoming
        self._ready = ready
        self._queued: dict[str, QueuedPod] = {}
        self._active = Heap(Place.ACTIVE, self._active_order)
        self._backoff = Heap(Place.BACKOFF, self._backoff_order)
        self._error_backoff = Heap(Place.ERROR_BACKOFF, lambda queued: queued.backoff_expires)
        self._heaps = {
            Place.ACTIVE: self._active,
            Place.BACKOFF: self._backoff,
            Place.ERROR_BACKOFF: self._error_backoff,
        }
        self._unschedulable = UnschedulablePods()
        self._in_flight = InFlight()
        self.nominator = Nominator(waits, self._pod_of)
        self.cycle = 0
        """How many pods have been popped."""

    # -- what the API server told

    def add(self, pod: PodInfo) -> None:
        """A new pod of ours, without a node."""
        self._forget(pod.key)
        self._start(pod, events.UNSCHEDULED_POD_ADD.label)

    def update(self, old: Pod, pod: PodInfo) -> None:
        """A newer version of a pod that has no node."""
        changes = pod_changes(old, pod.pod, self._rules)
        if pod.uid in self._in_flight:
            # It comes back, if it comes back, with its newest version; what the change may mean is judged then.
            for change in changes:
                self._in_flight.record(Happening(change, old, pod.pod))
            return
        queued = self._queued.get(pod.key)
        if queued is None:
            self._start(pod, events.UNSCHEDULED_POD_UPDATE.label)
        elif queued.place is Place.UNSCHEDULABLE:
            queued.pod = pod
            self.nominator.update(old.status.nominated_node_name, pod)
            self._updated_unschedulable(queued, old, changes)
        else:
            self._heaps[queued.place].replace(queued, pod)
            self.nominator.update(old.status.nominated_node_name, pod)

    def delete(self, key: str, uid: str) -> None:
        """A pod is gone, or has a node now. One that is in flight stays so until it is done."""
        self.nominator.remove(uid)
        self._forget(key)

    # -- trying pods

    def pop(self) -> QueuedPod | None:
        """The next pod to try, from now on in flight; None where there is nothing to try.

        When no pod is active, the first one in back-off is taken early, unless it failed with an error.
        """
        while (queued := self._next()) is not None:
            self._left(queued)
            if queued.uid in self._in_flight:
                continue  # a copy of a pod that is being tried; what becomes of that one counts
            queued.attempts += 1
            self.cycle += 1
            self._in_flight.start(queued)
            return queued
        return None

    def done(self, uid: str) -> None:
        """The pod needs no more of us, or failed in a way that no event can have helped."""
        self._in_flight.done(uid)

    def requeue(self, queued: QueuedPod) -> None:
        """A popped pod failed and comes back, with the plugins that turned it down; none means that an error happened.

        Raises QueueError where a pod of that name is in the queue already; the popped one is dropped then.
        """
        try:
            other = self._queued.get(queued.key)
            if other is not None:
                where = "unschedulable" if other.place is Place.UNSCHEDULABLE else other.place.value.split()[-1]
                raise QueueError(f"Pod {queued.key} is already present in {_ARTICLES[where]}{where} queue")
            if queued.rejecting_plugins:
                queued.unschedulable_count += 1
                queued.consecutive_errors = 0
            else:
                queued.consecutive_errors += 1
            queued.timestamp = self._clock()
            queued.backoff_expires = None
            queued.was_flushed = False
            self._place(queued, self._judge(queued), events.SCHEDULE_ATTEMPT_FAILURE)
        finally:
            self._in_flight.done(queued.uid)

    # -- what may help those that wait

    def move(
        self, event: ClusterEvent, old: Any = None, new: Any = None, allow: Callable[[PodInfo], bool] | None = None
    ) -> None:
        """Something happened: pods that it could help leave the unschedulable pool. `allow` leaves some out."""
        if not event.is_wildcard and not any(each.told(event) for each in self._registrations.values()):
            return
        candidates = self._unschedulable.concerned(lambda group: self._concerns(group, event))
        if allow is not None:
            candidates = [queued for queued in candidates if allow(queued.pod)]
        self._move(candidates, event, old, new)

    def activate(self, pods: Iterable[PodInfo]) -> None:
        """Try these pods now, back-off or not, unless they are gated. Pods that do not wait here are left alone."""
        for pod in pods:
            queued = self._queued.get(pod.key)
            if queued is not None and queued.place in (Place.UNSCHEDULABLE, Place.BACKOFF, Place.ERROR_BACKOFF):
                self._left(queued)
                self._enter_active(queued, events.FORCE_ACTIVATE.label)
            elif pod.uid in self._in_flight:
                self._in_flight.record(Happening(events.FORCE_ACTIVATE, None, pod.pod))

    def flush_backoff(self) -> None:
        """Activate the pods whose back-off has ended. To be called every second, on the second."""
        now = self._clock()
        for heap in (self._backoff, self._error_backoff):
            while (first := heap.peek()) is not None and not self._is_backing_off(first, now):
                self._left(first)
                self._enter_active(first, events.BACKOFF_COMPLETE, gated_before=self._pop_from_backoff)

    def flush_unschedulable(self) -> None:
        """Try the pods again that nothing has woken for long."""
        latest = self._clock() - self._max_in_unschedulable
        stale = [queued for queued in self._unschedulable if queued.timestamp < latest]
        if not stale:
            return
        for queued in stale:
            queued.was_flushed = True
        stale.sort(key=lambda queued: queued.timestamp)
        event = events.UNSCHEDULABLE_TIMEOUT
        self._move([queued for queued in stale if self._concerns_of(queued, event)], event, None, None)

    # -- looking

    def __len__(self) -> int:
        """How many pods wait; those in flight are not counted."""
        return len(self._queued)

    def get(self, key: str) -> QueuedPod | None:
        """The pod of that name if it waits here."""
        return self._queued.get(key)

    def has_next(self) -> bool:
        """Whether `pop` would find something, but for copies of pods in flight."""
        return bool(len(self._active) or (self._pop_from_backoff and len(self._backoff)))

    def counts(self) -> dict[str, int]:
        """How many pods are in each queue, under the names that metrics use."""
        return {
            "active": len(self._active),
            "backoff": len(self._backoff) + len(self._error_backoff),
            "unschedulable": len(self._unschedulable) - self._unschedulable.gated,
            "gated": self._unschedulable.gated,
        }

    def rejections(self) -> Counter[tuple[str, str]]:
        """How many waiting pods each (plugin, profile) turned down at their last attempt."""
        return Counter(
            (plugin, queued.pod.pod.scheduler_name)
            for queued in self._queued.values()
            for plugin in queued.rejecting_plugins
        )

    def dump(self) -> dict[str, list[QueuedPod]]:
        """The pods of each place, in order where there is one."""
        return {
            "active": list(self._active),
            "backoff": list(self._backoff),
            "errorBackoff": list(self._error_backoff),
            "unschedulable": [queued for queued in self._unschedulable if not queued.is_gated],
            "gated": [queued for queued in self._unschedulable if queued.is_gated],
        }

    @property
    def in_flight(self) -> InFlight:
        """Pods in flight and what happened since they were popped."""
        return self._in_flight

    # -- ways into a pool

    def _start(self, pod: PodInfo, label: str) -> None:
        """Take in a pod that was not here. What its status nominates counts unless the pod is gated."""
        queued = QueuedPod(pod, self._clock())
        self._enter_active(queued, label)
        if not queued.is_gated:
            self.nominator.add(pod)

    def _place(self, queued: QueuedPod, strategy: Strategy, label: str) -> None:
        """Put a pod that is nowhere where the strategy says."""
        if strategy is Strategy.SKIP:
            self._enter_unschedulable(queued, label)
        elif strategy is Strategy.AFTER_BACKOFF and self._is_backing_off(queued, self._clock()):
            self._enter_backoff(queued, label)
        else:
            self._enter_active(queued, label)

    def _enter_active(self, queued: QueuedPod, label: str, *, gated_before: bool = False) -> None:
        """Into the active queue, or, if a plugin gates the pod, into the pool. `gated_before`: it has been asked."""
        if not gated_before and self._gate(queued):
            self._enter_unschedulable(queued, label)
            return
        if queued.initial_attempt is None:
            queued.initial_attempt = self._clock()
        self._enter(queued)
        self._active.push(queued)
        self._incoming("active", label)
        self._ready()

    def _enter_backoff(self, queued: QueuedPod, label: str) -> None:
        # Whoever may be popped from the back-off queue must have passed the gates on the way in.
        if self._pop_from_backoff and self._gate(queued):
            self._enter_unschedulable(queued, label)
            return
        self._enter(queued)
        (self._backoff if queued.rejecting_plugins else self._error_backoff).push(queued)
        self._incoming("backoff", label)
        if self._pop_from_backoff:
            self._ready()

    def _enter_unschedulable(self, queued: QueuedPod, label: str) -> None:
        self._enter(queued)
        self._unschedulable.add(queued)
        self._incoming("unschedulable", label)

    def _enter(self, queued: QueuedPod) -> None:
        self._queued[queued.key] = queued
        self.nominator.moved(queued.uid)

    def _gate(self, queued: QueuedPod) -> bool:
        """Ask the PreEnqueue plugins; whether one of them gates the pod."""
        status = self._profiles[queued.pod.pod.scheduler_name].pre_enqueue(queued.pod)
        if status is None or status.code is Code.SUCCESS:
            queued.gating_plugin = ""
            return False
        if not status.is_rejected:
            log.error('gate failed pod="%s" plugin="%s" error="%s"', queued.key, status.plugin, status.message)
        queued.gating_plugin = status.plugin
        queued.unschedulable_plugins |= {status.plugin}
        return True

    # -- ways out

    def _next(self) -> QueuedPod | None:
        first = self._active.peek()
        if first is not None or not self._pop_from_backoff:
            return first
        first = self._backoff.peek()
        if first is not None:
            self._incoming("active", events.POP_FROM_BACKOFF)
        return first

    def _left(self, queued: QueuedPod) -> None:
        """Out of its pool and out of the queue."""
        if queued.place is Place.UNSCHEDULABLE:
            self._unschedulable.remove(queued)
        else:
            self._heaps[queued.place].remove(queued)
        del self._queued[queued.key]
        self.nominator.moved(queued.uid)

    def _forget(self, key: str) -> None:
        queued = self._queued.get(key)
        if queued is not None:
            self._left(queued)

    # -- what an event means

    def _move(self, candidates: Iterable[QueuedPod], event: ClusterEvent, old: Any, new: Any) -> None:
        for queued in candidates:
            strategy = self._worth(queued, event, old, new)
            if strategy is not Strategy.SKIP:
                self._left(queued)
                self._place(queued, strategy, event.label)
        self._in_flight.record(Happening(event, old, new))

    def _updated_unschedulable(self, queued: QueuedPod, old: Pod, changes: Iterable[ClusterEvent]) -> None:
        """A pod in the pool was updated itself: the first change that gets it out of there decides."""
        for change in changes:
            strategy = self._worth(queued, change, old, queued.pod.pod)
            self._left(queued)
            self._place(queued, strategy, change.label)
            if queued.place is not Place.UNSCHEDULABLE:
                return

    def _judge(self, queued: QueuedPod) -> Strategy:
        """What everything that happened while the pod was in flight means for it."""
        if not queued.rejecting_plugins:
            return Strategy.AFTER_BACKOFF
        found = Strategy.SKIP
        if queued.uid in self._in_flight:
            for event, old, new in self._in_flight.since(queued.uid):
                found = max(found, self._worth(queued, event, old, new))
                if found is Strategy.IMMEDIATELY:
                    break
        return found

    def _worth(self, queued: QueuedPod, event: ClusterEvent, old: Any, new: Any) -> Strategy:
        """What an event means for a pod: nothing, a try after its back-off, or a try at once."""
        rejecting = queued.rejecting_plugins
        if not rejecting:
            return Strategy.AFTER_BACKOFF
        if event.is_wildcard:
            about_another = new is not None and new.metadata.uid != queued.uid
            return Strategy.SKIP if about_another else Strategy.AFTER_BACKOFF
        found = Strategy.SKIP
        for plugin, hints in self._told(queued.pod.pod.scheduler_name, event).items():
            if plugin not in rejecting or (found is not Strategy.SKIP and plugin not in queued.pending_plugins):
                continue
            if any(_says_queue(plugin, hint, queued.pod, old, new) for hint in hints):
                if plugin in queued.pending_plugins:
                    return Strategy.IMMEDIATELY
                if not queued.pending_plugins:
                    return Strategy.AFTER_BACKOFF
                found = Strategy.AFTER_BACKOFF
        return found

    def _concerns(self, group: Group, event: ClusterEvent) -> bool:
        """Whether an event may concern pods of a group: a gated pod hears only what its gate listens to."""
        if group.gating_plugin:
            return group.gating_plugin in self._told(group.scheduler_name, event)
        if event.is_wildcard or not group.rejecting_plugins:
            return True
        told = self._told(group.scheduler_name, event)
        return any(plugin in told for plugin in group.rejecting_plugins)

    def _concerns_of(self, queued: QueuedPod, event: ClusterEvent) -> bool:
        return queued.group is not None and self._concerns(queued.group, event)

    def _told(self, scheduler_name: str, event: ClusterEvent) -> Mapping[str, tuple[Hint | None, ...]]:
        return self._registrations[scheduler_name].told(event)

    # -- orders

    def _active_order(self, queued: QueuedPod) -> Any:
        return self._profiles[queued.pod.pod.scheduler_name].sort_key(queued.pod, queued.timestamp)

    def _backoff_order(self, queued: QueuedPod) -> Any:
        return queued.backoff_expires, self._active_order(queued)

    def _is_backing_off(self, queued: QueuedPod, now: float) -> bool:
        if queued.backoff_expires is None:
            queued.backoff_expires = self._expiry(queued)
        return backoff.is_backing_off(queued.backoff_expires, now, self._second)

    def _expiry(self, queued: QueuedPod) -> float:
        """When the pod may be tried again: by its errors in a row or, without any, by how often no node was found."""
        count = queued.consecutive_errors or queued.unschedulable_count
        if not count or not self._max_backoff:
            return 0.0
        wait = backoff.duration(count, self._initial_backoff, self._max_backoff)
        return backoff.expiry(queued.timestamp, wait, self._second)

    def _pod_of(self, key: str) -> PodInfo | None:
        queued = self._queued.get(key)
        return None if queued is None else queued.pod


def _says_queue(plugin: str, hint: Hint | None, pod: PodInfo, old: Any, new: Any) -> bool:
    """Ask a hint; one that fails counts as a yes, since a pod tried once too often is better than one forgotten."""
    if hint is None:
        return True
    try:
        return hint(pod, old, new)
    except Exception:  # a plugin's fault must not lose a pod
        log.exception('queueing hint failed plugin="%s" pod="%s"', plugin, pod.key)
        return True


_ARTICLES = {"unschedulable": "", "active": "the ", "backoff": "the "}
