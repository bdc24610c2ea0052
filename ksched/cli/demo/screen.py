"""How a running demo looks: a live table on a terminal, a line now and then anywhere else."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

LINE_SECONDS = 2.0
"""Time between lines where there is no terminal."""

REFRESH_PER_SECOND = 4.0


@dataclass(slots=True)
class State:
    """What is known at a moment, all of it from the server but the scheduler's CPU and memory."""

    step: str = "starting"
    nodes: int = 0
    nodes_total: int = 0
    created: int = 0
    pods_total: int = 0
    bound: int = 0
    told: int = 0
    """Pending pods whose condition says why; known at the end only."""
    pods_per_second: float | None = None
    """Bound pods by the seconds from the first create to the last bind so far: what the summary tells of all."""
    latency_p50: float | None = None
    latency_p99: float | None = None
    scheduler_cpu_seconds: float = 0.0
    scheduler_rss_bytes: int = 0
    utilization: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @property
    def waiting(self) -> int:
        """Pods that exist and have no node."""
        return max(0, self.created - self.bound)


class Screen:
    """Shows a `State` while the demo runs; a context manager."""

    def __init__(self, console: Console) -> None:
        self.state = State()
        self._console = console
        self._live = Live(
            console=console, get_renderable=self._render, refresh_per_second=REFRESH_PER_SECOND, transient=True
        )
        self._started = time.monotonic()
        self._last_line = 0.0

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.end()

    def end(self) -> None:
        """Show the live table no more; lines can still be said."""
        if self._console.is_terminal:
            self._live.stop()

    def say(self, text: str) -> None:
        """A line that stays."""
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def tick(self) -> None:
        """Called whenever the state has changed; prints a line if it is time for one."""
        if self._console.is_terminal:
            return
        now = time.monotonic()
        if now - self._last_line >= LINE_SECONDS:
            self._last_line = now
            self.say(self.line())

    def line(self) -> str:
        """The state in one line."""
        state = self.state
        text = f"{time.monotonic() - self._started:6.1f} s  {state.step}: "
        if state.created == 0:
            return text + f"{state.nodes:,}/{state.nodes_total:,} nodes"
        text += f"{state.created:,}/{state.pods_total:,} pods created, {state.bound:,} bound, {state.waiting:,} waiting"
        text += "".join(f", {rate}" for rate in self._rate())
        if state.latency_p50 is not None and state.latency_p99 is not None:
            text += f", latency p50 {state.latency_p50:.3f} s p99 {state.latency_p99:.3f} s"
        return text

    def _render(self) -> RenderableType:
        state = self.state
        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="bold")
        grid.add_column(width=40)
        grid.add_column(justify="right")
        if state.nodes < state.nodes_total:
            grid.add_row(
                "nodes created", _bar(state.nodes, state.nodes_total), f"{state.nodes:,}/{state.nodes_total:,}"
            )
        grid.add_row("pods created", _bar(state.created, state.pods_total), f"{state.created:,}/{state.pods_total:,}")
        grid.add_row("pods bound", _bar(state.bound, state.pods_total), f"{state.bound:,}/{state.pods_total:,}")
        grid.add_row("waiting", _bar(state.waiting, state.pods_total), f"{state.waiting:,}")
        figures = Table.grid(padding=(0, 3))
        figures.add_row(*self._rate(), *self._latency(), *self._cost())
        parts: list[RenderableType] = [Text(f"ksched demo: {state.step}", style="bold cyan"), grid, figures]
        if state.utilization:
            parts.append(self._pools())
        return Group(*parts)

    def _rate(self) -> list[str]:
        rate = self.state.pods_per_second
        return [] if rate is None else [f"{rate:,.0f} pods/s since the first create"]

    def _latency(self) -> list[str]:
        state = self.state
        if state.latency_p50 is None or state.latency_p99 is None:
            return []
        return [f"latency p50 {1000 * state.latency_p50:,.0f} ms", f"p99 {1000 * state.latency_p99:,.0f} ms"]

    def _cost(self) -> list[str]:
        state = self.state
        if not state.scheduler_rss_bytes:
            return []
        return [f"scheduler {state.scheduler_cpu_seconds:.1f} s CPU, {state.scheduler_rss_bytes / 2**20:,.0f} MiB"]

    def _pools(self) -> RenderableType:
        table = Table.grid(padding=(0, 2))
        table.add_column(style="bold")
        for pool, shares in self.state.utilization.items():
            cells: list[RenderableType] = [pool]
            for resource, share in shares.items():
                cells += [Text(resource, style="dim"), _bar(share, 1.0, width=16), f"{100 * share:3.0f} %"]
            table.add_row(*cells)
        return table


def _bar(done: float, total: float, width: int = 40) -> ProgressBar:
    return ProgressBar(total=max(total, 1e-9), completed=min(done, total), width=width)
