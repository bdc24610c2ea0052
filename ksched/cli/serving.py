"""The event loop that a long-running command lives on, and what signals do to it.

The first SIGTERM or SIGINT asks for a clean stop, the second ends the process at once. Handlers are Python's
own rather than the loop's, so that the second one also works while a plugin holds the loop. The handlers that
were there before are there again afterwards: whoever runs a command in its own process can still be stopped.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import uvloop

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Stop(asyncio.Event):
    """Set when a signal asks for a stop, and then tells which."""

    number: int | None = None

    @property
    def exit_code(self) -> int:
        """What a command ends with that was stopped before it was done, as shells count: 130 after Ctrl-C."""
        assert self.number is not None, "no signal has come"
        return 128 + self.number


def run_until_stopped(work: Callable[[Stop], Awaitable[int]]) -> int:
    """Run `work` on uvloop and return its exit code; its event is set when a signal asks for a stop."""

    async def supervised() -> int:
        stop = Stop()
        _stop_on_signals(stop)
        return await work(stop)

    with _handlers_restored(), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(supervised())


@contextmanager
def _handlers_restored() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            # None stands for a handler that Python did not install and cannot put back.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def _stop_on_signals(stop: Stop) -> None:
    loop = asyncio.get_running_loop()
    seen = 0

    def on_signal(number: int, frame: FrameType | None) -> None:
        nonlocal seen
        seen += 1
        if seen > 1:
            os._exit(1)
        stop.number = number
        loop.call_soon_threadsafe(stop.set)

    for number in SIGNALS:
        signal.signal(number, on_signal)
