"""The sandbox's time: one source for object timestamps, the ledger and the audit, so that tests can turn it."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime


class Clock:
    """Wall and monotonic time from one reading: `ticks` counts nanoseconds, and `wall` turns them into Unix time.

    The two are tied once, when the clock is made, so that later corrections of the machine's time cannot make a pod
    bound before it was created.
    """

    def __init__(
        self,
        ticks: Callable[[], int] = time.monotonic_ns,
        wall: Callable[[], int] = time.time_ns,
    ) -> None:
        self.ticks = ticks
        self.offset = wall() - ticks()
        """What to add to `ticks` to get nanoseconds of Unix time."""
        self._second = -1
        self._stamp = ""

    def wall(self, ticks: int) -> float:
        """Unix time in seconds of a reading of `ticks`."""
        return (ticks + self.offset) / 1e9

    def now(self) -> datetime:
        """The present, in UTC."""
        return datetime.fromtimestamp(self.wall(self.ticks()), UTC)

    def stamp(self) -> str:
        """The present as Kubernetes writes times: RFC 3339, UTC, whole seconds."""
        second = (self.ticks() + self.offset) // 1_000_000_000
        if second != self._second:
            self._second = second
            self._stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(second))
        return self._stamp

    def stamp_after(self, seconds: float) -> str:
        """The time `seconds` from now, as Kubernetes writes times."""
        second = (self.ticks() + self.offset) / 1e9 + seconds
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(second))
