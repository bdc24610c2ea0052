"""The scheduler as people run it: a process, started, stopped by a signal, or killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import ksched


class SchedulerProcess:
    """`ksched run` as a child; its log goes to a file. Ends with the `with` block."""

    def __init__(self, kubeconfig: Path, log: Path, *options: str) -> None:
        self._command = [
            sys.executable,
            "-m",
            "ksched",
            "run",
            "--kubeconfig",
            str(kubeconfig),
            "--seed",
            "1",
            *options,
        ]
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.kill()

    @property
    def log(self) -> str:
        """What it has said so far, earlier runs included."""
        return self._log.read_text(errors="replace")

    def start(self) -> None:
        """Start the process; it finds the server by itself."""
        root = str(Path(ksched.__file__).parent.parent)
        path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._command, "--parent", str(os.getpid())],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONPATH": path},
            )

    def kill(self) -> None:
        """End it as a crash would."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def ask_to_stop(self) -> None:
        """Send SIGTERM."""
        assert self._process is not None, "it does not run"
        self._process.send_signal(signal.SIGTERM)

    def ended(self, seconds: float = 15.0) -> int:
        """Wait for its end; the exit code."""
        process, self._process = self._process, None
        assert process is not None, "it does not run"
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(f"not ended within {seconds:g} s:\n{self.log[-3000:]}") from None

    def wait_for_log(self, text: str, seconds: float = 15.0) -> None:
        """Wait until it has said something."""
        end = time.monotonic() + seconds
        while text not in self.log:
            assert self._process is not None, "it does not run"
            assert self._process.poll() is None, f"it ended:\n{self.log[-3000:]}"
            assert time.monotonic() < end, f"it never said {text!r}:\n{self.log[-3000:]}"
            time.sleep(0.02)
