"""What can be wrong with a benchmark, as one tree below ksched's own.

KschedError
└── BenchmarkError
    ├── WorkloadError   a workload file, or what was asked of it, makes no sense
    └── RunFailed       a workload was started and did not come to its end
"""

from __future__ import annotations

from ksched.errors import KschedError


class BenchmarkError(KschedError):
    """A benchmark cannot say anything."""


class WorkloadError(BenchmarkError):
    """A workload file, or a choice on the command line, makes no sense; the message starts with where."""


class RunFailed(BenchmarkError):
    """A workload was started and did not come to its end: a request was refused, a process died, or time ran out."""
