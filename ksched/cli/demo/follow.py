"""How far a demo is, asked of the server: cheap questions, a few times a second.

Nothing is watched, because a second watcher of all pods would cost the server, and so the scheduler, a good
part of what is measured. The sandbox tells its counters, and who was bound where since the last question; what
a pod takes is known from its making.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from ksched.api.client import Client
from ksched.cli.demo.plan import Plan
from ksched.cli.demo.report import Pending
from ksched.cli.demo.screen import Screen
from ksched.cli.processes import KschedProcess
from ksched.sandbox.audit import Amounts

MEASURE_SECONDS = 1.0
"""Time between two questions for latencies and the rate: the server sorts all of them to answer."""

PAGE = 500
"""Pods in one page of a list, as kubectl asks."""


class Server:
    """The sandbox's answers as Python objects."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def get(self, path: str, **query: str) -> Any:
        """The JSON that a GET of `path` answers."""
        return await self._client.json("GET", path, query=query)

    async def pending(self) -> list[Pending]:
        """Every pod without a node, and what it was told."""
        found: list[Pending] = []
        query = {"fieldSelector": "spec.nodeName=", "limit": str(PAGE)}
        while True:
            page = await self._client.json("GET", "/api/v1/pods", query=query)
            found += map(_pending, page["items"])
            if not (more := page["metadata"].get("continue")):
                return found
            query["continue"] = more


class Follower:
    """Keeps a screen's state up to date."""

    def __init__(self, server: Server, plan: Plan, screen: Screen) -> None:
        self.server = server
        self._plan = plan
        self._screen = screen
        self._placed = 0
        self._taken: dict[str, Amounts] = {pool: {} for pool in plan.room}
        self._measured = time.monotonic()

    async def look(self, scheduler: KschedProcess | None) -> int:
        """Ask once, show it, and return how many pods are bound."""
        news = (await self.server.get("/sandbox/placements", after=str(self._placed)))["placements"]
        self._placed += len(news)
        for namespace, name, node in news:
            self._add(self._plan.pool_of[node], self._plan.requests[f"{namespace}/{name}"])
        state = self._screen.state
        now = time.monotonic()
        if now - self._measured >= MEASURE_SECONDS:
            timeline = await self.server.get("/sandbox/timeline")
            latency = timeline["latency_seconds"] or {}
            state.latency_p50, state.latency_p99 = latency.get("p50"), latency.get("p99")
            state.pods_per_second = timeline["pods_per_second"]
            self._measured = now
        state.bound = self._placed
        state.utilization = self.utilization()
        if scheduler is not None:
            usage = scheduler.usage()
            state.scheduler_cpu_seconds, state.scheduler_rss_bytes = usage.cpu_seconds, usage.peak_rss_bytes
        self._screen.tick()
        return state.bound

    def utilization(self) -> dict[str, dict[str, float]]:
        """Pool to resource to the share that is taken."""
        return {
            pool: {name: self._taken[pool].get(name, 0) / amount for name, amount in room.items() if amount}
            for pool, room in self._plan.room.items()
        }

    def _add(self, pool: str, amounts: Amounts) -> None:
        taken = self._taken[pool]
        for resource, amount in amounts.items():
            taken[resource] = taken.get(resource, 0) + amount


def _pending(pod: Mapping[str, Any]) -> Pending:
    """A pod of a list."""
    said: Mapping[str, Any] = {}
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            said = condition
    metadata = pod["metadata"]
    return Pending(metadata["namespace"], metadata["name"], said.get("reason", ""), said.get("message", ""))
