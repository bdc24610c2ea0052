"""Replay of queue scripts: what each operation leaves where.

A script's clock is in milliseconds from its start, ours in seconds since the epoch.

A script is left out from the operation on that needs an operation or a plugin which ksched does not have. It is
compared up to there: a difference in that part is one. Where a hint function is asked that ksched does not have, the
queue goes on with a yes, as it would in a cluster; the script is left out if it differs after that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ksched.cache.cluster import Cluster
from ksched.cache.shapes import PodInfo
from ksched.config.gates import FeatureGates
from ksched.config.types import Configuration
from ksched.errors import QueueError
from ksched.framework.build import build_profiles
from ksched.framework.status import Status
from ksched.model.node import Node
from ksched.model.pod import Pod
from ksched.plugins.absent import ABSENT
from ksched.plugins.registry import IN_TREE
from ksched.queue import events
from ksched.queue.pools import QueuedPod
from ksched.queue.registrations import Hint, Registration, Registrations
from ksched.queue.scheduling_queue import SchedulingQueue
from ksched.testing import handle
from tests.conformance.measured_hints import (
    REGISTERED_EVENTS,
    bits_of,
    event_of,
    events_of_plugins,
    lacking_function,
    lines_of,
)
from tests.conformance.tally import Tally

FILES = {
    "queue/handmade.jsonl.gz": "the queue: scripts of one rule each",
    "queue/timelines.jsonl.gz": "the queue: random scripts",
}
SCHEDULER = "default-scheduler"
MISSING = frozenset(plugin.name for plugin in ABSENT)


def replay(path: Path) -> dict[str, Any]:
    """How many of the scripts in the file at `path` come out exactly, and the first that do not."""
    file = f"queue/{path.name}"
    unheard = events_of_plugins(path.parent.parent / REGISTERED_EVENTS, MISSING)
    tally = Tally(file, FILES[file])
    for script in lines_of(path):
        replayed = Replay(script, unheard)
        differences = replayed.differences()
        if replayed.lacks and not differences:
            tally.leave_out(replayed.lacks)
        else:
            tally.compare(script["name"], differences)
    return tally.result()


class WatchedRegistrations(Registrations):
    """ksched's own, but notes when kube-scheduler would ask a hint function that ksched does not have."""

    def __init__(self, by_plugin: Mapping[str, Any]) -> None:
        super().__init__(by_plugin)
        self.asked = ""

    def told(self, event: events.ClusterEvent) -> Mapping[str, tuple[Hint | None, ...]]:
        """As ever, with functions that note that they were asked in place of those that are not there."""
        return {
            plugin: (self._noting(lacking),) if (lacking := lacking_function(plugin, event)) else hints
            for plugin, hints in super().told(event).items()
        }

    def _noting(self, function: str) -> Hint:
        def hint(_pod: PodInfo, _old: object, _new: object) -> bool:
            self.asked = self.asked or function
            return True

        return hint


class StubProfile:
    """Gates a pod that has a label which one of the script's plugins gates on; sorts as PrioritySort does."""

    def __init__(self, gates: dict[str, str]) -> None:
        self._gates = gates

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        for plugin, label in self._gates.items():
            if label in pod.labels:
                return Status.unresolvable("gated").by(plugin)
        return None

    def sort_key(self, pod: PodInfo, timestamp: float) -> tuple[int, float]:
        return -pod.priority, timestamp


def _answer(word: str) -> Any:
    if word == "SamePod":
        return lambda pod, old, new: isinstance(new, Pod) and new.uid == pod.uid
    if word == "Error":
        return _fails
    return lambda pod, old, new: word == "Queue"


def _fails(pod: PodInfo, old: object, new: object) -> bool:
    raise ValueError("the script says so")


