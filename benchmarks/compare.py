"""Result files beside each other: `python -m benchmarks.compare BASE.json OTHER.json ...`.

Every figure is the median over a file's repeats, with its spread; a ratio is the other file's median over the base's.
Figures from different machines, servers or parameters are shown, and it is said that they differ: only ratios from one
machine mean anything. A ratio within the spread of either file is marked as noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from benchmarks.console import wide_console
from benchmarks.errors import BenchmarkError
from benchmarks.scheduler_perf import results
from ksched.errors import KschedError

Json = dict[str, Any]

SHOWN = (
    "acceptance.pods_per_second",
    "SchedulingThroughput.Average",
    "latency_seconds.p50",
    "latency_seconds.p99",
    "latency_seconds.p99.9",
    "scheduler_cpu_ms_per_pod",
    "scheduler_cpu_ms_per_pod_with_late_events",
    "memory_bytes.scheduler.peak",
    "events.dropped",
)


@dataclass(frozen=True)
class Row:
    """One figure of one workload in two files."""

    workload: str
    figure: str
    base: float
    base_spread: float
    other: float
    other_spread: float

    @property
    def ratio(self) -> float | None:
        """The other's median over the base's; None where the base has nothing to compare with."""
        return self.other / self.base if self.base else None

    @property
    def is_noise(self) -> bool:
        """Whether the difference is no larger than the repeats' own."""
        return self.ratio is not None and abs(self.ratio - 1.0) <= max(self.base_spread, self.other_spread)


def compare(base: Json, other: Json, figures: Sequence[str] = SHOWN) -> list[Row]:
    """Every figure that both documents have, workload by workload. Raises BenchmarkError when they share none."""
    ours, theirs = _summaries(base), _summaries(other)
    rows = []
    for name, summary in ours.items():
        if name not in theirs:
            continue
        before, after = summary["figures"], theirs[name]["figures"]
        for figure in figures:
            if figure in before and figure in after:
                left, right = before[figure], after[figure]
                rows.append(Row(name, figure, left["median"], left["spread"], right["median"], right["spread"]))
    if not rows:
        raise BenchmarkError("the files share no workload that was run")
    return rows


def differences(base: Json, other: Json) -> list[str]:
    """What makes a comparison questionable: other machines, servers, parameters, and runs that are no results."""
    found = [
        f"{field}: {base['machine'].get(field)} and {other['machine'].get(field)}"
        for field in ("cpu", "cpus", "kernel")
        if base["machine"].get(field) != other["machine"].get(field)
    ]
    if base["server"] != other["server"]:
        found.append(f"server: {base['server']} and {other['server']}")
    ours, theirs = _params(base), _params(other)
    found += [
        f"{name}: parameters {ours[name]} and {theirs[name]}"
        for name in ours
        if name in theirs and ours[name] != theirs[name]
    ]
    for document in (base, other):
        found += [
            f"{document['scheduler']}: {name} is not a result: {summary['why_no_result']}"
            for name, summary in _summaries(document).items()
            if not summary["is_result"]
        ]
    return found


def _summaries(document: Json) -> dict[str, Json]:
    return {
        f"{each['case']}/{each['workload']}": each["summary"]
        for each in document["workloads"]
        if each["status"] == "ran" and each["summary"] is not None
    }


def _params(document: Json) -> dict[str, Mapping[str, Any]]:
    return {f"{each['case']}/{each['workload']}": each["params"] for each in document["workloads"]}


@click.command(help=__doc__, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.argument("base", type=click.Path(exists=True, path_type=Path))
@click.argument("others", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
def main(*, base: Path, others: tuple[Path, ...]) -> None:
    """Show the comparison of each file with the first."""
    console = wide_console()
    try:
        first = results.read(base)
        for other in others:
            second = results.read(other)
            console.print(_table(first, second, compare(first, second)))
            for difference in differences(first, second):
                console.print(f"  not alike: {difference}", highlight=False, markup=False)
    except KschedError as fault:
        raise click.ClickException(str(fault)) from fault


def _table(base: Json, other: Json, rows: Sequence[Row]) -> Table:
    table = Table("workload", "figure", title=f"{base['scheduler']} and {other['scheduler']}", title_justify="left")
    for heading in (base["scheduler"], "spread", other["scheduler"], "spread", "ratio"):
        table.add_column(heading, justify="right")
    table.add_column("")
    last = ""
    for row in rows:
        table.add_row(
            row.workload if row.workload != last else "",
            row.figure,
            f"{row.base:,.4g}",
            f"{row.base_spread:.0%}",
            f"{row.other:,.4g}",
            f"{row.other_spread:.0%}",
            "-" if row.ratio is None else f"{row.ratio:.2f}",
            "within spread" if row.is_noise else "",
        )
        last = row.workload
    return table


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.compare")
