"""The queue against a naive model: whatever is done, every pod is where the rules say, and in one place."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ksched.cache.cluster import Cluster
from ksched.cache.shapes import PodInfo
from ksched.framework.status import Status
from ksched.queue import events
from ksched.queue.pools import Place, QueuedPod
from ksched.queue.registrations import Registration, Registrations
from ksched.queue.scheduling_queue import SchedulingQueue
from ksched.testing import pod

NAMES = ("a", "b", "c", "d")
INITIAL, LONGEST, STALE = 1, 4, 20
WAKES = {"OnNode": events.NODE_ADD, "OnDelete": events.ASSIGNED_POD_DELETE}
"""Plugin: the event that it waits for."""


@dataclass
class Modelled:
    """What the model knows of a pod: everything in plain values."""

    uid: str
    priority: int
    gated: bool
    timestamp: float
    place: str = "active"
    count: int = 0
    errors: int = 0
    plugins: frozenset[str] = frozenset()
    attempts: int = 0
    seen: list[events.ClusterEvent] = field(default_factory=list)
    """What happened while the pod was in flight."""

    @property
    def expiry(self) -> int:
        times = self.errors or self.count
        return 0 if not times else math.floor(self.timestamp + min(LONGEST, INITIAL * 2 ** (times - 1)))


class Gates:
    """A profile that gates pods with a label, and sorts by priority and age."""

    def pre_enqueue(self, info: PodInfo) -> Status | None:
        return Status.unresolvable("gated").by("Gate") if "gated" in info.labels else None

    def sort_key(self, info: PodInfo, timestamp: float) -> tuple[int, float]:
        return -info.priority, timestamp


class QueueMachine(RuleBasedStateMachine):
    """Does the same to the queue and to the model."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.25
        self.made = 0
        self.shapes = Cluster(max_nodes=64).shapes
        self.model: dict[str, Modelled] = {}
        self.in_flight: dict[str, tuple[Modelled, QueuedPod]] = {}
        registered = {plugin: [Registration(event.resource, event.actions)] for plugin, event in WAKES.items()}
        registered["Gate"] = [Registration(events.POD, events.UPDATE_POD_LABEL)]
        self.queue = SchedulingQueue(
            {"default-scheduler": Gates()},
            {"default-scheduler": Registrations(registered)},
            clock=lambda: self.now,
            waits=lambda key: key in self.model,
            initial_backoff_seconds=INITIAL,
            max_backoff_seconds=LONGEST,
            max_in_unschedulable_seconds=STALE,
        )

    # -- operations

    @rule(name=st.sampled_from(NAMES), priority=st.integers(-1, 2), gated=st.booleans())
    def add(self, name: str, priority: int, gated: bool) -> None:
        if name in self.model or name in self.in_flight:
            return
        self._tick(0.001)
        self.made += 1
        one = Modelled(f"uid-{self.made}", priority, gated, self.now, "gated" if gated else "active")
        if gated:
            one.plugins = frozenset({"Gate"})
        self.model[name] = one
        self.queue.add(self._info(name, one))

    @rule(name=st.sampled_from(NAMES))
    def delete(self, name: str) -> None:
        one = self.model.pop(name, None)
        if one is not None:
            self.queue.delete(f"default/{name}", one.uid)

    @rule(name=st.sampled_from(NAMES), gated=st.booleans())
    def relabel(self, name: str, gated: bool) -> None:
        one = self.model.get(name)
        if one is None or name in self.in_flight or one.gated == gated or one.place != "gated":
            return
        old = self._info(name, one)
        one.gated = gated
        one.place = "active"
        self.queue.update(old.pod, self._info(name, one))

    @rule()
    def pop(self) -> None:
        self._tick(0.001)
        expected = self._first()
        queued = self.queue.pop()
        assert (queued and queued.pod.name) == expected
        if queued is None or expected is None:
            return
        one = self.model[expected]
        one.attempts += 1
        one.place, one.seen = "in flight", []
        self.in_flight[expected] = (one, queued)
        assert queued.attempts == one.attempts

    @precondition(lambda self: self.in_flight)
    @rule(data=st.data(), plugins=st.frozensets(st.sampled_from(sorted(WAKES)), max_size=2))
    def fail(self, data: st.DataObject, plugins: frozenset[str]) -> None:
        self._tick(0.001)
        name = data.draw(st.sampled_from(sorted(self.in_flight)))
        one, queued = self.in_flight.pop(name)
        queued.unschedulable_plugins = plugins
        if self.model.get(name) is not one:
            self.queue.done(queued.uid)
            return
        one.plugins, one.timestamp = plugins, self.now
        one.errors, one.count = (0, one.count + 1) if plugins else (one.errors + 1, one.count)
        wakes = {events.UNSCHEDULABLE_TIMEOUT, *(WAKES[plugin] for plugin in plugins)}
        woken = not plugins or not wakes.isdisjoint(one.seen)
        one.place = self._after(one) if woken else "unschedulable"
        self.queue.requeue(queued)

    @precondition(lambda self: self.in_flight)
    @rule(data=st.data())
    def settle(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.in_flight)))
        one, queued = self.in_flight.pop(name)
        self.queue.done(queued.uid)
        if self.model.get(name) is one:
            del self.model[name]

    @rule(plugin=st.sampled_from(sorted(WAKES)))
    def happen(self, plugin: str) -> None:
        event = WAKES[plugin]
        for one, _ in self.in_flight.values():
            one.seen.append(event)
        for one in self.model.values():
            if one.place == "unschedulable" and plugin in one.plugins:
                one.place = self._after(one)
        self.queue.move(event)

    @rule(name=st.sampled_from(NAMES))
    def activate(self, name: str) -> None:
        one = self.model.get(name)
        if one is None or one.place == "in flight":
            return
        if one.place in ("unschedulable", "backoff", "error backoff"):
            one.place = "active"
        self.queue.activate([self._info(name, one)])

    @rule(seconds=st.sampled_from([0.3, 1.0, 2.5, 30.0]))
    def wait(self, seconds: float) -> None:
        self._tick(seconds)

    @rule()
    def flush_backoff(self) -> None:
        for one in self.model.values():
            if one.place in ("backoff", "error backoff") and one.expiry < math.floor(self.now):
                one.place = "active"
        self.queue.flush_backoff()

    @rule()
    def flush_unschedulable(self) -> None:
        pool = [one for one in self.model.values() if one.place in ("unschedulable", "gated")]
        stale = [one for one in pool if self.now - one.timestamp > STALE]
        for one in stale:
            if one.place == "unschedulable":
                one.place = self._after(one)
        if stale:
            for one, _ in self.in_flight.values():
                one.seen.append(events.UNSCHEDULABLE_TIMEOUT)
        self.queue.flush_unschedulable()

    # -- what must hold

    @invariant()
    def every_pod_is_in_the_place_that_the_rules_say(self) -> None:
        found = {queued.pod.name: _word(queued) for pool in self.queue.dump().values() for queued in pool}
        expected = {name: one.place for name, one in self.model.items() if one.place != "in flight"}
        assert found == expected

    @invariant()
    def no_pod_is_in_two_places(self) -> None:
        pools = [queued.key for pool in self.queue.dump().values() for queued in pool]
        assert len(pools) == len(set(pools)) == len(self.queue) == sum(self.queue.counts().values())

    @invariant()
    def active_pods_are_in_order(self) -> None:
        expected = sorted(
            (one for one in self.model.values() if one.place == "active"),
            key=lambda one: (-one.priority, one.timestamp),
        )
        assert [queued.uid for queued in self.queue.dump()["active"]] == [one.uid for one in expected]

    @invariant()
    def nothing_is_remembered_when_no_pod_is_in_flight(self) -> None:
        timeline = self.queue.in_flight.timeline()
        assert sum(isinstance(what, QueuedPod) for what in timeline) == len(self.in_flight)
        assert self.in_flight or not timeline

    # -- the model's rules

    def _first(self) -> str | None:
        active = [(-one.priority, one.timestamp, name) for name, one in self.model.items() if one.place == "active"]
        if active:
            return min(active)[-1]
        early = [
            (one.expiry, -one.priority, one.timestamp, name)
            for name, one in self.model.items()
            if one.place == "backoff"
        ]
        return min(early)[-1] if early else None

    def _after(self, one: Modelled) -> str:
        if one.expiry and one.expiry >= math.floor(self.now):
            return "backoff" if one.plugins else "error backoff"
        return "active"

    def _tick(self, seconds: float) -> None:
        self.now += seconds

    def _info(self, name: str, one: Modelled) -> PodInfo:
        built = pod(name).priority(one.priority).label(**({"gated": "yes"} if one.gated else {})).build()
        metadata = msgspec.structs.replace(built.metadata, uid=one.uid)
        return self.shapes.info(msgspec.structs.replace(built, metadata=metadata))


def _word(queued: QueuedPod) -> str:
    return "gated" if queued.place is Place.UNSCHEDULABLE and queued.is_gated else queued.place.value


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = settings(max_examples=50, stateful_step_count=40, deadline=None)
