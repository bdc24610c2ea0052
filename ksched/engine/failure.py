"""A pod that found no node: an event, a condition that says why, and back to the queue.

The order is kube-scheduler's: the pod is put back with its newest version, then the event is written, then the status,
and the status only where something in it changes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from ksched.cache.shapes import PodInfo
from ksched.errors import KschedError, QueueError
from ksched.metrics import ERROR, UNSCHEDULABLE, Metrics
from ksched.model.objects import Condition
from ksched.model.pod import Pod
from ksched.queue.pools import QueuedPod
from ksched.queue.scheduling_queue import SchedulingQueue

log = logging.getLogger("ksched.failure")

POD_SCHEDULED: Final = "PodScheduled"
SCHEDULER_ERROR: Final = "SchedulerError"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt failed. `nominated_node` is None to leave a nomination as it is, "" to clear it."""

    reason: str
    message: str
    unschedulable_plugins: frozenset[str] = frozenset()
    pending_plugins: frozenset[str] = frozenset()
    nominated_node: str | None = ""


class Reports(Protocol):
    """How the world is told."""

    def event(self, pod: Pod, kind: str, reason: str, action: str, note: str) -> None:
        """Write an event about a pod."""

    def status(self, pod: Pod, patch: dict[str, Any]) -> None:
        """Patch a pod's status (strategic merge)."""


class FailureHandler:
    """Handles every pod that an attempt has failed for, whatever the step."""

    def __init__(
        self,
        queue: SchedulingQueue,
        newest: Callable[[str], PodInfo | None],
        reports: Reports,
        metrics: Metrics,
        clock: Callable[[], float],
    ) -> None:
        """`newest` gives the pod of a key as the API server last showed it, if it exists and has no node."""
        self._queue = queue
        self._newest = newest
        self._reports = reports
        self._metrics = metrics
        self._clock = clock

    def handle(self, queued: QueuedPod, failure: Failure, seconds: float) -> None:
        """Tell the world that a popped pod has no node, and give it back to the queue."""
        pod = queued.pod
        result = ERROR if failure.reason == SCHEDULER_ERROR else UNSCHEDULABLE
        self._metrics.attempted(result, pod.pod.scheduler_name, seconds)
        if result == ERROR:
            log.error('scheduling failed pod="%s" error="%s"', pod.key, failure.message)
        else:
            log.debug('no node for pod pod="%s" reasons="%s"', pod.key, failure.message)
        queued.unschedulable_plugins = failure.unschedulable_plugins
        queued.pending_plugins = failure.pending_plugins
        queued.gating_plugin = ""
        newest = self._newest(pod.key)
        if newest is None:
            self._queue.done(pod.uid)
        elif newest.uid != pod.uid:
            self._queue.done(pod.uid)
            return
        else:
            queued.pod = pod = newest
            self._requeue(queued)
        self._queue.nominator.add(pod, failure.nominated_node)
        self.tell(pod.pod, failure.reason, failure.message, failure.nominated_node)

    def unreadable(self, pod: Pod, error: KschedError) -> None:
        """A pod of ours cannot be understood; it is not tried before it changes."""
        self.tell(pod, SCHEDULER_ERROR, str(error), None)

    def tell(self, pod: Pod, reason: str, message: str, nominated_node: str | None) -> None:
        """Write the event and, where it changes something, the condition."""
        self._reports.event(pod, "Warning", "FailedScheduling", "Scheduling", message)
        patch = status_patch(pod, reason, message, nominated_node, self._clock())
        if patch is not None:
            self._reports.status(pod, patch)

    def _requeue(self, queued: QueuedPod) -> None:
        try:
            self._queue.requeue(queued)
        except QueueError as error:
            log.error('pod not requeued pod="%s" error="%s"', queued.key, error)


def status_patch(pod: Pod, reason: str, message: str, nominated_node: str | None, now: float) -> dict[str, Any] | None:
    """The strategic merge patch that makes the status say PodScheduled=False, or None where it says so already."""
    status: dict[str, Any] = {}
    old = next((condition for condition in pod.status.conditions if condition.type == POD_SCHEDULED), None)
    if old is None or (old.status, old.reason, old.message) != ("False", reason, message):
        if pod.status.conditions:
            types = [condition.type for condition in pod.status.conditions]
            order = types if old is not None else [*types, POD_SCHEDULED]
            status["$setElementOrder/conditions"] = [{"type": kind} for kind in order]
        status["conditions"] = [_condition(pod, old, reason, message, now)]
    if nominated_node is not None and nominated_node != pod.status.nominated_node_name:
        status["nominatedNodeName"] = nominated_node or None
    return {"status": status} if status else None


def _condition(pod: Pod, old: Condition | None, reason: str, message: str, now: float) -> dict[str, Any]:
    """The condition as the patch has it: whole where it is new, otherwise what differs and the type, its key."""
    new: dict[str, Any] = {
        "lastProbeTime": None,
        "lastTransitionTime": datetime.fromtimestamp(int(now), UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "message": message,
        "observedGeneration": pod.metadata.generation,
        "reason": reason,
        "status": "False",
        "type": POD_SCHEDULED,
    }
    if not pod.metadata.generation:
        del new["observedGeneration"]
    if old is None:
        return new
    same = {"message": old.message, "observedGeneration": old.observed_generation, "reason": old.reason}
    changed = {name: value for name, value in new.items() if name in same and same[name] != value}
    if old.status != "False":
        changed["lastTransitionTime"], changed["status"] = new["lastTransitionTime"], "False"
    return dict(sorted({**changed, "type": POD_SCHEDULED}.items()))
