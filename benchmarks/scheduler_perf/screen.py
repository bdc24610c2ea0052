"""What a person sees: a line that says how far a run is, and tables of what came of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from benchmarks.scheduler_perf.results import Outcome

Json = dict[str, Any]

REFRESHES_PER_SECOND = 2
"""Drawing costs the loader time."""


class Screen:
    """The progress of a session, on a terminal as one moving line, elsewhere as a line per operation."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._live = Live(console=console, refresh_per_second=REFRESHES_PER_SECOND, transient=True)
        self._title = ""
        self._operation = ""
        self._state = ""
        self._began = time.monotonic()
        self._rate_from = (0.0, 0)
        self._moving = console.is_terminal

    def __enter__(self) -> Screen:
        if self._moving:
            self._live.start()
        return self

    def __exit__(self, *exc: object) -> None:
        if self._moving:
            self._live.stop()

    def run(self, title: str) -> None:
        """A run begins."""
        self._title, self._operation, self._state = title, "", ""
        self._began = time.monotonic()
        if not self._moving:
            self.console.print(title, highlight=False, markup=False)

    def operation(self, number: int, count: int, what: str) -> None:
        """An operation begins."""
        self._operation, self._state = f"{number}/{count} {what}", ""
        self._rate_from = (time.monotonic(), 0)
        self._draw()

    def done(self, what: str, so_far: int, of: int) -> None:
        """So much of it is done."""
        now = time.monotonic()
        since, before = self._rate_from
        if so_far < before:
            self._rate_from = since, before = now, so_far
        rate = (so_far - before) / (now - since) if now > since else 0.0
        self._state = f"{what} {so_far:,} of {of:,}, {rate:,.0f}/s"
        self._draw()

    def note(self, text: str) -> None:
        """Something that stays on the screen."""
        self.console.print(text, highlight=False, markup=False)

    def _draw(self) -> None:
        if self._moving:
            seconds = time.monotonic() - self._began
            self._live.update(Text(f"{self._title}  {seconds:.0f} s  [{self._operation}] {self._state}"))


def show_outcomes(console: Console, outcomes: Sequence[Outcome]) -> None:
    """The summary tables: what ran, and what did not and why."""
    ran = [outcome for outcome in outcomes if outcome.runs]
    if ran:
        console.print(_table(ran))
    for outcome in ran:
        found = outcome.to_json()
        said = found["summary"]
        notes = [] if said is None else [said["why_no_result"]]
        for note in [*filter(None, notes), *outcome.caveats]:
            console.print(f"  {outcome.workload.full_name}: {note}", highlight=False, markup=False)
    rest = [outcome for outcome in outcomes if outcome.status != "ran"]
    if rest:
        table = Table("workload", "", "why", title="not run to the end", title_justify="left")
        for outcome in rest:
            table.add_row(outcome.workload.full_name, outcome.status, Text(outcome.reason))
        console.print(table)


_COLUMNS = (
    ("pods/s", "acceptance.pods_per_second", 1.0, ",.0f"),
    ("window s", "acceptance.seconds", 1.0, ".1f"),
    ("avg", "SchedulingThroughput.Average", 1.0, ",.0f"),
    ("p50 ms", "latency_seconds.p50", 1e3, ",.0f"),
    ("p99 ms", "latency_seconds.p99", 1e3, ",.0f"),
    ("cpu ms/pod", "scheduler_cpu_ms_per_pod", 1.0, ".3f"),
    ("peak MB", "memory_bytes.scheduler.peak", 1e-6, ",.0f"),
    ("dropped", "events.dropped", 1.0, ".0f"),
)


def _table(outcomes: Sequence[Outcome]) -> Table:
    table = Table("workload", "pods", title="medians", title_justify="left")
    for heading, _, _, _ in _COLUMNS:
        table.add_column(heading, justify="right")
    table.add_column("spread", justify="right")
    table.add_column("threshold", justify="right")
    table.add_column("result")
    for outcome in outcomes:
        said = outcome.to_json()["summary"]
        if said is None:
            table.add_row(outcome.workload.full_name, "0", *[""] * (len(_COLUMNS) + 2), "nothing measured")
            continue
        figures = said["figures"]
        cells = [
            format(figures[name]["median"] * scale, style) if name in figures else "-"
            for _, name, scale, style in _COLUMNS
        ]
        rate = figures["acceptance.pods_per_second"]
        threshold = said["threshold"]
        verdict = {True: "above", False: "BELOW", None: "no samples"}
        table.add_row(
            outcome.workload.full_name,
            f"{said['measured_pods']:,}",
            *cells,
            f"{rate['spread']:.0%}" if said["runs"] > 1 else "-",
            "-" if threshold is None else f"{threshold['want']:g} {verdict[threshold['passed']]}",
            Text("yes", "green") if said["is_result"] else Text("no", "yellow"),
        )
    return table
