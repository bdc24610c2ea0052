"""What one run of a workload knows: the server, the scheduler, what was created, what is being measured.

`executor` and its neighbours carry out operations on it; `collecting` reads the figures from it.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from benchmarks.errors import RunFailed
from benchmarks.processes import ChildProcess, Series
from benchmarks.scheduler_perf.cases import Workload
from benchmarks.scheduler_perf.loader import Api
from benchmarks.scheduler_perf.measures import PodTimes
from benchmarks.scheduler_perf.objects import Templates
from benchmarks.scheduler_perf.observation import Observer

POLL_SECONDS = 0.25
SAMPLE_SECONDS = 0.25


class Progress(Protocol):
    """Who is told how a run goes on."""

    def operation(self, number: int, count: int, what: str) -> None:
        """An operation begins."""

    def done(self, what: str, so_far: int, of: int) -> None:
        """So much of it is done."""


class Silent:
    """Nobody is told."""

    def operation(self, number: int, count: int, what: str) -> None:
        """Nothing."""

    def done(self, what: str, so_far: int, of: int) -> None:
        """Nothing."""


class Meters:
    """Usage of scheduler, server and loader, sampled while a run goes on."""

    def __init__(self, scheduler: Sequence[int], server: Sequence[int]) -> None:
        self.scheduler = Series(tuple(scheduler))
        self.server = Series(tuple(server))
        # The loader is this process alone: the others are its children.
        self.loader = Series((os.getpid(),), with_children=False)

    def sample(self) -> None:
        """Look at all of them."""
        now = time.time()
        for series in (self.scheduler, self.server, self.loader):
            series.sample(now)

    async def keep_sampling(self) -> None:
        """Sample until cancelled."""
        while True:
            self.sample()
            await asyncio.sleep(SAMPLE_SECONDS)


@dataclass
class Collection:
    """Pods being measured, or measured."""

    name: str
    namespaces: Sequence[str]
    selector: dict[str, str]
    started: int
    """Unix nanoseconds."""
    ended: int = 0
    pods: list[PodTimes] = field(default_factory=list)
    placement: dict[str, dict[str, float]] = field(default_factory=dict)
    events: dict[str, Any] = field(default_factory=dict)
    events_complete: float = 0.0
    """Unix seconds of the moment when every event was there, or was given up."""


@dataclass
class World:
    """One run."""

    workload: Workload
    templates: Templates
    api: Api
    observer: Observer
    meters: Meters
    scheduler: ChildProcess
    progress: Progress
    timeout_seconds: float
    sandbox: bool
    collecting: Collection | None = None
    collected: list[Collection] = field(default_factory=list)
    labels: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    """The labels of pods that were created, where a collection selects by labels."""
    waited_for: dict[str, None] = field(default_factory=dict)
    """Namespaces of pods that nobody waited for yet, in order: what a barrier without namespaces is about."""
    node_numbers: Counter[str] = field(default_factory=Counter)
    namespaces: dict[str, None] = field(default_factory=dict)
    other_objects: list[str] = field(default_factory=list)
    """Paths of what was created outside of namespaces, for cleaning up a real cluster."""
    background: list[asyncio.Task[None]] = field(default_factory=list)

    def in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Let `work` run until the workload ends; its faults end the workload at the next `check`."""
        self.background.append(asyncio.create_task(work))

    def check(self) -> None:
        """Raise RunFailed if the scheduler has ended or something in the background has failed."""
        self.scheduler.require_alive("the scheduler")
        for task in self.background:
            if task.done() and not task.cancelled() and (fault := task.exception()) is not None:
                raise RunFailed(f"in the background: {fault}") from fault

    async def end_background(self) -> None:
        """Cancel what still runs in the background."""
        for task in self.background:
            task.cancel()
        await asyncio.gather(*self.background, return_exceptions=True)

    async def namespace(self, name: str) -> None:
        """Make sure that a namespace exists."""
        if name not in self.namespaces:
            self.namespaces[name] = None
            await self.api.ensure_namespace(name, with_account=not self.sandbox)

    @property
    def remembers_labels(self) -> bool:
        """Whether labels of pods will be asked for."""
        return any(getattr(each, "label_selector", None) and each.collects for each in self.workload.operations)
