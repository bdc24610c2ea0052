"""Child processes: their cost, their end, and that none is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ksched.cli.processes import KschedProcess, usage_of
from tests.cli.conftest import ROOT


def until(condition: object, seconds: float = 20.0) -> None:
    """Wait for a callable to be true; fail when it is not in time."""
    assert callable(condition)
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


@pytest.fixture
def child(tmp_path: Path) -> Iterator[KschedProcess]:
    """A sandbox that is listening."""
    process = KschedProcess(["sandbox", "--kubeconfig-out", str(tmp_path / "kubeconfig")], tmp_path / "log")
    until(lambda: "listening" in process.last_lines() or process.exit_code is not None)
    yield process
    process.kill()


def test_a_child_is_stopped_cleanly_and_its_cost_is_kept(child: KschedProcess) -> None:
    assert child.exit_code is None
    assert child.stop() == 0
    usage = child.usage()
    assert usage.cpu_seconds > 0.01
    assert 10 * 2**20 < usage.peak_rss_bytes < 2**31
    assert child.stop() == 0


def test_a_killed_child_leaves_its_log(child: KschedProcess) -> None:
    child.kill()
    assert child.exit_code == -signal.SIGKILL
    assert child.last_lines(1).startswith("sandbox listening on http://127.0.0.1:")


def test_a_child_that_fails_says_why(tmp_path: Path) -> None:
    child = KschedProcess(["run", "--no-such-flag"], tmp_path / "log")
    until(lambda: child.exit_code is not None)
    assert child.exit_code == 2
    assert "No such option '--no-such-flag'" in child.last_lines()


def test_a_child_ends_with_its_parent(tmp_path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; from ksched.cli.processes import KschedProcess\n"
        "flags = ['--kubeconfig-out', sys.argv[1] + '/kubeconfig']\n"
        "child = KschedProcess(['sandbox', *flags], Path(sys.argv[1], 'log'))\n"
        "while 'listening' not in child.last_lines(): time.sleep(0.02)\n"
        "print(child.pid, flush=True); time.sleep(60)\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    assert usage_of(pid) is not None
    parent.kill()
    parent.communicate()
    until(lambda: not running(pid))


def running(pid: int) -> bool:
    """Whether a process exists and is not merely waiting to be collected."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def test_the_usage_of_nobody() -> None:
    assert usage_of(2**22 + 1) is None
