"""The page: what was measured where, a table and charts for each workload, and what was not run and why."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from benchmarks.errors import BenchmarkError
from benchmarks.report.charts import Section, sections
from benchmarks.report.svg import draw

Json = dict[str, Any]

_STYLE = """
body { font: 14px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 1300px; padding: 0 1em; color: #1f2328; }
table { border-collapse: collapse; margin: 1em 0; } th, td { padding: 3px 10px; border-bottom: 1px solid #d0d7de; }
td { text-align: right; font-variant-numeric: tabular-nums; } td:first-child, th { text-align: left; }
svg { font: 12px system-ui, sans-serif; margin: 0 12px 12px 0; } .grid { stroke: #d8dee4; stroke-width: 1; }
.note { color: #9a6700; } .charts { display: flex; flex-wrap: wrap; }
"""

_ROWS = (
    ("pods per second (first create to last bind)", "acceptance.pods_per_second", 1.0, ",.0f"),
    ("window, s", "acceptance.seconds", 1.0, ",.1f"),
    ("SchedulingThroughput average", "SchedulingThroughput.Average", 1.0, ",.0f"),
    ("SchedulingThroughput p50", "SchedulingThroughput.Perc50", 1.0, ",.0f"),
    ("SchedulingThroughput p90", "SchedulingThroughput.Perc90", 1.0, ",.0f"),
    ("SchedulingThroughput p95", "SchedulingThroughput.Perc95", 1.0, ",.0f"),
    ("SchedulingThroughput p99", "SchedulingThroughput.Perc99", 1.0, ",.0f"),
    ("create to bind p50, ms", "latency_seconds.p50", 1e3, ",.1f"),
    ("create to bind p99, ms", "latency_seconds.p99", 1e3, ",.1f"),
    ("create to bind p99.9, ms", "latency_seconds.p99.9", 1e3, ",.1f"),
    ("scheduler CPU per pod, ms", "scheduler_cpu_ms_per_pod", 1.0, ".4f"),
    ("the same until its last event, ms", "scheduler_cpu_ms_per_pod_with_late_events", 1.0, ".4f"),
    ("scheduler CPU in the window, s", "cpu_seconds.scheduler", 1.0, ",.2f"),
    ("server CPU in the window, s", "cpu_seconds.server", 1.0, ",.2f"),
    ("loader CPU in the window, s", "cpu_seconds.loader", 1.0, ",.2f"),
    ("scheduler memory, peak MB", "memory_bytes.scheduler.peak", 1e-6, ",.0f"),
    ("scheduler memory, steady MB", "memory_bytes.scheduler.steady", 1e-6, ",.0f"),
    ("events sent", "events.sent", 1.0, ",.0f"),
    ("events dropped", "events.dropped", 1.0, ",.0f"),
    ("CPU share used, largest minus smallest", "placement.cpu.difference", 1.0, ".4f"),
    ("memory share used, largest minus smallest", "placement.memory.difference", 1.0, ".4f"),
    ("pods share used, largest minus smallest", "placement.pods.difference", 1.0, ".4f"),
)


def write_html(path: Path, documents: Sequence[Json]) -> None:
    """Write a page about one result document or several, one per scheduler."""
    try:
        path.write_text(page(documents), encoding="utf-8")
    except OSError as error:
        raise BenchmarkError(f"{path}: cannot be written: {error.strerror}") from error


def page(documents: Sequence[Json]) -> str:
    """The page's text; it refers to nothing outside of itself."""
    body = ["<h1>Scheduler benchmark</h1>", _where(documents)]
    body += [_section(section) for section in sections(documents)]
    body.append(_not_run(documents))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Scheduler benchmark</title>'
        f"<style>{_STYLE}</style></head><body>\n{chr(10).join(filter(None, body))}\n</body></html>\n"
    )


def _where(documents: Sequence[Json]) -> str:
    rows = []
    for document in documents:
        machine = document["machine"]
        place = f"{machine['cpus']} x {machine['cpu']}, {machine['memory_bytes'] / 2**30:.0f} GiB, {machine['kernel']}"
        rows.append(
            f"<tr><td>{escape(document['scheduler'])}</td><td>{escape(document['server'])}</td>"
            f"<td>{escape(place)}</td><td><code>{escape(' '.join(document['command']))}</code></td></tr>"
        )
    return f"<table><tr><th>scheduler<th>server<th>machine<th>command</tr>{''.join(rows)}</table>"


def _section(section: Section) -> str:
    head = "".join(f"<th>{escape(scheduler)}" for scheduler, _ in section.entries)
    rows = []
    for title, name, scale, style in _ROWS:
        cells = [_cell(workload["summary"]["figures"].get(name), scale, style) for _, workload in section.entries]
        if any(cells):
            rows.append(f"<tr><td>{title}</td>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    notes = [
        f'<p class="note">{escape(scheduler)}: {escape(note)}</p>'
        for scheduler, workload in section.entries
        for note in filter(None, [workload["summary"]["why_no_result"], *workload["caveats"]])
    ]
    charts = "".join(map(draw, section.charts))
    return (
        f"<h2>{escape(section.name)}</h2>{''.join(notes)}<div class='charts'>{charts}</div>"
        f"<table><tr><th>median (least to most)</th>{head}</tr>{''.join(rows)}</table>"
    )


def _cell(figure: Json | None, scale: float, style: str) -> str:
    if figure is None:
        return ""
    median, least, most = (format(figure[name] * scale, style) for name in ("median", "least", "most"))
    return median if least == most else f"{median} ({least} to {most})"


def _not_run(documents: Sequence[Json]) -> str:
    rows = [
        f"<tr><td>{escape(document['scheduler'])}</td><td>{escape(each['case'])}/{escape(each['workload'])}</td>"
        f"<td>{each['status']}</td><td>{escape(each['reason'])}</td></tr>"
        for document in documents
        for each in document["workloads"]
        if each["status"] != "ran"
    ]
    if not rows:
        return ""
    return f"<h2>Not run to the end</h2><table><tr><th>scheduler<th>workload<th><th>why</tr>{''.join(rows)}</table>"
