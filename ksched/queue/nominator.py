"""Pods that wait for a node which has been promised to them, usually by preemption.

Other pods of no higher priority must fit beside them. The promise is remembered by node; what the cycle gets to see
(`promised`) are the pods as the queue holds them now, since a promise to a pod that is in no queue takes no room.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ksched.cache.shapes import PodInfo


class Nominee(NamedTuple):
    """A pod to which a node has been promised."""

    key: str
    uid: str


class Nominator:
    """Which node is promised to which pods, in the order of the promises."""

    def __init__(self, waits: Callable[[str], bool], queued: Callable[[str], PodInfo | None]) -> None:
        """`waits` says of a key whether the pod exists without a node; `queued` gives the pod if it is in the queue."""
        self._waits = waits
        self._queued = queued
        self._by_node: dict[str, dict[str, Nominee]] = {}
        self._node_of: dict[str, str] = {}
        self._view: dict[str, list[PodInfo]] = {}
        self._stale: set[str] = set()
        """Nodes of which the view has to be looked up anew."""

    def __contains__(self, uid: str) -> bool:
        return uid in self._node_of

    def add(self, pod: PodInfo, node: str | None = None) -> None:
        """Promise `node`, or where that is None what the pod's status names; an empty status promises nothing.

        An empty `node` is remembered as a promise of no node, as upstream does. A pod that is gone or placed gets none.
        """
        self.remove(pod.uid)
        promised = pod.pod.status.nominated_node_name if node is None else node
        if (node is None and not promised) or not self._waits(pod.key):
            return
        self._node_of[pod.uid] = promised
        self._by_node.setdefault(promised, {})[pod.uid] = Nominee(pod.key, pod.uid)
        self._changed(promised)

    def update(self, old_node: str, pod: PodInfo) -> None:
        """A pod's newest version has come. A promise that neither version mentions was made here and is kept."""
        kept = self._node_of.get(pod.uid)
        silent = not old_node and not pod.pod.status.nominated_node_name
        self.add(pod, kept if silent and kept is not None else None)

    def remove(self, uid: str) -> None:
        """Take a promise back; a pod without one is no error."""
        node = self._node_of.pop(uid, None)
        if node is None:
            return
        nominees = self._by_node[node]
        del nominees[uid]
        if not nominees:
            del self._by_node[node]
        self._changed(node)

    def moved(self, uid: str) -> None:
        """A pod entered or left the queue, or was replaced there."""
        if self._node_of:
            self._changed(self._node_of.get(uid, ""))

    def promised(self) -> Mapping[str, Sequence[PodInfo]]:
        """Per node the pods that it is promised to, as they are in the queue now. Do not keep it."""
        if self._stale:
            self._look()
        return self._view

    def by_node(self) -> dict[str, list[Nominee]]:
        """Every promise, for dumps and tests."""
        return {node: list(nominees.values()) for node, nominees in self._by_node.items()}

    def _changed(self, node: str) -> None:
        """What is promised of a node has to be looked up anew. Nobody asks about the node without a name."""
        if node:
            self._stale.add(node)

    def _look(self) -> None:
        for node in self._stale:
            nominees = self._by_node.get(node, {}).values()
            pods = [pod for nominee in nominees if (pod := self._queued(nominee.key)) is not None]
            if pods:
                self._view[node] = pods
            else:
                self._view.pop(node, None)
        self._stale.clear()
