"""`python -m benchmarks.kernels`: the native module's functions and the engine's cycle, timed at growing sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.table import Table

from benchmarks import machine
from benchmarks.console import wide_console
from benchmarks.kernels import cycles, timing
from benchmarks.kernels.cases import KERNELS, Kernel
from benchmarks.kernels.columns import Columns

Json = dict[str, Any]

NODES = (1_000, 5_000, 15_000, 50_000, 100_000, 1_000_000)
CYCLE_NODES = (5_000, 15_000, 50_000, 100_000)


@click.command(help=__doc__, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option("--nodes", type=int, multiple=True, help="Sizes of the columns. May be repeated.  [default: 1 k to 1 M]")
@click.option("--cycle-nodes", type=int, multiple=True, help="Sizes of the clusters.  [default: 5 k to 100 k]")
@click.option("--only", default="", metavar="TEXT", help="Only the cases with this in their name.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here.")
def main(*, nodes: tuple[int, ...], cycle_nodes: tuple[int, ...], only: str, json_path: Path | None) -> None:
    """Time everything and show it."""
    console = wide_console()
    sizes, cluster_sizes = nodes or NODES, cycle_nodes or CYCLE_NODES
    kernels = [kernel for kernel in KERNELS if only in kernel.name]
    found = {(kernel.name, n): timing.timed(kernel.prepare(Columns(n))) for n in sizes for kernel in kernels}
    if kernels:
        console.print(_kernel_table(kernels, sizes, found))
    cases = [case for case in cycles.CASES if only in case.name]
    timings = [cycles.timed(case, n) for case in cases for n in cluster_sizes]
    if timings:
        console.print(_cycle_table(timings))
    if json_path is not None:
        content = {
            "version": 1,
            "machine": machine.describe(),
            "kernels": [
                {"kernel": name, "nodes": n, "nanoseconds": took._asdict()} for (name, n), took in found.items()
            ],
            "cycles": [asdict(each) for each in timings],
        }
        json_path.write_bytes(msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n")


def _kernel_table(
    kernels: Sequence[Kernel], sizes: Sequence[int], found: dict[tuple[str, int], timing.Timing]
) -> Table:
    table = Table("kernel", title="microseconds per call (and nanoseconds per node)", title_justify="left")
    for n in sizes:
        table.add_column(f"{n:,}", justify="right")
    for kernel in kernels:
        cells = []
        for n in sizes:
            took = found[kernel.name, n].median
            cells.append(f"{took / 1e3:,.2f}" + (f" ({took / n:.1f})" if kernel.per_node else ""))
        table.add_row(kernel.name, *cells)
    return table


def _cycle_table(timings: Sequence[cycles.CycleTiming]) -> Table:
    table = Table("load", title="the engine's cycle, microseconds per pod", title_justify="left")
    for heading in ("nodes", "median", "least", "most", "grown MB, pods included"):
        table.add_column(heading, justify="right")
    for each in timings:
        table.add_row(
            each.case,
            f"{each.nodes:,}",
            f"{each.median_us:.2f}",
            f"{each.least_us:.2f}",
            f"{each.most_us:.2f}",
            f"{each.grown_bytes / 1e6:.1f}",
        )
    return table


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.kernels")
