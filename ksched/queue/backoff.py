"""How long a pod waits after an attempt that failed: twice as long each time, up to a limit.

Pure functions of numbers, in whichever unit of time the caller has (the queue's is seconds). What counts as an attempt
is for `scheduling_queue` to say. `second` is the length of a second in that unit; with it, times are cut to whole
seconds, as kube-scheduler does while SchedulerPopFromBackoffQ is on: pods whose back-off ends in the same second then
go by priority. Without it (None) nothing is cut.
"""

from __future__ import annotations

from typing import Final, TypeVar

Time = TypeVar("Time", int, float)

_MOST_DOUBLINGS: Final = 63
"""After so many, a single nanosecond has become longer than Kubernetes can express."""


def duration(attempts: int, initial: Time, longest: Time) -> Time:
    """How long to wait after `attempts` failed ones: `initial` at first, doubled each time, at most `longest`."""
    if attempts <= 0:
        return longest - longest
    doublings: int = 2 ** min(attempts - 1, _MOST_DOUBLINGS)
    return min(longest, initial * doublings)


def expiry(timestamp: Time, wait: Time, second: Time | None) -> Time:
    """When a pod that was put back at `timestamp` has waited."""
    return _cut(timestamp + wait, second)


def is_backing_off(expires: Time, now: Time, second: Time | None) -> bool:
    """Whether back-off lasts at `now`; the second, or the very moment, in which it ends still belongs to it."""
    return expires >= _cut(now, second)


def _cut(time: Time, second: Time | None) -> Time:
    return time if second is None else time - time % second
