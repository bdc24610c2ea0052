"""Which workloads are run: label filters as scheduler_perf has them, and exact names."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence

from benchmarks.errors import WorkloadError
from benchmarks.scheduler_perf.cases import Workload

DEFAULT_FILTER = "performance"
"""scheduler_perf's own for benchmarks."""


def by_labels(workloads: Sequence[Workload], label_filter: str) -> list[Workload]:
    """The workloads whose labels the filter accepts.

    A filter is a list with commas: `x` or `+x` must be there, `-x` must not; an empty one accepts everything.
    """
    return [workload for workload in workloads if accepts(label_filter, workload.labels)]


def accepts(label_filter: str, labels: Collection[str]) -> bool:
    """Whether a filter accepts a set of labels."""
    terms = filter(None, label_filter.split(","))
    return all((term.lstrip("+-") in labels) != term.startswith("-") for term in terms)


def by_name(workloads: Sequence[Workload], names: Sequence[str]) -> list[Workload]:
    """The workloads with exactly these names, in the order of `names`.

    A name is CASE/WORKLOAD, or TOPIC/CASE/WORKLOAD where that is needed to tell two apart. Raises WorkloadError for a
    name that no workload has, and for one that several have.
    """
    chosen = []
    for name in names:
        found = [each for each in workloads if name in (each.full_name, f"{each.topic}/{each.full_name}")]
        if not found:
            known = [each.full_name for each in workloads]
            near = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
            raise WorkloadError(
                f"--select {name}: no such workload among {len(known)}" + (f"; near: {', '.join(near)}" if near else "")
            )
        if len(found) > 1:
            topics = ", ".join(f"{each.topic}/{each.full_name}" for each in found)
            raise WorkloadError(f"--select {name}: there are several: {topics}")
        chosen.append(found[0])
    return chosen
