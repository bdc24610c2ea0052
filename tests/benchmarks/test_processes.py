"""What processes use, and children that are started and stopped."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from benchmarks.errors import RunFailed
from benchmarks.processes import ChildProcess, Series, Usage, usage_of

BUSY = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass\ntime.sleep(60)"
IN_A_CHILD = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {BUSY!r}])"


@pytest.mark.parametrize("program", [pytest.param(BUSY, id="itself"), pytest.param(IN_A_CHILD, id="in a child")])
def test_cpu_time_and_memory_of_a_process_are_seen(tmp_path: Path, program: str) -> None:
    child = ChildProcess([sys.executable, "-c", program], tmp_path / "log")
    try:
        end = time.monotonic() + 20
        while usage_of([child.pid]).cpu_seconds < 0.25:
            assert time.monotonic() < end
            time.sleep(0.02)
        found = usage_of([child.pid])
        assert found.peak_rss_bytes >= found.rss_bytes > 1_000_000
    finally:
        child.stop()
    assert usage_of([child.pid]) == Usage(0.0, 0, 0)
    end = time.monotonic() + 20
    while running_in_session(child.pid):
        assert time.monotonic() < end, "it left a child behind"
        time.sleep(0.02)


def running_in_session(leader: int) -> list[int]:
    """The processes of a session that have not ended; nobody may have taken note yet of those that have."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, session, *_ = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(session) == leader and state != "Z":
            found.append(int(stat.parent.name))
    return found


def test_a_loader_does_not_count_its_children(tmp_path: Path) -> None:
    child = ChildProcess([sys.executable, "-c", "import time; time.sleep(60)"], tmp_path / "log")
    try:
        both = usage_of([os.getpid()])
        alone = usage_of([os.getpid()], with_children=False)
        assert alone.rss_bytes < both.rss_bytes
    finally:
        child.stop()


def test_a_child_that_ended_is_told_with_its_last_words(tmp_path: Path) -> None:
    child = ChildProcess([sys.executable, "-c", "print('no kubeconfig'); raise SystemExit(3)"], tmp_path / "log")
    while child.exit_code is None:
        time.sleep(0.01)
    with pytest.raises(RunFailed, match="the scheduler ended with code 3:\nno kubeconfig"):
        child.require_alive("the scheduler")


def test_a_command_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match="/nowhere/scheduler: cannot be started: No such file"):
        ChildProcess(["/nowhere/scheduler"], tmp_path / "log")


@pytest.mark.parametrize(
    ("moment", "seconds"),
    [
        pytest.param(0.0, 1.0, id="before the first sample it is the first"),
        pytest.param(10.0, 1.0, id="at a sample it is the sample"),
        pytest.param(15.0, 2.0, id="between two it lies between them"),
        pytest.param(40.0, 3.0, id="after the last it is the last"),
    ],
)
def test_cpu_time_at_a_moment(moment: float, seconds: float) -> None:
    series = Series((), times=[10.0, 20.0], samples=[Usage(1.0, 5, 5), Usage(3.0, 7, 7)])
    assert series.cpu_at(moment) == seconds


def test_samples_between_two_moments() -> None:
    series = Series((), times=[10.0, 20.0], samples=[Usage(1.0, 5, 5), Usage(3.0, 7, 7)])
    assert [sample.rss_bytes for sample in series.between(15.0, 25.0)] == [7]
