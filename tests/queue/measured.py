"""Replays queue scripts measured on kube-scheduler: what each operation leaves where.

A script's clock is in milliseconds from its start, ours in seconds since the epoch.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
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
from ksched.queue.registrations import Registration, Registrations
from ksched.queue.scheduling_queue import SchedulingQueue
from ksched.testing import handle

ACTIONS = {name: bits for bits, name in events.ACTION_NAMES.items()}
SCHEDULER = "default-scheduler"


def scripts(path: Path) -> Iterator[dict[str, Any]]:
    """The scripts of a file, one a line."""
    with gzip.open(path) as lines:
        yield from map(json.loads, lines)


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
    """One script on a queue of its own."""

    def __init__(self, script: dict[str, Any]) -> None:
        self.script = script
        self.start = datetime.fromisoformat(script["start"]).timestamp()
        self.now = 0
        self.cluster = Cluster(max_nodes=64)
        self.latest: dict[str, Pod] = {}
        self.popped: dict[str, QueuedPod] = {}
        gates = FeatureGates(script.get("featureGates") or {})
        profile, registrations = self._stubbed(script["stub"]) if script.get("stub") else self._real(gates)
        self.queue = SchedulingQueue(
            {SCHEDULER: profile},
            {SCHEDULER: registrations},
            clock=lambda: self.start + self.now / 1000,
            waits=lambda key: key in self.latest and not self.latest[key].node_name,
            initial_backoff_seconds=script["initialBackoffSeconds"],
            max_backoff_seconds=script["maxBackoffSeconds"],
            max_in_unschedulable_seconds=script["maxInUnschedulableSeconds"],
            pop_from_backoff=gates.enabled("SchedulerPopFromBackoffQ"),
        )

    def _stubbed(self, stub: dict[str, Any]) -> tuple[Any, Registrations]:
        registered = {
            plugin: [
                Registration(entry["event"]["resource"], _bits(entry["event"]), _answer(entry["answer"]))
                for entry in said["events"]
            ]
            for plugin, said in stub.items()
        }
        gates = {plugin: said["preEnqueue"] for plugin, said in stub.items() if said.get("preEnqueue")}
        return StubProfile(gates), Registrations(registered)

    def _real(self, gates: FeatureGates) -> tuple[Any, Registrations]:
        profiles = build_profiles(Configuration.default(gates), gates, handle(self.cluster, gates), IN_TREE)
        return profiles[SCHEDULER], Registrations.of(IN_TREE, without_events=[plugin.name for plugin in ABSENT])

    def differences(self) -> list[str]:
        """Where the queue is not as it was measured; stops at the first operation that differs."""
        seen: dict[str, Any] = {}
        for number, (op, expected) in enumerate(zip(self.script["ops"], self.script["expected"], strict=True)):
            if op["op"] == "popSpecific":
                break  # belongs to pod groups, which the queue does not know yet
            self.now += op.get("dt", 0)
            result = getattr(self, "_" + op["op"])(op)
            found = self._state()
            for pod, state in expected["changedPods"].items():
                seen[pod] = state
            wrong = [
                f"op {number} {op['op']}: {name}: expected {expected[name]}, got {found[name]}"
                for name in found
                if found[name] != expected[name]
            ]
            wrong += [
                f"op {number} {op['op']}: {pod}: expected {seen.get(pod)}, got {state}"
                for pod, state in self._pods().items()
                if _trimmed(seen.get(pod)) != state
            ]
            if "result" in expected and result is not None and result != expected["result"]:
                wrong.append(f"op {number} {op['op']}: result: expected {expected['result']}, got {result}")
            if wrong:
                return wrong
        return []

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

    def _flushBackoff(self, op: dict[str, Any]) -> None:
        self.queue.flush_backoff()

    def _flushUnschedulable(self, op: dict[str, Any]) -> None:
        self.queue.flush_unschedulable()

    def _nominate(self, op: dict[str, Any]) -> None:
        self.queue.nominator.add(self._pod_of(op["pod"]), op["nominate"])

    def _clearNomination(self, op: dict[str, Any]) -> None:
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


def _bits(event: dict[str, Any]) -> int:
    bits = 0
    for action in event["actions"]:
        bits |= ACTIONS[action]
    return bits


def event_of(written: dict[str, Any]) -> events.ClusterEvent:
    """The event that a script names."""
    return events.event(written["resource"], _bits(written), written.get("label", ""))


def _object(written: dict[str, Any] | None) -> Any:
    if written is None or written["kind"] not in ("Pod", "Node"):
        return None
    metadata = written["metadata"]
    metadata.setdefault("uid", f"uid-{metadata.get('namespace', '')}-{metadata['name']}")
    return msgspec.convert(written, Pod if written["kind"] == "Pod" else Node)