class Replay:
    """One script on a queue of its own. `unheard`: what plugins that ksched lacks register for."""

    def __init__(self, script: dict[str, Any], unheard: list[tuple[str, Registration]]) -> None:
        self.script = script
        self.lacks = ""
        self._unheard = unheard
        self.start = datetime.fromisoformat(script["start"]).timestamp()
        self.now = 0
        self.cluster = Cluster(max_nodes=64)
        self.latest: dict[str, Pod] = {}
        self.popped: dict[str, QueuedPod] = {}
        gates = FeatureGates(script.get("featureGates") or {})
        if gates.enabled("GenericWorkload"):
            self.lacks = "pod groups"
        profile, self._registrations = self._stubbed(script["stub"]) if script.get("stub") else self._real(gates)
        self.queue = SchedulingQueue(
            {SCHEDULER: profile},
            {SCHEDULER: self._registrations},
            clock=lambda: self.start + self.now / 1000,
            waits=lambda key: key in self.latest and not self.latest[key].node_name,
            initial_backoff_seconds=script["initialBackoffSeconds"],
            max_backoff_seconds=script["maxBackoffSeconds"],
            max_in_unschedulable_seconds=script["maxInUnschedulableSeconds"],
            pop_from_backoff=gates.enabled("SchedulerPopFromBackoffQ"),
        )

    def _stubbed(self, stub: dict[str, Any]) -> tuple[Any, WatchedRegistrations]:
        registered = {
            plugin: [
                Registration(entry["event"]["resource"], bits_of(entry["event"]), _answer(entry["answer"]))
                for entry in said["events"]
            ]
            for plugin, said in stub.items()
        }
        gates = {plugin: said["preEnqueue"] for plugin, said in stub.items() if said.get("preEnqueue")}
        return StubProfile(gates), WatchedRegistrations(registered)

    def _real(self, gates: FeatureGates) -> tuple[Any, WatchedRegistrations]:
        profiles = build_profiles(Configuration.default(gates), gates, handle(self.cluster, gates), IN_TREE)
        registrations = WatchedRegistrations.of(IN_TREE, without_events=MISSING)
        assert isinstance(registrations, WatchedRegistrations)
        return profiles[SCHEDULER], registrations

    def differences(self) -> list[dict[str, Any]]:
        """Where the queue is not as it was measured. Stops at the first operation that differs, or once `lacks` says
        what is needed and not there."""
        seen: dict[str, Any] = {}
        for number, (op, expected) in enumerate(zip(self.script["ops"], self.script["expected"], strict=True)):
            self.lacks = self.lacks or self._lacks_before(op, expected)
            if self.lacks:
                break
            self.now += op.get("dt", 0)
            result = OPERATIONS[op["op"]](self, op)
            seen.update(expected["changedPods"])
            wrong = list(self._differing(expected, result, seen))
            if wrong and self._registrations.asked:
                self.lacks = self._registrations.asked
                break
            if wrong:
                return [{"operation": f"{number} {op['op']}", **difference} for difference in wrong]
        return []

    def _lacks_before(self, op: dict[str, Any], expected: dict[str, Any]) -> str:
        """What an operation needs that ksched does not have; empty if nothing."""
        if op["op"] not in OPERATIONS:
            return f"the operation {op['op']}"
        if self.script.get("stub"):
            return ""
        gating = {state.get("gatingPlugin") for state in expected["changedPods"].values()}
        rejecting = {*op.get("unschedulablePlugins", ()), *op.get("pendingPlugins", ())}
        for plugin in sorted(MISSING & (gating | rejecting)):
            return f"the plugin {plugin}"
        if op["op"] == "event" and self.queue.in_flight.timeline():
            return self._heard_by_missing(event_of(op["event"]))
        return ""

    def _heard_by_missing(self, event: events.ClusterEvent) -> str:
        """The plugin for which an event is kept for the pods in flight, if it is one that ksched lacks."""
        if self._registrations.told(event):
            return ""
        for plugin, entry in self._unheard:
            if event.is_matched_by(entry.resource, entry.actions):
                return f"the plugin {plugin}"
        return ""

    def _differing(
        self, expected: dict[str, Any], result: dict[str, Any] | None, seen: dict[str, Any]
    ) -> Iterator[dict[str, Any]]:
        found = self._state()
        for name in found:
            if found[name] != expected[name]:
                yield {"what": name, "expected": expected[name], "got": found[name]}
        for pod, state in self._pods().items():
            if _trimmed(seen.get(pod)) != state:
                yield {"what": pod, "expected": seen.get(pod), "got": state}
        if result is not None and result != expected.get("result"):
            yield {"what": "result", "expected": expected.get("result"), "got": result}

    # -- operations

    def _add(self, op: dict[str, Any]) -> None:
        pod = self._pod(op["object"])
        self.latest[pod.key] = pod.pod
        self.queue.add(pod)

    def _update(self, op: dict[str, Any]) -> None:
        pod = self._pod(op["object"])
        old = self.latest[pod.key]
        self.latest[pod.key] = pod.pod
        self.queue.update(old, pod)

    def _delete(self, op: dict[str, Any]) -> None:
        pod = self.latest.pop(op["pod"], None)
        if pod is not None:
            self.queue.delete(pod.key, pod.uid)

    def _pop(self, op: dict[str, Any]) -> dict[str, Any]:
        queued = self.queue.pop()
        if queued is None:
            return {"popped": None}
        self.popped[queued.key] = queued
        return {"popped": queued.key}

    def _fail(self, op: dict[str, Any]) -> None:
        queued = self.popped.pop(op["pod"])
        queued.unschedulable_plugins = frozenset(op.get("unschedulablePlugins") or ())
        queued.pending_plugins = frozenset(op.get("pendingPlugins") or ())
        queued.gating_plugin = ""
        newest = self.latest.get(op["pod"])
        if newest is None:
            self.queue.done(queued.uid)
        else:
            queued.pod = self.cluster.shapes.info(newest)
            if error := self._measured_error(op):
                with pytest.raises(QueueError, match=f"^{error}$"):
                    self.queue.requeue(queued)
            else:
                self.queue.requeue(queued)
        self.queue.nominator.add(queued.pod, op.get("nominate"))

    def _done(self, op: dict[str, Any]) -> None:
        queued = self.popped.pop(op["pod"])
        self.queue.done(queued.uid)

    def _event(self, op: dict[str, Any]) -> None:
        allow = None
        if (most := op.get("maxPriority")) is not None:
            allow = lambda pod: pod.priority <= most  # noqa: E731
        self.queue.move(event_of(op["event"]), _object(op.get("oldObj")), _object(op.get("newObj")), allow)

    def _activate(self, op: dict[str, Any]) -> None:
        self.queue.activate([self._pod_of(key) for key in op["pods"]])

    def _flush_backoff(self, op: dict[str, Any]) -> None:
        self.queue.flush_backoff()

    def _flush_unschedulable(self, op: dict[str, Any]) -> None:
        self.queue.flush_unschedulable()

    def _nominate(self, op: dict[str, Any]) -> None:
        self.queue.nominator.add(self._pod_of(op["pod"]), op["nominate"])

    def _clear_nomination(self, op: dict[str, Any]) -> None:
        self.queue.nominator.remove(self._pod_of(op["pod"]).uid)

    def _advance(self, op: dict[str, Any]) -> None:
        pass

    # -- the state

    def _state(self) -> dict[str, Any]:
        dump = self.queue.dump()
        return {
            "now": self.now,
            "active": [queued.key for queued in dump["active"]],
            "backoff": [self._expiry(queued) for queued in dump["backoff"]],
            "errorBackoff": sorted(
                (self._expiry(queued) for queued in dump["errorBackoff"]),
                key=lambda each: (each["expires"], each["pod"]),
            ),
            "unschedulable": sorted(queued.key for queued in dump["unschedulable"]),
            "gated": sorted(queued.key for queued in dump["gated"]),
            "inFlight": [
                f"pod {what.key}" if isinstance(what, QueuedPod) else f"event {what.event.label}"
                for what in self.queue.in_flight.timeline()
            ],
            "schedulingCycle": self.queue.cycle,
            "nominated": {
                node: [nominee.key for nominee in nominees] for node, nominees in self.queue.nominator.by_node().items()
            },
        }

    def _pods(self) -> dict[str, Any]:
        in_flight = [what for what in self.queue.in_flight.timeline() if isinstance(what, QueuedPod)]
        queued = [queued for pool in self.queue.dump().values() for queued in pool]
        return {each.key: self._told(each) for each in [*in_flight, *queued]}

    def _told(self, queued: QueuedPod) -> dict[str, Any]:
        return {
            "attempts": queued.attempts,
            "unschedulableCount": queued.unschedulable_count,
            "consecutiveErrors": queued.consecutive_errors,
            "timestamp": self._millis(queued.timestamp),
            "initialAttempt": self._millis(queued.initial_attempt),
            "unschedulablePlugins": sorted(queued.unschedulable_plugins),
            "pendingPlugins": sorted(queued.pending_plugins),
            "gatingPlugin": queued.gating_plugin,
            "flushed": queued.was_flushed,
        }

    def _expiry(self, queued: QueuedPod) -> dict[str, Any]:
        return {"pod": queued.key, "expires": self._millis(queued.backoff_expires)}

    def _millis(self, time: float | None) -> int | None:
        return None if time is None else round((time - self.start) * 1000)

    def _measured_error(self, op: dict[str, Any]) -> str | None:
        number = self.script["ops"].index(op)
        error: str | None = (self.script["expected"][number].get("result") or {}).get("error")
        return error

    # -- objects

    def _pod(self, written: dict[str, Any]) -> PodInfo:
        pod = _object(written)
        assert isinstance(pod, Pod)
        return self.cluster.shapes.info(pod)

    def _pod_of(self, key: str) -> PodInfo:
        namespace, name = key.split("/")
        pod = self.latest.get(key) or _object({"kind": "Pod", "metadata": {"namespace": namespace, "name": name}})
        return self.cluster.shapes.info(pod)


def _trimmed(state: dict[str, Any] | None) -> dict[str, Any]:
    return {"initialAttempt": None, "gatingPlugin": "", "flushed": False, **(state or {})}


def _object(written: dict[str, Any] | None) -> Any:
    if written is None or written["kind"] not in ("Pod", "Node"):
        return None
    metadata = written["metadata"]
    metadata.setdefault("uid", f"uid-{metadata.get('namespace', '')}-{metadata['name']}")
    return msgspec.convert(written, Pod if written["kind"] == "Pod" else Node)


OPERATIONS: Mapping[str, Callable[[Replay, dict[str, Any]], dict[str, Any] | None]] = {
    "add": Replay._add,
    "update": Replay._update,
    "delete": Replay._delete,
    "pop": Replay._pop,
    "fail": Replay._fail,
    "done": Replay._done,
    "event": Replay._event,
    "activate": Replay._activate,
    "flushBackoff": Replay._flush_backoff,
    "flushUnschedulable": Replay._flush_unschedulable,
    "nominate": Replay._nominate,
    "clearNomination": Replay._clear_nomination,
    "advance": Replay._advance,
}
"""What ksched can do of what a script may ask for."""
