"""`python -m benchmarks.budget`: microseconds of scheduler CPU per pod, stage by stage."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click
import msgspec
from rich.table import Table

from benchmarks import machine
from benchmarks.budget.run import Budget, measure
from benchmarks.console import wide_console
from ksched.errors import KschedError


@click.command(help=__doc__, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option("--nodes", type=click.IntRange(1), default=5000, show_default=True, help="Nodes of the sandbox.")
@click.option("--pods", type=click.IntRange(1), default=20_000, show_default=True, help="Pods that are created.")
@click.option("--tls", is_flag=True, help="The sandbox speaks HTTPS.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here.")
def main(*, nodes: int, pods: int, tls: bool, json_path: Path | None) -> None:
    """Measure and show."""
    try:
        found = measure(nodes, pods, tls=tls)
    except KschedError as fault:
        raise click.ClickException(str(fault)) from fault
    wide_console().print(_table(found))
    if json_path is not None:
        content = {"version": 1, "machine": machine.describe(), "budget": asdict(found)}
        json_path.write_bytes(msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n")


def _table(found: Budget) -> Table:
    wire = "HTTPS" if found.tls else "HTTP"
    title = f"scheduler CPU per pod: {found.pods:,} pods, {found.nodes:,} nodes, {wire}"
    table = Table("stage", title=title, title_justify="left")
    table.add_column("calls per pod", justify="right")
    table.add_column("us per pod", justify="right")
    for stage in found.stages:
        table.add_row(stage.title, f"{stage.calls_per_pod:.2f}", f"{stage.us_per_pod:.2f}")
    table.add_row("event loop, sockets, Python in between", "", f"{found.rest_us:.2f}")
    table.add_section()
    table.add_row("together", "", f"{found.total_us:.2f}")
    table.add_row("the stopwatch's own cost, taken off", "", f"{found.overhead_us:.2f}")
    return table


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.budget")
