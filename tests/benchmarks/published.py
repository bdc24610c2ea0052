"""scheduler_perf's own files, if they are here: they are read where they lie and are no part of the project."""

from __future__ import annotations

from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent.parent
PUBLISHED = PROJECT.parent / "shared" / "scheduler_perf"
OWN = PROJECT / "benchmarks" / "workloads"


def published() -> Path:
    """The folder; skips the test where there is none."""
    if not PUBLISHED.is_dir():
        pytest.skip("scheduler_perf's workload files are not at ../shared/scheduler_perf")
    return PUBLISHED
