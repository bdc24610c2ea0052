"""Measuring: where it begins, where it ends, and the figures that come of it.

Nothing is computed while pods are being measured but samples of CPU and memory. What the server noted is fetched when
measuring ends; events are counted at the server after the run, since a scheduler may write them late.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import msgspec

from benchmarks.errors import RunFailed
from benchmarks.scheduler_perf import measures
from benchmarks.scheduler_perf.loader import PAGE, Api
from benchmarks.scheduler_perf.observation import matches
from benchmarks.scheduler_perf.operations import StartCollectingMetrics, StopCollectingMetrics
from benchmarks.scheduler_perf.world import Collection, Meters, World
from ksched.model.quantity import parse_quantity
from ksched.sandbox.audit import pod_amounts

Json = dict[str, Any]

EVENT_SECONDS = 30.0
"""For how long events are waited for after a run."""

EVENT_PAUSE_SECONDS = 0.5
QUANTILES = (0, 10, 50, 100, 250, 500, 750, 900, 950, 990, 995, 999, 1000)


async def start_collecting(world: World, operation: StartCollectingMetrics, index: int) -> None:
    """Begin to measure."""
    begin(world, operation.name or f"operation {index}", operation.namespaces, operation.label_selector)


async def stop_collecting(world: World, operation: StopCollectingMetrics, index: int) -> None:
    """End measuring."""
    await finish(world)


def begin(world: World, name: str, namespaces: Sequence[str], selector: dict[str, str]) -> None:
    """Begin to measure the pods of some namespaces."""
    if world.collecting is not None:
        raise RunFailed("metrics collection is overlapping: a second collection begins before the first one ended")
    world.meters.sample()
    world.collecting = Collection(name, namespaces, dict(selector), time.time_ns())


async def finish(world: World) -> None:
    """End measuring, and fetch what the server noted."""
    collection, world.collecting = world.collecting, None
    if collection is None:
        raise RunFailed("stopCollectingMetrics: nothing is being collected")
    collection.ended = time.time_ns()
    world.meters.sample()
    for pod in await world.observer.times(collection.namespaces):
        selected = matches(collection.selector, world.labels.get((pod.namespace, pod.name), {}))
        if selected and pod.bound >= collection.started:
            collection.pods.append(pod)
    collection.placement = await _placement(world.api)
    world.collected.append(collection)


# -- what is asked after the window


async def _placement(api: Api) -> dict[str, dict[str, float]]:
    """How evenly the nodes are used now."""
    allocatable: dict[str, dict[str, int]] = {}
    for node in await api.pages("/api/v1/nodes"):
        state = node.get("status") or {}
        allocatable[node["metadata"]["name"]] = {
            resource: parse_quantity(str(amount)).milli_value()
            for resource, amount in (state.get("allocatable") or {}).items()
        }
    requested: dict[str, dict[str, int]] = {}
    for pod in await api.pages("/api/v1/pods"):
        name = pod["spec"].get("nodeName")
        if name and (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
            used = requested.setdefault(name, {"pods": 0})
            used["pods"] += 1000
            for resource, amount in pod_amounts(pod).items():
                used[resource] = used.get(resource, 0) + amount
    return measures.spread_of_use(allocatable, requested)


class _About(msgspec.Struct):
    name: str = ""


class _Event(msgspec.Struct, rename="camel"):
    reason: str = ""
    involved_object: _About = msgspec.field(default_factory=_About)


class _Continue(msgspec.Struct, rename={"token": "continue"}):
    token: str = ""


class _Events(msgspec.Struct):
    items: list[_Event]
    metadata: _Continue = msgspec.field(default_factory=_Continue)


_events = msgspec.json.Decoder(_Events)


async def count_events(world: World, *, expected: bool) -> None:
    """Count, for each collection, the measured pods that have an event Scheduled at the server; wait for late ones.

    Without `expected` (a scheduler that writes none) nothing is waited for.
    """
    for collection in world.collected:
        wanted = {(pod.namespace, pod.name) for pod in collection.pods}
        end = time.monotonic() + (EVENT_SECONDS if expected else 0.0)
        while True:
            asked_at = time.time()
            total, scheduled = await _events_of(world, collection.namespaces)
            if wanted <= scheduled or time.monotonic() >= end:
                break
            await asyncio.sleep(EVENT_PAUSE_SECONDS)
        collection.events_complete = asked_at
        collection.events = {
            "expected": expected,
            "objects": total,
            "sent": len(wanted & scheduled),
            "dropped": len(wanted - scheduled) if expected else 0,
        }


async def _events_of(world: World, namespaces: Sequence[str]) -> tuple[int, set[tuple[str, str]]]:
    """How many events there are, and which pods have one with reason Scheduled."""
    total = 0
    scheduled: set[tuple[str, str]] = set()
    for namespace in namespaces:
        path, more = f"/api/v1/namespaces/{namespace}/events", ""
        while True:
            query = {"limit": str(PAGE), **({"continue": more} if more else {})}
            answer = await world.api.client.request("GET", path, query=query)
            if not answer.ok:
                raise RunFailed(f"GET {path}: {answer.error()}")
            page = _events.decode(answer.body)
            total += len(page.items)
            scheduled |= {
                (namespace, event.involved_object.name) for event in page.items if event.reason == "Scheduled"
            }
            more = page.metadata.token
            if not more:
                break
    return total, scheduled


# -- figures


def figures(collection: Collection, meters: Meters) -> Json:
    """Everything that one collection says, as results have it."""
    bound = sorted(pod.bound for pod in collection.pods)
    window = measures.window(collection.pods)
    # The collector's ticks begin where collecting began, whether or not a pod was there.
    samples = measures.throughput(bound, collection.started, collection.ended)
    found: Json = {
        "name": collection.name,
        "namespaces": list(collection.namespaces),
        "measured_pods": len(collection.pods),
        "SchedulingThroughput": measures.throughput_summary(samples),
        "SchedulingDuration": (collection.ended - collection.started) / 1e9,
        "latency_seconds": measures.latency_seconds(collection.pods),
        "placement": collection.placement,
        "events": collection.events,
        "memory_bytes": {},
        "cpu_seconds": {},
        "acceptance": None,
        "is_result": False,
        "why_no_result": "no measured pod got a node",
    }
    start, end = collection.started / 1e9, collection.ended / 1e9
    if window is not None:
        start, end = window.start / 1e9, window.end / 1e9
        found["acceptance"] = {"pods_per_second": window.pods_per_second, "seconds": window.seconds}
        found["is_result"] = window.seconds >= measures.SHORTEST_WINDOW_SECONDS
        found["why_no_result"] = (
            ""
            if found["is_result"]
            else f"the window was {window.seconds:.1f} s, under {measures.SHORTEST_WINDOW_SECONDS:g} s: "
            "raise the counts with --param"
        )
        found["curves"] = _curves(collection, meters, window)
        found["latency_quantiles_seconds"] = _quantiles(collection)
    for name, series in (("scheduler", meters.scheduler), ("server", meters.server), ("loader", meters.loader)):
        if not series.pids:
            continue
        found["cpu_seconds"][name] = series.cpu_at(end) - series.cpu_at(start)
        inside = series.between(start, end) or series.samples[-1:]
        rss = sorted(sample.rss_bytes for sample in inside)
        peak = max(sample.peak_rss_bytes for sample in series.samples)
        found["memory_bytes"][name] = {"peak": peak, "steady": rss[len(rss) // 2]}
    scheduler = meters.scheduler
    written = max(end, collection.events_complete)
    found["cpu_seconds"]["scheduler_until_events_written"] = scheduler.cpu_at(written) - scheduler.cpu_at(start)
    if window is not None:
        per_pod = 1000.0 / window.pods
        found["scheduler_cpu_ms_per_pod"] = found["cpu_seconds"]["scheduler"] * per_pod
        found["scheduler_cpu_ms_per_pod_with_late_events"] = (
            found["cpu_seconds"]["scheduler_until_events_written"] * per_pod
        )
    return found


def _curves(collection: Collection, meters: Meters, window: measures.Window) -> Json:
    """What happened in each second of the window."""
    bound = [pod.bound for pod in collection.pods]
    counts = measures.per_second(bound, window.start, window.end)
    latencies: list[list[int]] = [[] for _ in counts]
    for pod in collection.pods:
        latencies[min(len(counts) - 1, (pod.bound - window.start) // 1_000_000_000)].append(pod.bound - pod.created)
    start = window.start / 1e9
    last = window.end / 1e9
    curves: Json = {"pods": counts, "p50": [], "p99": [], "cpu": {}}
    for per_second in latencies:
        per_second.sort()
        for name, per_mille in (("p50", 500), ("p99", 990)):
            curves[name].append(measures.nearest_rank(per_second, per_mille) / 1e9 if per_second else None)
    for name, series in (("scheduler", meters.scheduler), ("server", meters.server), ("loader", meters.loader)):
        if series.pids:
            edges = [min(last, start + second) for second in range(len(counts) + 1)]
            used = [series.cpu_at(edge) for edge in edges]
            curves["cpu"][name] = [
                (after - before) / (right - left) if right > left else 0.0
                for before, after, left, right in zip(used, used[1:], edges, edges[1:], strict=False)
            ]
    return curves


def _quantiles(collection: Collection) -> list[list[float]]:
    ordered = sorted(pod.bound - pod.created for pod in collection.pods)
    return [[share / 10, measures.nearest_rank(ordered, share) / 1e9] for share in QUANTILES]
