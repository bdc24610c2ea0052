"""What the API server tells: the only place that turns its changes into changes of the cluster and moves in the queue.

A pod is *pending* here while it exists, is ours and has no node: in the queue, being tried, or assumed on a node and
being bound. It leaves when the API server shows it on a node or it goes. What an object was before is taken
from what we know, not from the kind of event, so that events which come twice or after a gap do no harm.

An object that cannot be understood never stops the feed. It is named in the log and counted; a node or placed pod stays
as it was known before, and a pending pod is marked and waits, outside of the queue, for its next change.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from ksched.api.decode import (
    DEVICE_CLASS,
    NAMESPACE,
    NODE,
    POD,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    SERVICE,
    STATEFUL_SET,
)
from ksched.api.watch import DELETED, Event
from ksched.cache.cluster import Cluster
from ksched.cache.shapes import PodInfo
from ksched.engine.waiting import WaitingPods
from ksched.errors import ObjectError
from ksched.metrics import Metrics
from ksched.model.node import Node
from ksched.model.objects import DeviceClass, ReplicaSet, ReplicationController, Service, StatefulSet
from ksched.model.pod import Pod
from ksched.queue import events
from ksched.queue.changes import node_changes, pod_changes
from ksched.queue.scheduling_queue import SchedulingQueue

log = logging.getLogger("ksched.feed")


class Pending:
    """Pods of ours that exist and have no node, as the API server last showed them."""

    def __init__(self) -> None:
        self.readable: dict[str, PodInfo] = {}
        self.unreadable: dict[str, Pod] = {}

    def get(self, key: str) -> PodInfo | None:
        """The pod of that name, if it can be read."""
        return self.readable.get(key)

    def has(self, key: str) -> bool:
        """Whether there is a pod of that name."""
        return key in self.readable or key in self.unreadable

    def take(self, key: str) -> Pod | None:
        """Remove the pod of that name and return it."""
        unreadable = self.unreadable.pop(key, None)
        readable = self.readable.pop(key, None)
        return readable.pod if readable is not None else unreadable


class Feed:
    """Applies what the API server tells, in batches, without waiting."""

    def __init__(
        self,
        cluster: Cluster,
        queue: SchedulingQueue,
        pending: Pending,
        waiting: WaitingPods,
        metrics: Metrics,
        *,
        scheduler_names: Collection[str],
        declared_features: bool,
        mark_unreadable: Callable[[Pod, ObjectError], None],
        on_synced: Callable[[str], None],
    ) -> None:
        """`mark_unreadable` tells the owner of a pending pod that it cannot be understood, and why.

        `on_synced` is told when every object of a kind has been shown once.
        """
        self._cluster = cluster
        self._queue = queue
        self._pending = pending
        self._waiting = waiting
        self._metrics = metrics
        self._names = frozenset(scheduler_names)
        self._declared_features = declared_features
        self._mark_unreadable = mark_unreadable
        self._on_synced = on_synced
        put, drop = cluster.put_selector_source, cluster.remove_selector_source
        self._of_kind: Mapping[str, tuple[Callable[[Any], None], Callable[[str, str], None]]] = {
            POD.kind: (self.put_pod, self.remove_pod),
            NODE.kind: (self.put_node, self.remove_node),
            NAMESPACE.kind: (cluster.put_namespace, lambda name, _uid: cluster.remove_namespace(name)),
            SERVICE.kind: (put, lambda key, _uid: drop(Service, key)),
            REPLICATION_CONTROLLER.kind: (put, lambda key, _uid: drop(ReplicationController, key)),
            REPLICA_SET.kind: (put, lambda key, _uid: drop(ReplicaSet, key)),
            STATEFUL_SET.kind: (put, lambda key, _uid: drop(StatefulSet, key)),
            DEVICE_CLASS.kind: (self.put_device_class, self.remove_device_class),
        }

    # -- what reflectors call

    def apply(self, changes: Sequence[Event[Any]]) -> None:
        """Take changes, in order."""
        for change in changes:
            put, remove = self._of_kind[change.kind]
            try:
                if change.type == DELETED:
                    remove(change.key, change.uid)
                else:
                    put(change.object)
            except Exception as fault:  # one object that nobody foresaw must not end the feed for all others
                self._metrics.malformed_objects[change.kind] += 1
                log.exception('change not applied kind="%s" object="%s" error="%s"', change.kind, change.key, fault)

    def synced(self, kind: str) -> None:
        """Every object of a kind has been shown once."""
        self._on_synced(kind)

    # -- pods

    def put_pod(self, pod: Pod) -> None:
        """A pod is new, or has changed. One that takes another's name comes after that one's removal."""
        if pod.is_finished:
            self.remove_pod(pod.key, pod.uid)
        elif pod.spec.node_name:
            self._put_placed(pod)
        elif pod.scheduler_name in self._names:
            self._put_pending(pod)

    def remove_pod(self, key: str, uid: str) -> None:
        """A pod is gone, or has ended."""
        before = self._pending.take(key)
        if before is not None:
            self._queue.delete(key, uid)
        placed = self._cluster.pod(uid)
        if placed is not None and self._cluster.is_assumed(uid):
            self._give_up(placed.pod)
        elif placed is not None:
            self._cluster.remove_pod(uid)
            self._queue.move(events.ASSIGNED_POD_DELETE, placed.pod, None)
        elif before is not None:
            self._nomination_lapsed(before)

    def _put_placed(self, pod: Pod) -> None:
        """A pod is on a node: one that we have bound, one that somebody else has, or one that we have known there."""
        key, uid = pod.key, pod.metadata.uid
        if self._pending.take(key) is not None:
            self._queue.delete(key, uid)
        assumed = self._cluster.is_assumed(uid)
        try:
            old = self._cluster.put_pod(pod)
        except ObjectError as error:
            self.malformed(POD.kind, key, error)
            return
        if old is None or assumed:
            self._queue.move(events.ASSIGNED_POD_ADD, None, pod)
            return
        for change in pod_changes(old, pod, self._cluster.shapes.rules):
            self._queue.move(change, old, pod)

    def _put_pending(self, pod: Pod) -> None:
        """A pod of ours without a node. While it is assumed on one, only its end matters."""
        key = pod.key
        before = self._pending.readable.get(key)
        try:
            info = self._cluster.shapes.info(pod)
        except ObjectError as error:
            self._put_unreadable(pod, error)
            return
        self._pending.unreadable.pop(key, None)
        self._pending.readable[key] = info
        if self._cluster.is_assumed(info.uid):
            if pod.is_terminating and not (before is not None and before.pod.is_terminating):
                self._give_up(pod)
        elif (placed := self._cluster.remove_pod(info.uid)) is not None:
            # No pod leaves its node; the server's past was changed, by a restored backup for example.
            self._queue.move(events.ASSIGNED_POD_DELETE, placed, None)
            self._queue.add(info)
        elif before is None:
            self._queue.add(info)
        elif before.pod.metadata.resource_version != pod.metadata.resource_version:
            self._queue.update(before.pod, info)
            promised = before.pod.status.nominated_node_name
            if promised and promised != pod.status.nominated_node_name:
                self._nomination_lapsed(before.pod)

    def _put_unreadable(self, pod: Pod, error: ObjectError) -> None:
        """Not tried, not lost: marked, and looked at again when it changes."""
        self.malformed(POD.kind, pod.key, error)
        if self._cluster.pod(pod.uid) is not None:
            return  # being bound as it was when it could be read
        if self._pending.take(pod.key) is not None:
            self._queue.delete(pod.key, pod.uid)
        self._pending.unreadable[pod.key] = pod
        self._mark_unreadable(pod, error)

    def _give_up(self, pod: Pod) -> None:
        """An assumed pod is going: its room is free, or will be when what holds the pod back has let go."""
        waiting = self._waiting.get(pod.uid)
        if waiting is not None:
            waiting.reject("", "removed")
            return
        self._cluster.forget(pod.uid)
        self._queue.move(events.ASSIGNED_POD_DELETE, pod, None)

    def _nomination_lapsed(self, pod: Pod) -> None:
        """A node is promised to this pod no longer: pods that had to yield to it may fit now."""
        if pod.status.nominated_node_name:
            priority = pod.priority
            self._queue.move(events.ASSIGNED_POD_DELETE, pod, None, lambda other: other.priority <= priority)

    # -- nodes

    def put_node(self, node: Node) -> None:
        """A node is new, or has changed."""
        try:
            old = self._cluster.put_node(node)
        except ObjectError as error:
            self.malformed(NODE.kind, node.name, error)
            return
        if old is None:
            self._queue.move(events.NODE_ADD, None, node)
            return
        for change in node_changes(old, node, declared_features=self._declared_features):
            self._queue.move(change, old, node)

    def remove_node(self, name: str, _uid: str) -> None:
        """A node is gone."""
        info = self._cluster.node(name)
        if info is not None:
            self._queue.move(events.NODE_DELETE, info.node, None)
            self._cluster.remove_node(name)

    # -- device classes

    def put_device_class(self, device_class: DeviceClass) -> None:
        """A device class is new, or has changed."""
        old = self._cluster.device_classes.get(device_class.metadata.name)
        self._cluster.put_device_class(device_class)
        event = events.DEVICE_CLASS_ADD if old is None else events.DEVICE_CLASS_UPDATE
        self._queue.move(event, old, device_class)

    def remove_device_class(self, name: str, _uid: str) -> None:
        """A device class is gone."""
        old = self._cluster.device_classes.get(name)
        self._cluster.remove_device_class(name)
        self._queue.move(events.DEVICE_CLASS_DELETE, old, None)

    # -- what cannot be understood

    def malformed(self, kind: str, key: str, error: ObjectError) -> None:
        """Name an object that cannot be understood, and count it."""
        self._metrics.malformed_objects[kind] += 1
        log.warning('malformed object kind="%s" object="%s" error="%s"', kind, key, error)
