"""A sandbox as a child process, for the demo, tests and benchmarks: started, waited for, stopped, killed, restarted."""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import ksched
from ksched.errors import SandboxError
from ksched.sandbox.server import SandboxOptions

_READY = re.compile(rb"sandbox listening on (?P<url>\S+), kubeconfig (?P<kubeconfig>.+)")
_STOP_SECONDS = 15.0


class SandboxProcess:
    """A sandbox in a process of its own, as a context manager.

    `command` is what starts it, without options; the options are added as `ksched sandbox` takes them. The port that
    the first start found is kept for restarts, so clients find the server where it was.
    """

    def __init__(
        self,
        options: SandboxOptions | None = None,
        *,
        command: Sequence[str] = (sys.executable, "-m", "ksched", "sandbox"),
        start_seconds: float = 30.0,
    ) -> None:
        self.options = options or SandboxOptions()
        self.url = ""
        self._command = tuple(command)
        self._start_seconds = start_seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._directory = tempfile.TemporaryDirectory(prefix="ksched-sandbox-")
        chosen = self.options.kubeconfig_out
        self.kubeconfig = Path(chosen) if chosen else Path(self._directory.name) / "kubeconfig"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()
        self._directory.cleanup()

    @property
    def pid(self) -> int:
        """The child's process id."""
        if self._process is None:
            raise SandboxError("the sandbox is not running")
        return self._process.pid

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self.url.rpartition(":")[2])

    def start(self) -> None:
        """Start the child and wait until it answers; `SandboxError` when it ends or says nothing in time."""
        if self._process is not None:
            raise SandboxError("the sandbox is running already")
        root = str(Path(ksched.__file__).parent.parent)
        path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
        self._process = subprocess.Popen(
            [*self._command, *self._arguments()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
        )
        try:
            found = self._ready_line(self._process)
        except SandboxError:
            self.kill()
            raise
        self.url = found["url"].decode()

    def stop(self) -> None:
        """Ask the child to stop, and wait for it; it is killed if it does not."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise SandboxError(f"the sandbox did not stop within {_STOP_SECONDS:g} s and was killed") from None
        finally:
            _close(process)

    def kill(self) -> None:
        """End the child at once, as a crash would."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            _close(process)

    def restart(self, *, crash: bool = False) -> None:
        """Stop (or kill) the child and start it again on the same port. With a `data_dir` it knows what it knew."""
        if crash:
            self.kill()
        else:
            self.stop()
        self.start()

    def _arguments(self) -> list[str]:
        options = self.options
        port = self.port if self.url else options.port
        arguments = ["--host", options.host, "--port", str(port), "--kubeconfig-out", str(self.kubeconfig)]
        arguments += ["--nodes", str(options.nodes), "--history", str(options.history), "--seed", str(options.seed)]
        arguments += ["--bookmark-seconds", str(options.bookmark_seconds)]
        arguments += ["--parent", str(os.getpid())]  # it ends when this process is killed, too
        arguments += ["--event-seconds", str(options.event_seconds)]
        arguments.append("--agent" if options.agent else "--no-agent")
        arguments.append("--deployments" if options.deployments else "--no-deployments")
        if options.tls:
            arguments.append("--tls")
        if options.data_dir is not None:
            arguments += ["--data-dir", options.data_dir]
        if options.token is not None:
            arguments += ["--token", options.token]
        return arguments

    def _ready_line(self, process: subprocess.Popen[bytes]) -> re.Match[bytes]:
        assert process.stdout is not None
        deadline = time.monotonic() + self._start_seconds
        said = b""
        while (left := deadline - time.monotonic()) > 0:
            if not select.select([process.stdout], [], [], left)[0]:
                break
            piece = os.read(process.stdout.fileno(), 65536)
            said += piece
            if found := _READY.search(said):
                return found
            if not piece:
                code = process.wait()
                raise SandboxError(f"the sandbox ended with code {code} before it was ready: {said.decode().strip()}")
        raise SandboxError(f"the sandbox was not ready within {self._start_seconds:g} s")


def _close(process: subprocess.Popen[bytes]) -> None:
    if process.stdout is not None:
        process.stdout.close()
