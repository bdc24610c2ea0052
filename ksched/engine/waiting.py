"""Pods that have a node and are held back by Permit plugins.

The first verdict counts: every plugin has allowed the pod, one has rejected it, or the time of one is over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from ksched.cache.shapes import PodInfo
from ksched.framework.status import Status

MAX_WAIT_SECONDS = 15 * 60.0
"""No plugin may hold a pod back for longer."""


class WaitingPod:
    """A pod that waits, and the plugins that have not allowed it yet. Belongs to `binding`, which awaits `verdict`."""

    def __init__(self, pod: PodInfo, waits: tuple[tuple[str, float], ...], loop: asyncio.AbstractEventLoop) -> None:
        self.pod = pod
        self.verdict: asyncio.Future[Status | None] = loop.create_future()
        """None: allowed."""
        self._timers = {
            plugin: loop.call_later(min(seconds, MAX_WAIT_SECONDS), self._time_is_over, plugin, seconds)
            for plugin, seconds in waits
        }

    @property
    def plugins(self) -> tuple[str, ...]:
        """The plugins that the pod waits for."""
        return tuple(self._timers)

    def allow(self, plugin: str) -> None:
        """`plugin` holds the pod back no longer."""
        timer = self._timers.pop(plugin, None)
        if timer is not None:
            timer.cancel()
            if not self._timers:
                self._decide(None)

    def reject(self, plugin: str, message: str) -> bool:
        """Turn the pod down; False where it was decided already."""
        return self._decide(Status.unschedulable(message).by(plugin))

    def abandon(self) -> None:
        """Nobody will decide any more: whoever awaits the verdict is cancelled."""
        self._cancel_timers()
        self.verdict.cancel()

    def _time_is_over(self, plugin: str, seconds: float) -> None:
        waited = go_duration(min(seconds, MAX_WAIT_SECONDS))
        self.reject(plugin, f"rejected due to timeout after waiting {waited} at plugin {plugin}")

    def _decide(self, status: Status | None) -> bool:
        self._cancel_timers()
        if self.verdict.done():
            return False
        self.verdict.set_result(status)
        return True

    def _cancel_timers(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()


class WaitingPods:
    """All pods that wait, by uid."""

    def __init__(self) -> None:
        self._pods: dict[str, WaitingPod] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def __iter__(self) -> Iterator[WaitingPod]:
        return iter(list(self._pods.values()))

    def get(self, uid: str) -> WaitingPod | None:
        """The pod if it waits."""
        return self._pods.get(uid)

    def add(self, waiting: WaitingPod) -> None:
        """From now on the pod can be found."""
        self._pods[waiting.pod.uid] = waiting

    def remove(self, uid: str) -> None:
        """The pod waits no longer."""
        self._pods.pop(uid, None)


def go_duration(seconds: float) -> str:
    """A duration as Go writes it: 1.5s, 250ms, 2m0s, 1h0m5s."""
    nanos = round(seconds * 1e9)
    if nanos == 0:
        return "0s"
    if nanos < 1_000_000_000:
        for unit, size in (("ms", 1_000_000), ("µs", 1_000), ("ns", 1)):
            if nanos >= size:
                return f"{_decimal(nanos, size)}{unit}"
    minutes, rest = divmod(nanos, 60_000_000_000)
    hours, minutes = divmod(minutes, 60)
    text = f"{_decimal(rest, 1_000_000_000)}s"
    if hours or minutes:
        text = f"{minutes}m{text}"
    return f"{hours}h{text}" if hours else text


def _decimal(nanos: int, size: int) -> str:
    whole, rest = divmod(nanos, size)
    digits = str(rest).rjust(len(str(size)) - 1, "0").rstrip("0") if rest else ""
    return f"{whole}.{digits}" if digits else str(whole)
