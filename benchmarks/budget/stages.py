"""Stages of a pod's way through the scheduler, and a stopwatch that charges each with its own CPU time.

A stage that calls another one is not charged for it. Time is CPU time of the scheduler's thread, so neither waiting
nor other processes count. Reading the clock costs some of what it measures: the stopwatch does not charge what passes
between its own two looks at the clock, and what is left of the cost per call is measured and taken off (`overhead`).
"""

from __future__ import annotations

import functools
import importlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from benchmarks.errors import BenchmarkError


@dataclass(frozen=True)
class Stage:
    """A function of the scheduler, and what it does to a pod."""

    title: str
    module: str
    owner: str
    function: str

    @property
    def place(self) -> str:
        """`module.Class.function`."""
        return f"{self.module}.{self.owner}.{self.function}"


STAGES = (
    Stage("watch: bytes into lines, duplicates dropped", "ksched.api.watch", "Reflector", "_read"),
    Stage("watch: a line decoded", "ksched.api.decode", "ObjectDecoder", "event"),
    Stage("feed: a batch of changes", "ksched.engine.feed", "Feed", "apply"),
    Stage("feed: a new pod into the queue", "ksched.engine.feed", "Feed", "_put_pending"),
    Stage("feed: a placed pod confirmed", "ksched.engine.feed", "Feed", "_put_placed"),
    Stage("queue: the next pod", "ksched.queue.scheduling_queue", "SchedulingQueue", "pop"),
    Stage("pipeline: around the cycle", "ksched.engine.pipeline", "Pipeline", "schedule"),
    Stage("cycle: filter, score, pick, assume", "ksched.engine.cycle", "Cycle", "schedule"),
    Stage("binding: begun", "ksched.engine.binding", "Bindings", "start"),
    Stage("bind: the request made", "ksched.api.writes", "Writes", "bind"),
    Stage("event: recorded", "ksched.api.events", "EventRecorder", "record"),
    Stage("requests: a connection found (bind and event)", "ksched.api.transport", "Transport", "send"),
    Stage("requests: written to a socket (bind and event)", "ksched.api.connection", "PooledConnection", "start"),
    Stage("answers: read and parsed (bind and event)", "ksched.api.connection", "PooledConnection", "data_received"),
    Stage("binding: ended", "ksched.engine.binding", "Binding", "__call__"),
)
"""In a pod's order. A function that moves is to be followed here; a test sees to it."""


@dataclass
class Stopwatch:
    """Charges CPU time to the stage that is innermost."""

    clock: Callable[[], int] = time.thread_time_ns
    charged: dict[str, int] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)
    _stack: list[str] = field(default_factory=list)
    _since: int = 0

    def reset(self) -> None:
        """Forget everything; only outside of stages."""
        self.charged.clear()
        self.calls.clear()

    def timed(self, function: Callable[..., Any], stage: str) -> Callable[..., Any]:
        """The function, charged to a stage."""
        clock, stack, charged, calls = self.clock, self._stack, self.charged, self.calls

        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            now = clock()
            if stack:
                charged[stack[-1]] = charged.get(stack[-1], 0) + now - self._since
            stack.append(stage)
            calls[stage] = calls.get(stage, 0) + 1
            self._since = clock()
            try:
                return function(*args, **kwargs)
            finally:
                now = clock()
                charged[stage] = charged.get(stage, 0) + now - self._since
                stack.pop()
                self._since = clock()

        return run

    @contextmanager
    def installed(self, stages: tuple[Stage, ...] = STAGES) -> Iterator[None]:
        """Wrap the stages' functions for a while."""
        originals: list[tuple[type, str, Any]] = []
        try:
            for stage in stages:
                owner, function = located(stage)
                originals.append((owner, stage.function, function))
                setattr(owner, stage.function, self.timed(function, stage.title))
            yield
        finally:
            for owner, name, function in originals:
                setattr(owner, name, function)


def located(stage: Stage) -> tuple[type, Callable[..., Any]]:
    """The class and the function of a stage. Raises BenchmarkError when there is no such function (any more)."""
    try:
        owner = getattr(importlib.import_module(stage.module), stage.owner)
        return owner, vars(owner)[stage.function]
    except (ImportError, AttributeError, KeyError) as error:
        raise BenchmarkError(f"budget: there is no {stage.place}: STAGES has to follow it") from error


@dataclass(frozen=True)
class Overhead:
    """What the stopwatch costs per call, in nanoseconds."""

    charged: float
    """To the stage itself."""
    uncharged: float
    """To nobody: it would look like the event loop's."""


def overhead(calls: int = 20_000) -> Overhead:
    """Measure it on a function that does nothing."""
    watch = Stopwatch()
    nothing = watch.timed(lambda: None, "nothing")
    for _ in range(1000):
        nothing()
    watch.reset()
    start = watch.clock()
    for _ in range(calls):
        nothing()
    total = (watch.clock() - start) / calls
    charged = watch.charged["nothing"] / calls
    return Overhead(charged, total - charged)
