"""One run of a workload: server, scheduler, operations one after the other, figures, and everything ended again."""

from __future__ import annotations

import asyncio
import gc
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.errors import RunFailed
from benchmarks.processes import ChildProcess
from benchmarks.scheduler_perf import changing, collecting, creating, schedulers, waiting
from benchmarks.scheduler_perf.cases import Workload
from benchmarks.scheduler_perf.loader import WORKERS, Api
from benchmarks.scheduler_perf.null import READY
from benchmarks.scheduler_perf.objects import Templates
from benchmarks.scheduler_perf.observation import Observer, SandboxObserver, WatchObserver
from benchmarks.scheduler_perf.operations import (
    AllocResourceClaims,
    Barrier,
    Churn,
    CreateAny,
    CreateNamespaces,
    CreateNodes,
    CreatePods,
    CreateResourceClaims,
    CreateResourceDriver,
    DeletePods,
    Operation,
    Sleep,
    StartCollectingMetrics,
    StopCollectingMetrics,
    UpdateAny,
)
from benchmarks.scheduler_perf.schedulers import SchedulerChoice
from benchmarks.scheduler_perf.server import Server, ServerChoice
from benchmarks.scheduler_perf.world import Meters, Progress, World
from ksched.api.client import Client

Json = dict[str, Any]
Performed = Callable[[World, Any, int], Awaitable[None]]

READY_SECONDS = 60.0
"""How long a scheduler may take to be ready."""

GONE_SECONDS = 120.0
"""How long a real cluster may take to empty the namespaces of a run."""

PROBE_NAMESPACE = "scheduler-perf-probe"

PERFORM: Mapping[type[Operation], Performed] = {
    CreateNodes: creating.create_nodes,
    CreateNamespaces: creating.create_namespaces,
    CreatePods: creating.create_pods,
    DeletePods: changing.delete_pods,
    Churn: changing.churn,
    Barrier: waiting.barrier,
    Sleep: waiting.sleep,
    StartCollectingMetrics: collecting.start_collecting,
    StopCollectingMetrics: collecting.stop_collecting,
    CreateAny: creating.create_any,
    UpdateAny: changing.update_any,
    CreateResourceClaims: creating.create_resource_claims,
    CreateResourceDriver: changing.create_resource_driver,
    AllocResourceClaims: changing.alloc_resource_claims,
}
"""What carries out each operation. Pod sets are not among them: `cases` unrolls them."""


@dataclass(frozen=True)
class RunPlan:
    """How workloads are run."""

    scheduler: SchedulerChoice
    server: ServerChoice
    timeout_seconds: float = 600.0
    """How long one operation may wait for pods, as in scheduler_perf."""
    keep_logs: Path | None = None
    """Where schedulers' logs are kept; nowhere if not given."""


async def run(workload: Workload, plan: RunPlan, gates: Mapping[str, bool], progress: Progress) -> Json:
    """Run a workload once and return its figures. Raises RunFailed, or another KschedError that says what is wrong."""
    with tempfile.TemporaryDirectory(prefix="scheduler-perf-") as temporary, Server(plan.server) as server:
        directory = Path(temporary)
        scheduler = schedulers.start(plan.scheduler, workload, gates, server.kubeconfig, directory)
        try:
            client = await Client.from_kubeconfig(
                str(server.kubeconfig), connections=WORKERS, user_agent="ksched-scheduler-perf"
            )
            try:
                return await _run(workload, plan, Api(client), server, scheduler, progress)
            finally:
                await client.close()
        finally:
            code = scheduler.stop()
            if plan.keep_logs is not None:
                _keep_log(scheduler, plan, workload, code)


