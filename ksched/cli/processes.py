"""Child processes that never outlive their parent, and what they cost.

A child has a session of its own, so that Ctrl-C reaches the parent alone, which then stops its children in
order. Should the parent be killed, the kernel tells the child (`end_with_parent`).
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import ksched
from ksched.errors import KschedError

STOP_SECONDS = 15.0
"""How long a child may take for its clean stop."""

_PR_SET_PDEATHSIG = 1


def end_with_parent(parent: int) -> None:
    """From now on this process gets SIGTERM when `parent`, which started it, ends; exit if that is so already."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM) != 0:
        raise KschedError(f"cannot be bound to process {parent}: {os.strerror(ctypes.get_errno())}")
    if os.getppid() != parent:
        sys.exit(1)


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process has used since it started."""

    cpu_seconds: float
    peak_rss_bytes: int


class KschedProcess:
    """`ksched ARGUMENTS` as a child process, whose output goes to the file `log`."""

    def __init__(self, arguments: Sequence[str], log: Path) -> None:
        self.arguments = tuple(arguments)
        self.log = log
        root = str(Path(ksched.__file__).parent.parent)
        path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "ksched", *arguments, "--parent", str(os.getpid())],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONPATH": path},
                start_new_session=True,
            )
        self._usage = Usage(0.0, 0)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._process.poll()

    def last_lines(self, count: int = 5) -> str:
        """The end of what it wrote."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-count:])

    def usage(self) -> Usage:
        """CPU time and peak memory up to now, or up to the last time that it was asked while the process lived."""
        if self.exit_code is None:
            self._usage = usage_of(self.pid) or self._usage
        return self._usage

    def stop(self) -> int:
        """Ask for a clean stop, wait for it, and return the exit code; a child that does not stop in time is killed."""
        self.usage()
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
        return self._process.wait()

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self._process.kill()
        self._process.wait()


def usage_of(pid: int) -> Usage | None:
    """What process `pid` has used so far, from /proc; None if there is no such process any more."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field is the name in brackets, which may hold anything; fields 14 and 15 are user and system ticks.
    fields = stat.rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    peak = next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")), 0)
    return Usage(ticks / os.sysconf("SC_CLK_TCK"), peak * 1024)
