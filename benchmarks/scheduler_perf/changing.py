"""Operations that change or delete what is there: churn, deletions, updates, and devices of drivers."""

from __future__ import annotations

import asyncio
import fnmatch
import time
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from benchmarks.errors import RunFailed
from benchmarks.scheduler_perf.creating import place_of
from benchmarks.scheduler_perf.loader import REQUEST_SECONDS, Kind
from benchmarks.scheduler_perf.objects import served_version, typed
from benchmarks.scheduler_perf.operations import (
    AllocResourceClaims,
    Churn,
    CreateResourceDriver,
    DeletePods,
    UpdateAny,
)
from benchmarks.scheduler_perf.world import World
from ksched.errors import ApiError

Json = dict[str, Any]

_ADMITTED = ("enableServiceLinks", "preemptionPolicy", "priority", "serviceAccount", "serviceAccountName")


async def churn(world: World, operation: Churn, index: int) -> None:
    """Begin to create, or to create and delete in turn."""
    namespace = operation.namespace or f"namespace-{index}"
    await world.namespace(namespace)
    kinds: list[tuple[Kind, bytes]] = []
    for path in operation.template_paths:
        template = world.templates.named(path)
        thing = typed(template.object(0, 1))
        thing["apiVersion"] = served_version(thing["apiVersion"])
        kinds.append((await world.api.kind(thing, template.where), msgspec.json.encode(thing)))
    world.in_background(_churn(world, operation, namespace, kinds))


async def _churn(world: World, operation: Churn, namespace: str, kinds: list[tuple[Kind, bytes]]) -> None:
    """scheduler_perf's loop: a tick creates one object of each template, or deletes the one that is in its place."""
    names = [[""] * max(1, operation.number) for _ in kinds]
    async for tick in _ticks(operation.interval_milliseconds / 1000):
        if operation.mode == "create" and operation.number and tick >= operation.number:
            return
        for number, (kind, body) in enumerate(kinds):
            place = tick % len(names[number])
            name = names[number][place] if operation.mode == "recreate" else ""
            if name:
                answer = await world.api.client.request("DELETE", kind.path(namespace, name))
                if not answer.ok and answer.status != 404:
                    raise RunFailed(f"churn: DELETE {kind.path(namespace, name)}: {answer.error()}")
                names[number][place] = ""
                continue
            made = await world.api.write("POST", kind.path(namespace), body)
            names[number][place] = made["metadata"]["name"]
            if not kind.namespaced:
                world.other_objects.append(kind.path("", made["metadata"]["name"]))


async def delete_pods(world: World, operation: DeletePods, index: int) -> None:
    """Delete the pods that are there now, at a rate or all at once."""
    path = f"/api/v1/namespaces/{operation.namespace}/pods"
    query: dict[str, str] = {}
    if operation.label_selector:
        query["labelSelector"] = ",".join(f"{key}={value}" for key, value in sorted(operation.label_selector.items()))
    names: list[str] = []
    if operation.delete_pods_per_second:
        names = [pod["metadata"]["name"] for pod in await world.api.pages(path, query)]
    work = _delete(world, operation, path, query, names)
    if operation.skip_wait_to_completion:
        world.in_background(work)
    else:
        await work


async def _delete(world: World, operation: DeletePods, path: str, query: dict[str, str], names: list[str]) -> None:
    if not operation.delete_pods_per_second:
        try:
            await world.api.write("DELETE", path, query=query)
        except ApiError as error:
            raise RunFailed(f"deletePods: DELETE {path}: {error}") from error
        return
    async for tick in _ticks(1.0 / operation.delete_pods_per_second):
        if tick >= len(names):
            return
        answer = await world.api.client.request("DELETE", f"{path}/{names[tick]}", timeout_seconds=REQUEST_SECONDS)
        if not answer.ok and answer.status != 404:
            raise RunFailed(f"deletePods: DELETE {path}/{names[tick]}: {answer.error()}")


async def update_any(world: World, operation: UpdateAny, index: int) -> None:
    """Replace objects (or the subresources that are named) and then their status."""
    template = world.templates.named(operation.template_path)

    async def update(number: int) -> None:
        thing = template.object(number, operation.count)
        kind = await place_of(world, thing, operation.namespace, template.where)
        name = thing["metadata"]["name"]
        if thing["kind"] == "Pod":
            _admit(thing, await world.api.get(kind.path(operation.namespace, name)))
        for subresource in (*(operation.subresources or ("",)), "status"):
            path = kind.path(operation.namespace, name, subresource)
            try:
                await world.api.write("PUT", path, thing)
            except ApiError as error:
                raise RunFailed(f"{template.where}: PUT {path}: {error}") from error
        world.progress.done(f"{thing['kind']} updated", number + 1, operation.count)

    if operation.update_per_second:
        async for tick in _ticks(1.0 / operation.update_per_second):
            if tick >= operation.count:
                return
            await update(tick)
    for number in range(operation.count):
        await update(number)


def _admit(pod: Json, live: Json) -> None:
    """Keep what admission has added to a pod.

    scheduler_perf's server runs without these admission plugins, so that its templates need not know of them; a server
    that has them refuses an update which takes the fields away.
    """
    for field in _ADMITTED:
        if field in live["spec"]:
            pod["spec"].setdefault(field, live["spec"][field])
    own = {toleration.get("key") for toleration in pod["spec"].get("tolerations") or ()}
    added = [toleration for toleration in live["spec"].get("tolerations") or () if toleration.get("key") not in own]
    if added:
        pod["spec"]["tolerations"] = [*(pod["spec"].get("tolerations") or ()), *added]


async def create_resource_driver(world: World, operation: CreateResourceDriver, index: int) -> None:
    """Publish one slice of devices for each node whose name matches, as a driver on it would."""
    path = "/apis/resource.k8s.io/v1/resourceslices"
    names = [node["metadata"]["name"] for node in await world.api.pages("/api/v1/nodes")]
    chosen = [name for name in names if fnmatch.fnmatchcase(name, operation.nodes)]
    if not chosen:
        raise RunFailed(f"operation {index}: createResourceDriver: no node is called {operation.nodes}")
    bodies = [msgspec.json.encode(_slice(operation, name)) for name in chosen]
    await world.api.create_all(path, bodies, len(bodies))
    world.other_objects += [f"{path}/{name}" for name in chosen]


def _slice(operation: CreateResourceDriver, node: str) -> Json:
    devices = [
        {
            "name": f"instance-{number}",
            "attributes": {
                "model": {"string": "A100"},
                "family": {"string": "GPU"},
                "driverVersion": {"version": "1.2.3"},
                "dra.example.com/numa": {"int": number},
            },
            "capacity": {"memory": {"value": "1Gi"}},
        }
        for number in range(operation.max_claims_per_node)
    ]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": node},
        "spec": {
            "driver": operation.driver_name,
            "nodeName": node,
            "pool": {"name": node, "generation": 0, "resourceSliceCount": 1},
            "devices": devices,
        },
    }


async def alloc_resource_claims(world: World, operation: AllocResourceClaims, index: int) -> None:
    """Refused: `needs` skips workloads with it."""
    raise RunFailed(
        f"operation {index}: allocResourceClaims is not supported: it needs an allocator with CEL selectors"
    )


async def _ticks(seconds: float) -> AsyncIterator[int]:
    """0, 1, 2, ... at equal distances, the first after one distance; late ticks come at once."""
    start = time.monotonic()
    tick = 0
    while True:
        await asyncio.sleep(max(0.0, start + (tick + 1) * seconds - time.monotonic()))
        yield tick
        tick += 1
