"""Commands that run in this process: stopped by signals, which mean afterwards what they meant before."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from ksched.cli.serving import SIGNALS, Stop, run_until_stopped
from ksched.errors import KschedError
from tests.cli.conftest import Typed


@pytest.fixture(autouse=True)
def _unchanged_handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    assert {number: signal.getsignal(number) for number in SIGNALS} == before


@pytest.mark.parametrize(
    ("number", "code"),
    [pytest.param(signal.SIGINT, 130, id="Ctrl-C"), pytest.param(signal.SIGTERM, 143, id="SIGTERM")],
)
def test_a_signal_sets_the_event_and_is_told(number: signal.Signals, code: int) -> None:
    async def work(stop: Stop) -> int:
        os.kill(os.getpid(), number)
        async with asyncio.timeout(10):
            await stop.wait()
        return stop.exit_code

    assert run_until_stopped(work) == code


def test_handlers_are_put_back_after_a_failure() -> None:
    async def work(stop: Stop) -> int:
        raise KschedError("no kubeconfig")

    with pytest.raises(KschedError, match="no kubeconfig"):
        run_until_stopped(work)


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["run", "--kubeconfig", "{}/none/kubeconfig"], id="run"),
        pytest.param(["sandbox", "--kubeconfig-out", "/dev/null/kubeconfig"], id="sandbox"),
    ],
)
def test_commands_put_handlers_back(typed: Typed, tmp_path: Path, words: list[str]) -> None:
    assert typed(*[word.replace("{}", str(tmp_path)) for word in words]).exit_code == 1
