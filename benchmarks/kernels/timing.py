"""How long a call takes: enough calls for the clock, repeated, and the median with the extremes."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

SHORTEST_SECONDS = 0.02
"""Calls are repeated until a sample takes this long, so that the clock's own cost does not matter."""


class Timing(NamedTuple):
    """Nanoseconds per call."""

    median: float
    least: float
    most: float
    calls: int


def timed(call: Callable[[], object], *, samples: int = 7, shortest: float = SHORTEST_SECONDS) -> Timing:
    """Time `call`; garbage is not collected meanwhile."""
    call()
    calls = 1
    while (seconds := _run(call, calls)) < shortest:
        calls = max(calls + 1, min(calls * 10, int(calls * shortest / max(seconds, 1e-9) * 1.2)))
    enabled = gc.isenabled()
    gc.disable()
    try:
        found = [_run(call, calls) / calls * 1e9 for _ in range(samples)]
    finally:
        if enabled:
            gc.enable()
    return Timing(statistics.median(found), min(found), max(found), calls * samples)


def _run(call: Callable[[], object], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return time.perf_counter() - start
