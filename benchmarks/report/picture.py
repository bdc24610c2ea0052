"""The charts as one PNG picture. matplotlib is an extra: it is large, and nothing else needs it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.errors import BenchmarkError
from benchmarks.report.charts import BarChart, LineChart, sections

Json = dict[str, Any]


def write_png(path: Path, documents: Sequence[Json]) -> None:
    """Draw a row of charts for each workload. Raises BenchmarkError without matplotlib, or when nothing was run."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise BenchmarkError("a PNG needs matplotlib: pip install 'ksched[bench]'; --html needs nothing") from error
    found = sections(documents)
    if not found:
        raise BenchmarkError(f"{path}: no workload was run, so there is nothing to draw")
    columns = len(found[0].charts)
    figure = Figure(figsize=(5.2 * columns, 3.6 * len(found)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(found), columns, squeeze=False)
    for row, section in zip(axes, found, strict=True):
        for place, chart in zip(row, section.charts, strict=True):
            _draw(place, chart)
            place.set_title(f"{section.name}\n{chart.title}", fontsize=8)
    try:
        figure.savefig(path, format="png", dpi=110)
    except OSError as error:
        raise BenchmarkError(f"{path}: cannot be written: {error.strerror}") from error


def _draw(place: Any, chart: LineChart | BarChart) -> None:
    place.set_ylabel(chart.y_label)
    if isinstance(chart, LineChart):
        for line in chart.lines:
            ys = [float("nan") if y is None else y for y in line.ys]
            place.plot(line.xs, ys, label=line.name, linewidth=1.2)
        place.set_xlabel(chart.x_label)
        if chart.log_y:
            place.set_yscale("log")
        else:
            place.set_ylim(bottom=0)
    else:
        below = [0.0] * len(chart.bars)
        for number, name in enumerate(chart.part_names):
            amounts = [bar.parts[number] for bar in chart.bars]
            place.bar([bar.name for bar in chart.bars], amounts, bottom=below, label=name, width=0.5)
            below = [low + amount for low, amount in zip(below, amounts, strict=True)]
    place.legend(fontsize=7)
    place.grid(alpha=0.3)
