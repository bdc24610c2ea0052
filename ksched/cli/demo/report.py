"""What a demo found: counted at the server, judged, and told as a table and as JSON.

The scheduler is not asked for anything here: times are the server's, placements are audited there, and the
reasons of pending pods are read from their conditions, as a user would.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ksched import __version__
from ksched.cli.processes import Usage
from ksched.errors import KschedError

SHOWN_PENDING = 20
"""How many pending pods, or groups of them, are listed on the terminal; the JSON has all."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A pod without a node, and what its PodScheduled condition says; both empty where nobody has said anything."""

    namespace: str
    name: str
    reason: str
    message: str

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome of one demo."""

    settings: Mapping[str, Any]
    pods: int
    timeline: Mapping[str, Any]
    stats: Mapping[str, Any]
    audit: Mapping[str, Any]
    scheduler: Usage
    pending: Sequence[Pending]
    cannot_fit: Mapping[str, str] | None
    """The keys of the pods that cannot fit by construction, and why not; None where nobody knows (a trace)."""
    utilization: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Pool to resource to the share that is taken."""

    @property
    def bound(self) -> int:
        """How many pods are bound, by the server's count."""
        return int(self.timeline["bound"])

    @property
    def binds_per_second(self) -> float | None:
        """Binds from the first to the last: the rate where the pods were there before (a backlog)."""
        first, last = self.timeline["first_bind"], self.timeline["last_bind"]
        return (self.bound - 1) / (last - first) if first is not None and last > first else None

    def faults(self) -> list[str]:
        """Why the demo failed, one line each; empty after success."""
        found = []
        if self.bound + len(self.pending) != self.pods:
            found.append(f"{_pods(self.pods)} created, but {self.bound} bound and {len(self.pending)} pending")
        if self.cannot_fit is not None:
            left = [pod.key for pod in self.pending if pod.key not in self.cannot_fit]
            if left:
                found.append(f"{_pods(len(left))} that would fit not bound, among them {', '.join(sorted(left)[:5])}")
            placed = self.cannot_fit.keys() - {pod.key for pod in self.pending}
            if placed:
                found.append(f"{_pods(len(placed))} that cannot fit, but bound: {', '.join(sorted(placed)[:5])}")
        silent = [pod.key for pod in self.pending if not pod.message]
        if silent:
            found.append(f"{_pods(len(silent))} pending without a reason, among them {', '.join(sorted(silent)[:5])}")
        for what, key in (("over-committed", "overcommitted"), ("bound more than once", "bound_more_than_once")):
            if self.audit[key]:
                found.append(f"{what}: {self.audit[key][:5]}")
        if self.audit["unknown_nodes"]:
            found.append(f"bound to nodes that do not exist: {', '.join(self.audit['unknown_nodes'][:5])}")
        return found

    def to_json(self) -> dict[str, Any]:
        """The report as it is written with --json; docs/demo.md describes the fields."""
        latency = self.timeline["latency_seconds"] or {"p50": None, "p99": None}
        return {
            "ksched": __version__,
            "settings": dict(self.settings),
            "ok": not self.faults(),
            "faults": self.faults(),
            "pods": self.pods,
            "bound": self.bound,
            "unschedulable": len(self.pending),
            "acceptance": {
                "pods_per_second": self.timeline["pods_per_second"],
                "seconds": self.timeline["seconds"],
                "binds_per_second": self.binds_per_second,
            },
            "latency_seconds": dict(latency),
            "scheduler": {
                "cpu_seconds": self.scheduler.cpu_seconds,
                "cpu_milliseconds_per_pod": 1000 * self.scheduler.cpu_seconds / self.bound if self.bound else None,
                "peak_rss_bytes": self.scheduler.peak_rss_bytes,
            },
            "server": {
                "binds": self.stats["binds"],
                "bind_conflicts": self.stats["bind_conflicts"],
                "bound_more_than_once": len(self.audit["bound_more_than_once"]),
                "overcommitted_nodes": len({excess["node"] for excess in self.audit["overcommitted"]}),
                "nodes_used": self.audit["nodes"],
                "requests": self.stats["requests"],
                "cpu_seconds": self.stats["cpu_seconds"],
                "peak_rss_bytes": self.stats["peak_rss_bytes"],
            },
            "utilization": {pool: dict(shares) for pool, shares in self.utilization.items()},
            "pending": [
                {"namespace": pod.namespace, "name": pod.name, "reason": pod.reason, "message": pod.message}
                for pod in self.pending
            ],
        }

    def write(self, path: Path) -> None:
        """Write the JSON to `path`."""
        try:
            path.write_bytes(msgspec.json.format(msgspec.json.encode(self.to_json()), indent=2) + b"\n")
        except OSError as error:
            raise KschedError(f"{path}: the report cannot be written: {error.strerror}") from error

    def show(self, console: Console) -> None:
        """Print the summary: figures, utilisation, who is pending and why, and what is wrong if anything is."""
        console.print(self._figures())
        if self.utilization:
            console.print(self._utilization())
        self._show_pending(console)
        for fault in self.faults():
            console.print(Text(f"FAILED: {fault}", style="bold red"))

    def _figures(self) -> Table:
        table = Table(title="Summary", show_header=False, title_justify="left")
        table.add_column(style="bold")
        table.add_column(justify="right")
        table.add_column(style="dim")
        latency = self.timeline["latency_seconds"] or {}
        rates = (self.timeline["pods_per_second"], self.binds_per_second)
        accepted, bound = ("-" if rate is None else f"{rate:,.0f}" for rate in rates)
        cost = 1000 * self.scheduler.cpu_seconds / self.bound if self.bound else None
        share = 100 * self.bound / self.pods if self.pods else 0.0
        table.add_row("pods", f"{self.pods:,}", "created over HTTP")
        table.add_row("bound", f"{self.bound:,}", f"{share:.1f} %")
        table.add_row("unschedulable", f"{len(self.pending):,}", "pending, and told why")
        table.add_row("pods per second", accepted, "first create to last bind, server's clock")
        table.add_row("binds per second", bound, "first bind to last bind")
        table.add_row("latency p50", _seconds(latency.get("p50")), "create to bind, server's clock")
        table.add_row("latency p99", _seconds(latency.get("p99")), "")
        table.add_row(
            "scheduler CPU", f"{self.scheduler.cpu_seconds:.2f} s", "" if cost is None else f"{cost:.2f} ms a pod"
        )
        table.add_row("scheduler memory", f"{self.scheduler.peak_rss_bytes / 2**20:,.0f} MiB", "at its peak")
        table.add_row("over-committed nodes", f"{len(self.audit['overcommitted'])}", "audited at the server")
        table.add_row("double binds", f"{len(self.audit['bound_more_than_once'])}", "audited at the server")
        return table

    def _utilization(self) -> Table:
        table = Table(title="Utilisation", title_justify="left")
        resources = sorted(
            {resource for shares in self.utilization.values() for resource in shares}, key=_resource_order
        )
        table.add_column("pool", style="bold")
        for resource in resources:
            table.add_column(resource, justify="right")
        for pool, shares in self.utilization.items():
            table.add_row(pool, *(f"{100 * shares[name]:.0f} %" if name in shares else "" for name in resources))
        return table

    def _show_pending(self, console: Console) -> None:
        if self.cannot_fit is None:
            self._show_reasons(console)
            return
        if self.cannot_fit:
            left = "pending at the end:" if self.pending else "none is pending at the end"
            console.print(f"{_pods(len(self.cannot_fit))} cannot fit by construction; {left}")
        elif self.pending:
            console.print(f"{_pods(len(self.pending))} pending at the end:")
        for pod in self.pending[:SHOWN_PENDING]:
            _print(console, f"  {pod.key} ({self.cannot_fit.get(pod.key, 'should fit')})")
            _print(console, f"      {pod.message or 'no reason given'}")
        if len(self.pending) > SHOWN_PENDING:
            console.print(f"  ... and {len(self.pending) - SHOWN_PENDING} more")

    def _show_reasons(self, console: Console) -> None:
        """Pending pods by what they were told, the most frequent first."""
        reasons = Counter(pod.message or "no reason given" for pod in self.pending)
        share = 100 * self.bound / self.pods if self.pods else 0.0
        console.print(
            f"{share:.1f} % of the pods are bound; {len(self.pending)} are pending, for {len(reasons)} reasons:"
        )
        for message, count in reasons.most_common(SHOWN_PENDING):
            _print(console, f"  {count:5} x {message}")
        if len(reasons) > SHOWN_PENDING:
            console.print(f"  ... and {len(reasons) - SHOWN_PENDING} other reasons")


def _pods(count: int) -> str:
    return "1 pod" if count == 1 else f"{count:,} pods"


def _print(console: Console, text: str) -> None:
    """A line that may hold brackets and is not broken."""
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def _seconds(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{1000 * value:.1f} ms" if value < 1 else f"{value:.2f} s"


def _resource_order(resource: str) -> tuple[int, str]:
    usual = ("cpu", "memory", "ephemeral-storage", "pods")
    return (usual.index(resource) if resource in usual else len(usual), resource)
