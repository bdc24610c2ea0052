"""Operations that wait: for nodes, for attempts, for time to pass."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from benchmarks.errors import RunFailed
from benchmarks.scheduler_perf.loader import PAGE
from benchmarks.scheduler_perf.operations import Barrier, Sleep
from benchmarks.scheduler_perf.world import POLL_SECONDS, World
from ksched.config import durations


async def until_bound(world: World, namespace: str, before: int, count: int) -> None:
    """Wait until `count` more pods of a namespace than `before` were bound."""
    end = time.monotonic() + world.timeout_seconds
    while True:
        world.check()
        bound = await world.observer.bound(namespace) - before
        world.progress.done("pods bound", min(bound, count), count)
        if bound >= count:
            return
        if time.monotonic() > end:
            raise RunFailed(
                f"{namespace}: {bound} of {count} pods got a node within {world.timeout_seconds:g} s"
                f"{await _a_reason(world, namespace)}"
            )
        await asyncio.sleep(POLL_SECONDS)


async def barrier(world: World, operation: Barrier, index: int) -> None:
    """Wait until no pod is left that has not reached the stage."""
    for namespace in operation.namespaces:
        if namespace not in world.namespaces:
            raise RunFailed(f"operation {index}: barrier: unknown namespace {namespace}")
    namespaces = operation.namespaces or list(world.waited_for)
    attempted = operation.stage_requirement == "Attempted"
    end = time.monotonic() + world.timeout_seconds
    left = list(namespaces)
    while left:
        world.check()
        while left and not await _someone_waits(world, left[0], operation.label_selector, attempted):
            left.pop(0)
            world.progress.done("namespaces ready", len(namespaces) - len(left), len(namespaces))
        if left and time.monotonic() > end:
            raise RunFailed(
                f"operation {index}: barrier: pods in {', '.join(left)} are not {operation.stage_requirement.lower()} "
                f"within {world.timeout_seconds:g} s{await _a_reason(world, left[0])}"
            )
        if left:
            await asyncio.sleep(POLL_SECONDS)
    if not attempted:
        for namespace in namespaces:
            world.waited_for.pop(namespace, None)


async def sleep(world: World, operation: Sleep, index: int) -> None:
    """Sleep."""
    await asyncio.sleep(durations.seconds(operation.duration))


async def _someone_waits(world: World, namespace: str, selector: dict[str, str], attempted: bool) -> bool:
    """Whether a pod that is selected has no node and, if `attempted`, no scheduler has said anything about it."""
    query = _unplaced(selector) | {"limit": str(PAGE if attempted else 1)}
    more = ""
    while True:
        page = await world.api.get(f"/api/v1/namespaces/{namespace}/pods", query | ({"continue": more} if more else {}))
        if any(not attempted or _condition(pod) is None for pod in page["items"]):
            return True
        more = page["metadata"].get("continue", "")
        if not more:
            return False


def _unplaced(selector: dict[str, str]) -> dict[str, str]:
    query = {"fieldSelector": "spec.nodeName="}
    if selector:
        query["labelSelector"] = ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    return query


def _condition(pod: dict[str, Any]) -> dict[str, Any] | None:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == "PodScheduled"), None)


async def _a_reason(world: World, namespace: str) -> str:
    """What one of the pods without a node was told."""
    page = await world.api.get(f"/api/v1/namespaces/{namespace}/pods", _unplaced({}) | {"limit": "1"})
    for pod in page["items"]:
        condition = _condition(pod) or {}
        said = condition.get("message") or condition.get("reason") or "nothing"
        return f"; {pod['metadata']['name']} was told: {said}"
    return ""