async def _run(
    workload: Workload, plan: RunPlan, api: Api, server: Server, scheduler: ChildProcess, progress: Progress
) -> Json:
    sandbox = plan.server.is_sandbox
    observer: Observer = SandboxObserver(api) if sandbox else WatchObserver(api)
    meters = Meters((scheduler.pid,), server.pids)
    world = World(
        workload, Templates(workload), api, observer, meters, scheduler, progress, plan.timeout_seconds, sandbox
    )
    await observer.start()
    sampling = asyncio.create_task(meters.keep_sampling())
    try:
        progress.operation(0, len(workload.operations), "waiting for the scheduler")
        await _until_ready(world, plan.scheduler.kind)
        with _settled_garbage():
            for index, operation in enumerate(workload.operations):
                progress.operation(index + 1, len(workload.operations), operation.opcode)
                await PERFORM[type(operation)](world, operation, index)
        await world.end_background()
        world.check()
        progress.operation(len(workload.operations), len(workload.operations), "counting events")
        writes_events = plan.scheduler.kind != "null" or plan.scheduler.null_events
        await collecting.count_events(world, expected=writes_events)
        meters.sample()
        return {
            "clock": observer.clock,
            "collections": [collecting.figures(each, meters) for each in world.collected],
            "audit": await api.get("/sandbox/audit") if sandbox else None,
        }
    finally:
        sampling.cancel()
        await asyncio.gather(sampling, return_exceptions=True)
        await world.end_background()
        await observer.stop()
        if not sandbox:
            await clean_up(world)


async def _until_ready(world: World, kind: str) -> None:
    """Return when the scheduler works: the null scheduler says so; others have told a probe why it finds no node.

    No node exists yet in a sandbox; in a cluster the probe asks for a label that no node has.
    """
    end = time.monotonic() + READY_SECONDS
    if kind == "null":
        while READY.encode() not in world.scheduler.log.read_bytes():
            _require_in_time(world, end)
            await asyncio.sleep(0.05)
        return
    await world.namespace(PROBE_NAMESPACE)
    path = f"/api/v1/namespaces/{PROBE_NAMESPACE}/pods"
    container = {"name": "pause", "image": "registry.k8s.io/pause:3.10.1"}
    probe = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "probe"},
        "spec": {"containers": [container], "nodeSelector": {"scheduler-perf.example.com/probe": "none"}},
    }
    await world.api.write("POST", path, probe)
    while True:
        pod = await world.api.get(f"{path}/probe")
        conditions = (pod.get("status") or {}).get("conditions") or ()
        if any(each["type"] == "PodScheduled" for each in conditions):
            break
        _require_in_time(world, end)
        await asyncio.sleep(0.1)
    await world.api.write("DELETE", f"{path}/probe", {"gracePeriodSeconds": 0})


def _require_in_time(world: World, end: float) -> None:
    world.check()
    if time.monotonic() > end:
        raise RunFailed(f"the scheduler was not ready within {READY_SECONDS:g} s:\n{world.scheduler.last_lines()}")


@contextmanager
def _settled_garbage() -> Iterator[None]:
    """The loader's own objects live as long as a run: collections in between would only slow it down."""
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


async def clean_up(world: World) -> None:
    """Delete what a run created in a real cluster: pods at once, then namespaces, nodes and the rest."""
    for namespace in world.namespaces:
        await world.api.write("DELETE", f"/api/v1/namespaces/{namespace}/pods", {"gracePeriodSeconds": 0})
    await world.api.delete_each([f"/api/v1/namespaces/{name}" for name in world.namespaces])
    await world.api.delete_each(world.other_objects)
    await _until_gone(world)


async def _until_gone(world: World) -> None:
    """Wait for the namespaces' end, but not for ever: the next run's server says it if one is still terminating."""
    end = time.monotonic() + GONE_SECONDS
    left = list(world.namespaces)
    while left and time.monotonic() < end:
        there = {each["metadata"]["name"] for each in await world.api.pages("/api/v1/namespaces")}
        left = [name for name in left if name in there]
        world.progress.done("namespaces deleted", len(world.namespaces) - len(left), len(world.namespaces))
        if left:
            await asyncio.sleep(1.0)


def _keep_log(process: ChildProcess, plan: RunPlan, workload: Workload, code: int) -> None:
    assert plan.keep_logs is not None
    plan.keep_logs.mkdir(parents=True, exist_ok=True)
    name = f"{plan.scheduler.name}-{workload.full_name}-{time.time():.0f}.log".replace("/", "_")
    text = process.log.read_text(errors="replace")
    (plan.keep_logs / name).write_text(f"{text}\n(exit code {code})\n")
