"""The places that a waiting pod can be in: two kinds of heap, and the pool of those that wait for an event.

A `QueuedPod` knows its place, and each pool checks it on the way in and out, so that a pod is never in two of them.
`InFlight` remembers what happened while pods were being scheduled.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple

from ksched.cache.shapes import PodInfo
from ksched.queue.events import ClusterEvent

_NONE: Final[frozenset[str]] = frozenset()


class Place(Enum):
    """Where a queued pod is."""

    NOWHERE = "nowhere"
    ACTIVE = "active"
    BACKOFF = "backoff"
    ERROR_BACKOFF = "error backoff"
    UNSCHEDULABLE = "unschedulable"


class QueuedPod:
    """A pod that waits, and how it has fared so far. Times are in seconds since the epoch."""

    __slots__ = (
        "attempts",
        "backoff_expires",
        "consecutive_errors",
        "entry",
        "gating_plugin",
        "group",
        "initial_attempt",
        "pending_plugins",
        "place",
        "pod",
        "timestamp",
        "unschedulable_count",
        "unschedulable_plugins",
        "was_flushed",
    )

    def __init__(self, pod: PodInfo, timestamp: float) -> None:
        self.pod = pod
        self.timestamp = timestamp
        """When the pod last entered the queue."""
        self.attempts = 0
        self.unschedulable_count = 0
        self.consecutive_errors = 0
        self.backoff_expires: float | None = None
        """When the pod may be tried again; None where it has not been worked out since the last attempt."""
        self.initial_attempt: float | None = None
        """When the pod first entered the active queue."""
        self.unschedulable_plugins = _NONE
        self.pending_plugins = _NONE
        self.gating_plugin = ""
        self.was_flushed = False
        self.place = Place.NOWHERE
        self.entry: list[Any] | None = None
        """The heap's own."""
        self.group: Group | None = None
        """The unschedulable pool's own."""

    @property
    def key(self) -> str:
        """`namespace/name`, by which the queue knows its pods."""
        return self.pod.pod.key

    @property
    def uid(self) -> str:
        """The pod's uid."""
        return self.pod.pod.metadata.uid

    @property
    def is_gated(self) -> bool:
        """Whether a PreEnqueue plugin keeps the pod out of the active queue."""
        return bool(self.gating_plugin)

    @property
    def rejecting_plugins(self) -> frozenset[str]:
        """Every plugin that turned the pod down or gates it."""
        if not self.pending_plugins:
            return self.unschedulable_plugins
        return self.unschedulable_plugins | self.pending_plugins

    def __repr__(self) -> str:
        return f"<QueuedPod {self.key} {self.place.value}>"


class Heap:
    """Pods by some order, smallest first; equal ones in the order in which they came.

    Taking a pod out of the middle only marks its entry; entries that are marked are dropped when they come to the top,
    or all at once when they are the greater part.
    """

    def __init__(self, place: Place, order: Callable[[QueuedPod], Any]) -> None:
        self._place = place
        self._order = order
        self._entries: list[list[Any]] = []
        self._number = 0
        self._live = 0

    def __len__(self) -> int:
        return self._live

    def __iter__(self) -> Iterator[QueuedPod]:
        """Every pod, in order."""
        return (entry[2] for entry in sorted(entry for entry in self._entries if entry[2] is not None))

    def push(self, queued: QueuedPod) -> None:
        """Put a pod in."""
        assert queued.place is Place.NOWHERE, queued
        queued.place = self._place
        self._number += 1
        queued.entry = [self._order(queued), self._number, queued]
        heapq.heappush(self._entries, queued.entry)
        self._live += 1

    def peek(self) -> QueuedPod | None:
        """The first pod, or None."""
        entries = self._entries
        while entries:
            first: QueuedPod | None = entries[0][2]
            if first is not None:
                return first
            heapq.heappop(entries)
        return None

    def pop(self) -> QueuedPod | None:
        """Take the first pod out; None if there is none."""
        first = self.peek()
        if first is not None:
            heapq.heappop(self._entries)
            self._left(first)
        return first

    def remove(self, queued: QueuedPod) -> None:
        """Take a pod out, wherever it stands."""
        assert queued.place is self._place, queued
        assert queued.entry is not None, queued
        queued.entry[2] = None
        self._left(queued)
        if len(self._entries) > 2 * self._live + 16:
            self._entries = [entry for entry in self._entries if entry[2] is not None]
            heapq.heapify(self._entries)

    def replace(self, queued: QueuedPod, pod: PodInfo) -> None:
        """Give a pod its newest version, and the place that this one has."""
        self.remove(queued)
        queued.pod = pod
        self.push(queued)

    def _left(self, queued: QueuedPod) -> None:
        queued.place = Place.NOWHERE
        queued.entry = None
        self._live -= 1


