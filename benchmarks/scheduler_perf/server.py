"""The API server that a workload runs against: a fresh sandbox for each run, or a cluster that is there.

A sandbox runs without node agent and controllers, as scheduler_perf runs without kubelets, and its process is measured.
A cluster's server is measured only where its process ids are given.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ksched.sandbox.process import SandboxProcess
from ksched.sandbox.server import SandboxOptions

HISTORY = 400_000
"""Changes that a sandbox remembers per kind: more than a run makes, so that no watch is told to start over."""


@dataclass(frozen=True)
class ServerChoice:
    """Which server runs use."""

    kubeconfig: Path | None = None
    """A cluster that is there; None for a sandbox of each run's own."""
    tls: bool = False
    pids: tuple[int, ...] = ()
    """Processes of a cluster's server, if they run here and are to be measured."""

    @property
    def is_sandbox(self) -> bool:
        """Whether each run gets a sandbox."""
        return self.kubeconfig is None

    @property
    def describe(self) -> str:
        """For results."""
        if self.kubeconfig is not None:
            return f"cluster of {self.kubeconfig}"
        return "sandbox, HTTPS" if self.tls else "sandbox, HTTP"


class Server:
    """One run's server, as a context manager."""

    def __init__(self, choice: ServerChoice) -> None:
        self.choice = choice
        self.kubeconfig = choice.kubeconfig or Path()
        self.pids = choice.pids
        self._sandbox: SandboxProcess | None = None

    def __enter__(self) -> Server:
        if self.choice.is_sandbox:
            options = SandboxOptions(tls=self.choice.tls, agent=False, deployments=False, history=HISTORY)
            self._sandbox = SandboxProcess(options)
            self._sandbox.start()
            self.kubeconfig = self._sandbox.kubeconfig
            self.pids = (self._sandbox.pid,)
        return self

    def __exit__(self, *exc: object) -> None:
        if self._sandbox is not None:
            self._sandbox.__exit__(None, None, None)
