"""The command line as people use it: in a process for what a process does, in this one for what is said."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ksched.cli import cli

ROOT = Path(__file__).parents[2]

Typed = Callable[..., Result]
Started = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def typed() -> Iterator[Typed]:
    """`typed("run", "--config", ...)`: what a command that ends at once answers."""
    root, ours = logging.getLogger(), logging.getLogger("ksched")
    handlers, level, our_level = root.handlers[:], root.level, ours.level
    yield lambda *words: CliRunner().invoke(cli, [str(word) for word in words], prog_name="ksched")
    logging.captureWarnings(capture=False)
    root.handlers[:] = handlers
    root.setLevel(level)
    ours.setLevel(our_level)


@pytest.fixture
def started() -> Iterator[Started]:
    """`started("sandbox", ...)`: a command as a process that is gone when the test ends."""
    processes: list[subprocess.Popen[str]] = []

    def start(*words: object, **environment: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "ksched", *map(str, words)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **environment},
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate()