class Group(NamedTuple):
    """What decides, but for hints, which events concern an unschedulable pod."""

    scheduler_name: str
    gating_plugin: str
    rejecting_plugins: frozenset[str]


class UnschedulablePods:
    """Pods that wait for an event, gated ones included, grouped by what could concern them.

    With the groups, an event costs nothing for the thousands of pods whose plugins do not listen to it.
    """

    def __init__(self) -> None:
        self._groups: dict[Group, dict[str, QueuedPod]] = {}
        self._count = 0
        self.gated = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[QueuedPod]:
        return (queued for members in self._groups.values() for queued in members.values())

    def add(self, queued: QueuedPod) -> None:
        """Put a pod in."""
        assert queued.place is Place.NOWHERE, queued
        queued.place = Place.UNSCHEDULABLE
        group = Group(queued.pod.pod.scheduler_name, queued.gating_plugin, queued.rejecting_plugins)
        queued.group = group
        self._groups.setdefault(group, {})[queued.key] = queued
        self._count += 1
        self.gated += bool(group.gating_plugin)

    def remove(self, queued: QueuedPod) -> None:
        """Take a pod out."""
        group = queued.group
        assert queued.place is Place.UNSCHEDULABLE, queued
        assert group is not None, queued
        members = self._groups[group]
        del members[queued.key]
        if not members:
            del self._groups[group]
        queued.place = Place.NOWHERE
        queued.group = None
        self._count -= 1
        self.gated -= bool(group.gating_plugin)

    def concerned(self, concerns: Callable[[Group], bool]) -> list[QueuedPod]:
        """The pods of the groups that `concerns` says yes to, in the order in which they last entered the queue."""
        found = [queued for group, members in self._groups.items() if concerns(group) for queued in members.values()]
        found.sort(key=lambda queued: queued.timestamp)
        return found


class Happening(NamedTuple):
    """An event and the object it is about, before and after."""

    event: ClusterEvent
    old: Any
    new: Any


class InFlight:
    """Pods that have been popped and not yet settled, and what happened since.

    A pod that fails is judged by everything that happened after it was popped: what would have woken it in the pool
    must not be missed because it was being looked at. Happenings older than every pod in flight are dropped.
    """

    def __init__(self) -> None:
        self._since: OrderedDict[str, tuple[int, QueuedPod]] = OrderedDict()
        self._happenings: deque[tuple[int, Happening]] = deque()
        self._number = 0

    def __len__(self) -> int:
        return len(self._since)

    def __contains__(self, uid: str) -> bool:
        return uid in self._since

    def start(self, queued: QueuedPod) -> None:
        """From now on remember what happens, for this pod."""
        self._number += 1
        self._since[queued.uid] = (self._number, queued)

    def record(self, happening: Happening) -> None:
        """Something happened. Forgotten at once where no pod is in flight."""
        if self._since:
            self._number += 1
            self._happenings.append((self._number, happening))

    def since(self, uid: str) -> list[Happening]:
        """What happened since the pod was popped."""
        start, _ = self._since[uid]
        return [happening for number, happening in self._happenings if number > start]

    def done(self, uid: str) -> None:
        """The pod is settled; one that is not in flight is none of our business."""
        if self._since.pop(uid, None) is None or not self._happenings:
            return
        if not self._since:
            self._happenings.clear()
            return
        oldest, _ = next(iter(self._since.values()))
        while self._happenings and self._happenings[0][0] < oldest:
            self._happenings.popleft()

    def timeline(self) -> Sequence[QueuedPod | Happening]:
        """Pods and happenings in the order in which they came, for dumps and tests."""
        merged: list[tuple[int, QueuedPod | Happening]] = [*self._since.values(), *self._happenings]
        return [what for _, what in sorted(merged, key=lambda pair: pair[0])]
