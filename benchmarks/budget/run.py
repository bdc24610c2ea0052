"""One measurement: a sandbox and a loader as processes, the scheduler in this one with a stopwatch in its functions."""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.budget.stages import STAGES, Overhead, Stopwatch, overhead
from benchmarks.errors import RunFailed
from benchmarks.processes import ChildProcess, project_environ, python_command
from ksched.api.client import Client
from ksched.config import Configuration, FeatureGates
from ksched.engine.scheduler import Scheduler
from ksched.sandbox.process import SandboxProcess
from ksched.sandbox.server import SandboxOptions

QUIET_SECONDS = 1.0
"""How long the scheduler is given after the last pod to write its events."""


@dataclass(frozen=True)
class StageCost:
    """One line of the table."""

    title: str
    calls_per_pod: float
    us_per_pod: float


@dataclass(frozen=True)
class Budget:
    """The whole table."""

    nodes: int
    pods: int
    tls: bool
    stages: tuple[StageCost, ...]
    rest_us: float
    """What no stage accounts for: event loop, sockets, Python in between."""
    total_us: float
    """CPU time of the thread per pod, the stopwatch's cost taken off."""
    overhead_us: float
    """What was taken off, per pod."""


def measure(nodes: int, pods: int, *, tls: bool = False, timeout_seconds: float = 300.0) -> Budget:
    """Run a scheduler in this process against a sandbox until all pods are bound and confirmed."""
    import uvloop

    options = SandboxOptions(nodes=nodes, tls=tls, agent=False, deployments=False, history=400_000)
    with SandboxProcess(options) as sandbox, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_measure(sandbox, nodes, pods, tls, timeout_seconds))


async def _measure(sandbox: SandboxProcess, nodes: int, pods: int, tls: bool, timeout_seconds: float) -> Budget:
    cost = overhead()
    watch = Stopwatch()
    with watch.installed():
        client = await Client.from_kubeconfig(str(sandbox.kubeconfig))
        gates = FeatureGates()
        scheduler = Scheduler(client, Configuration.default(gates), gates, rng=random.Random(1))
        running = asyncio.create_task(scheduler.run())
        try:
            await asyncio.wait_for(scheduler.synced.wait(), timeout_seconds)
            watch.reset()
            used = await _run_load(sandbox, scheduler, pods, timeout_seconds)
            charged, calls = dict(watch.charged), dict(watch.calls)
            await scheduler.stop()
            await running
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await client.close()
    return budget(nodes, pods, tls, used, charged, calls, cost)


async def _run_load(sandbox: SandboxProcess, scheduler: Scheduler, pods: int, timeout_seconds: float) -> int:
    """Let the loader create the pods, wait until they are bound, and return the thread's CPU time in nanoseconds."""
    with tempfile.TemporaryDirectory(prefix="budget-") as directory:
        command = python_command("benchmarks.budget.load", "--kubeconfig", str(sandbox.kubeconfig), "--pods", str(pods))
        start = time.thread_time_ns()
        loader = ChildProcess(command, Path(directory) / "loader.log", environ=project_environ())
        started = time.thread_time_ns() - start  # starting a process is none of the scheduler's work
        try:
            end = time.monotonic() + timeout_seconds
            cluster = scheduler.cluster
            while cluster.pod_count < pods or cluster.assumed_count:
                if loader.exit_code not in (None, 0):
                    raise RunFailed(f"the loader ended with code {loader.exit_code}:\n{loader.last_lines()}")
                if time.monotonic() > end:
                    raise RunFailed(f"{cluster.pod_count} of {pods} pods were bound within {timeout_seconds:g} s")
                await asyncio.sleep(0.1)
            await asyncio.sleep(QUIET_SECONDS)
        finally:
            loader.stop()
        return time.thread_time_ns() - start - started


def budget(
    nodes: int, pods: int, tls: bool, used: int, charged: dict[str, int], calls: dict[str, int], cost: Overhead
) -> Budget:
    """The table from what the stopwatch says, with its own cost taken off."""
    stages = []
    for stage in STAGES:
        count = calls.get(stage.title, 0)
        own = max(0.0, charged.get(stage.title, 0) - count * cost.charged)
        stages.append(StageCost(stage.title, count / pods, own / pods / 1e3))
    off = sum(calls.values()) * (cost.charged + cost.uncharged)
    total = (used - off) / pods / 1e3
    return Budget(
        nodes, pods, tls, tuple(stages), total - sum(each.us_per_pod for each in stages), total, off / pods / 1e3
    )
