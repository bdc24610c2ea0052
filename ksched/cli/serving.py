"""The event loop that a long-running command lives on, and what signals do to it.

The first SIGTERM or SIGINT asks for a clean stop, the second ends the process at once. Handlers are Python's
own rather than the loop's, so that the second one also works while a plugin holds the loop.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from types import FrameType

import uvloop

SIGNALS = (signal.SIGTERM, signal.SIGINT)


def run_until_stopped(work: Callable[[asyncio.Event], Awaitable[int]]) -> int:
    """Run `work` on uvloop and return its exit code; its event is set when a signal asks for a stop."""

    async def supervised() -> int:
        stop = asyncio.Event()
        _stop_on_signals(stop)
        return await work(stop)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(supervised())


def _stop_on_signals(stop: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    seen = 0

    def on_signal(number: int, frame: FrameType | None) -> None:
        nonlocal seen
        seen += 1
        if seen > 1:
            os._exit(1)
        loop.call_soon_threadsafe(stop.set)

    for number in SIGNALS:
        signal.signal(number, on_signal)
