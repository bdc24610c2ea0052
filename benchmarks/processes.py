"""Child processes of a benchmark, and what processes use: CPU time and memory, read from /proc.

CPU time counts in hundredths of a second, which is a thousandth of the shortest window that counts as a result. A
process is counted with everything below it, so that a scheduler started through a script is not missed.
"""

from __future__ import annotations

import bisect
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from benchmarks.errors import RunFailed

STOP_SECONDS = 20.0
"""How long a child may take for its clean stop before it is killed."""

_PR_SET_PDEATHSIG = 1
_TICK_SECONDS = 1.0 / os.sysconf("SC_CLK_TCK")


class Usage(NamedTuple):
    """What a process and its descendants have used up to a moment."""

    cpu_seconds: float
    rss_bytes: int
    peak_rss_bytes: int


def usage_of(pids: Sequence[int], *, with_children: bool = True) -> Usage:
    """What the processes `pids` and their descendants have used; those that are gone count nothing."""
    cpu = 0.0
    rss = peak = 0
    for pid in _family(pids) if with_children else pids:
        try:
            stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
            status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            continue
        # The second field is the name in brackets, which may hold anything. Fields 14 and 15 are user and system ticks.
        fields = stat.rpartition(")")[2].split()
        cpu += (int(fields[11]) + int(fields[12])) * _TICK_SECONDS
        for line in status.splitlines():
            if line.startswith("VmHWM:"):
                peak += int(line.split()[1]) * 1024
            elif line.startswith("VmRSS:"):
                rss += int(line.split()[1]) * 1024
    return Usage(cpu, rss, peak)


def _family(pids: Sequence[int]) -> list[int]:
    """The processes and all that they started, directly or not."""
    found: list[int] = []
    ahead = list(pids)
    while ahead:
        pid = ahead.pop()
        if pid in found:
            continue
        found.append(pid)
        try:
            for children in Path(f"/proc/{pid}/task").glob("*/children"):
                ahead += map(int, children.read_text(encoding="ascii").split())
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


class ChildProcess:
    """A command as a child that ends when this process does. Its output goes to the file `log`."""

    def __init__(self, command: Sequence[str], log: Path, *, environ: Mapping[str, str] | None = None) -> None:
        self.command = tuple(command)
        self.log = log
        try:
            with log.open("wb") as output:
                self._process = subprocess.Popen(
                    self.command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env={**os.environ, **(environ or {})},
                    start_new_session=True,
                    preexec_fn=_end_with_parent,
                )
        except OSError as error:
            raise RunFailed(f"{self.command[0]}: cannot be started: {error.strerror}") from error

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._process.poll()

    def last_lines(self, count: int = 8) -> str:
        """The end of what it wrote."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-count:])

    def require_alive(self, what: str) -> None:
        """Raise RunFailed with its last words if it has ended."""
        if self.exit_code is not None:
            raise RunFailed(f"{what} ended with code {self.exit_code}:\n{self.last_lines()}")

    def stop(self) -> int:
        """Ask for a clean stop, wait, and return the exit code; what does not stop in time is killed.

        So is what it started and left behind.
        """
        if self._process.poll() is None:
            self._process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(STOP_SECONDS)
            with suppress(ProcessLookupError):  # nothing is left
                os.killpg(self._process.pid, signal.SIGKILL)
        return self._process.wait()


def _end_with_parent() -> None:
    """Runs in the child, before the command: the kernel is to end it when the parent ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def python_command(module: str, *arguments: str) -> list[str]:
    """A command line that runs a module of this project."""
    return [sys.executable, "-m", module, *arguments]


def project_environ() -> dict[str, str]:
    """What a child needs to find this project's packages."""
    root = str(Path(__file__).resolve().parent.parent)
    return {"PYTHONPATH": os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))}


# -- usage over time


@dataclass
class Series:
    """Usage of some processes at rising moments (Unix time, in seconds)."""

    pids: tuple[int, ...]
    with_children: bool = True
    times: list[float] = field(default_factory=list)
    samples: list[Usage] = field(default_factory=list)

    def sample(self, now: float | None = None) -> None:
        """Look once."""
        self.times.append(time.time() if now is None else now)
        self.samples.append(usage_of(self.pids, with_children=self.with_children))

    def cpu_at(self, moment: float) -> float:
        """CPU seconds up to a moment, on the straight line between the samples around it."""
        if not self.times:
            return 0.0
        right = bisect.bisect_left(self.times, moment)
        if right == 0:
            return self.samples[0].cpu_seconds
        if right == len(self.times):
            return self.samples[-1].cpu_seconds
        before, after = self.times[right - 1], self.times[right]
        share = (moment - before) / (after - before) if after > before else 1.0
        low, high = self.samples[right - 1].cpu_seconds, self.samples[right].cpu_seconds
        return low + share * (high - low)

    def between(self, start: float, end: float) -> list[Usage]:
        """The samples of a span of time."""
        return [sample for moment, sample in zip(self.times, self.samples, strict=True) if start <= moment <= end]
