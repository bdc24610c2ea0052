"""PrioritySort: higher priority first, then the pod that has waited longer."""

from __future__ import annotations

from ksched.framework import PodInfo, QueueSortPlugin


class PrioritySort(QueueSortPlugin):
    """The order of the active queue."""

    name = "PrioritySort"

    def sort_key(self, pod: PodInfo, timestamp: float) -> tuple[int, float]:
        """Smaller goes first."""
        return -pod.priority, timestamp
