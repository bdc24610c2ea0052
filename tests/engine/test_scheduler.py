"""The scheduler on a sandbox in the same loop: turns, limits, faults, start and stop."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ksched.api.client import Client
from ksched.cache.shapes import PodInfo
from ksched.config.gates import FeatureGates
from ksched.config.types import Configuration
from ksched.engine import scheduler as scheduler_module
from ksched.engine.scheduler import Scheduler
from ksched.sandbox.server import Sandbox, SandboxOptions
from ksched.testing import node, pod
from tests.engine.world import World, on_a_loop

PODS = "/api/v1/namespaces/default/pods"


class Here:
    """A sandbox, a client and a scheduler."""

    def __init__(self, sandbox: Sandbox, client: Client, scheduler: Scheduler) -> None:
        self.sandbox = sandbox
        self.client = client
        self.scheduler = scheduler

    async def add_node(self, name: str, **amounts: str) -> None:
        await self.client.json("POST", "/api/v1/nodes", body=node(name).capacity(**amounts).to_dict())

    async def add_pods(self, names: list[str], **requests: str) -> None:
        for name in names:
            made = pod(name).request(**requests).to_dict()
            del made["metadata"]["uid"]
            made["spec"]["containers"][0]["image"] = "nothing:1"
            await self.client.json("POST", PODS, body=made)

    async def placed(self) -> dict[str, str]:
        listed = await self.client.json("GET", PODS)
        found = {item["metadata"]["name"]: item["spec"].get("nodeName", "") for item in listed["items"]}
        return {name: where for name, where in found.items() if where}

    async def misbehave(self, **orders: Any) -> None:
        await self.client.json("POST", "/sandbox/faults", body=orders)


@asynccontextmanager
async def scheduling(
    *, synced: bool = True, before: Callable[[Here], Awaitable[None]] | None = None
) -> AsyncIterator[Here]:
    """A scheduler that runs; `before` is done before it starts."""
    sandbox = Sandbox(SandboxOptions(agent=False, deployments=False))
    await sandbox.start()
    client = await Client.from_kubeconfig(str(sandbox.kubeconfig))
    gates = FeatureGates()
    scheduler = Scheduler(client, Configuration.default(gates), gates, rng=random.Random(1), max_nodes=256)
    here = Here(sandbox, client, scheduler)
    if before is not None:
        await before(here)
    running = asyncio.ensure_future(scheduler.run())
    try:
        if synced:
            await asyncio.wait_for(scheduler.synced.wait(), 10)
        yield here
        await scheduler.stop(2.0)
        await running
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await client.close()
        await sandbox.stop()


async def until(says: Callable[[], Awaitable[object]], seconds: float = 10.0) -> None:
    async with asyncio.timeout(seconds):
        while not await says():  # noqa: ASYNC110 - a server is asked, which cannot set an event
            await asyncio.sleep(0.01)


def test_pods_are_bound_counted_and_confirmed() -> None:
    @on_a_loop
    async def _() -> None:
        async with scheduling() as here:
            await here.add_node("only", cpu="4", memory="8Gi", pods="10")
            await here.add_pods([f"pod-{number}" for number in range(10)], cpu="100m")

            async def confirmed() -> bool:
                cluster = here.scheduler.cluster
                return cluster.pod_count == 10 and not cluster.assumed_count

            await until(confirmed)
            assert len(await here.placed()) == 10
            snapshot = here.scheduler.metrics.snapshot()
            assert snapshot["attempts"]["scheduled"] == 10
            assert snapshot["cache"] == {"nodes": 1, "pods": 10, "assumed_pods": 0}
            assert sum(snapshot["pending"].values()) == 0


def test_no_more_pods_are_placed_than_can_wait_for_their_binding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler_module, "MOST_BINDINGS", 3)

    @on_a_loop
    async def _() -> None:
        async with scheduling() as here:
            await here.misbehave(rules=[{"verbs": ["bind"], "latency_seconds": 0.02}])
            most = 0
            await here.add_pods([f"pod-{number}" for number in range(20)], cpu="100m")
            await here.add_node("only", cpu="4", memory="8Gi", pods="30")

            async def all_bound() -> bool:
                nonlocal most
                most = max(most, here.scheduler.metrics.binds_in_flight())
                return len(await here.placed()) == 20

            await until(all_bound)
            assert 0 < most <= 3


def test_a_fault_in_one_pods_cycle_does_not_keep_others_from_their_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    @on_a_loop
    async def _() -> None:
        async with scheduling() as here:
            cycle = here.scheduler._pipeline.cycle
            schedule = cycle.schedule

            def faulty(profile: Any, info: PodInfo, nominated: Any) -> Any:
                if info.name == "cursed":
                    raise ZeroDivisionError("a bug")
                return schedule(profile, info, nominated)

            monkeypatch.setattr(cycle, "schedule", faulty)
            await here.add_node("only", cpu="4", memory="8Gi", pods="10")
            await here.add_pods(["cursed", "blessed"], cpu="100m")

            async def told() -> bool:
                cursed = await here.client.json("GET", f"{PODS}/cursed")
                conditions = cursed["status"].get("conditions") or []
                return any("a bug" in each["message"] and each["reason"] == "SchedulerError" for each in conditions)

            await until(told)
            assert await here.placed() == {"blessed": "only"}
            assert here.scheduler.queue.get("default/cursed") is not None


def test_a_turn_ends_when_its_time_is_over_and_the_next_one_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    pods_in_turn: list[int] = []
    now = 0.0

    async def before(here: Here) -> None:
        await here.add_node("only", cpu="4", memory="8Gi", pods="400")
        await here.add_pods([f"pod-{number}" for number in range(50)], cpu="1m")
        schedule, turn = here.scheduler._pipeline.cycle.schedule, here.scheduler._turn

        def slow(*arguments: Any) -> Any:
            nonlocal now
            now += scheduler_module.TURN_SECONDS / 3
            pods_in_turn[-1] += 1
            return schedule(*arguments)

        def counted() -> None:
            pods_in_turn.append(0)
            turn()

        monkeypatch.setattr(here.scheduler, "_timer", lambda: now)
        monkeypatch.setattr(here.scheduler, "_turn", counted)
        monkeypatch.setattr(here.scheduler._pipeline.cycle, "schedule", slow)

    @on_a_loop
    async def _() -> None:
        async with scheduling(before=before) as here:

            async def all_bound() -> bool:
                return here.scheduler.cluster.pod_count == 50

            await until(all_bound)

    assert sum(pods_in_turn) == 50
    assert max(pods_in_turn) in (3, 4), "thirds of a turn's time, added up in floating point"


def test_stop_before_everything_is_known_ends_it_all_the_same() -> None:
    @on_a_loop
    async def _() -> None:
        async with scheduling(synced=False) as here:
            await here.add_pods(["one"], cpu="1m")
            await here.scheduler.stop()
            assert await here.placed() == {}


def test_a_reflector_that_ends_ends_the_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    @on_a_loop
    async def _() -> None:
        sandbox = Sandbox(SandboxOptions(agent=False, deployments=False))
        await sandbox.start()
        client = await Client.from_kubeconfig(str(sandbox.kubeconfig))
        gates = FeatureGates()
        scheduler = Scheduler(client, Configuration.default(gates), gates, max_nodes=256)

        def broken(kind: str) -> None:
            raise ZeroDivisionError("a bug")

        monkeypatch.setattr(scheduler._sources._reflectors[0]._handler, "synced", broken)
        with pytest.raises(ZeroDivisionError):
            await scheduler.run()
        await client.close()
        await sandbox.stop()


def test_the_same_events_and_seed_give_the_same_placements() -> None:
    def placements() -> dict[str, str]:
        world = World()
        for number in range(20):
            world.feed.put_node(node(f"node-{number}").capacity(cpu="4").build())
        for number in range(60):
            world.pod(pod(f"pod-{number}").request(cpu="100m"))
        world.turn()
        return {key: where for key, (where, _) in world.out.binds.items()}

    first = placements()
    assert len(set(first.values())) > 1
    assert placements() == first
