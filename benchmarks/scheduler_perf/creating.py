"""Operations that create: nodes, namespaces, pods with and without volumes, objects of any kind."""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from collections.abc import Sequence
from typing import Any

import msgspec

from benchmarks.errors import RunFailed
from benchmarks.scheduler_perf import collecting
from benchmarks.scheduler_perf.loader import WORKERS, Kind
from benchmarks.scheduler_perf.objects import Bodies, served_version, typed
from benchmarks.scheduler_perf.operations import (
    CreateAny,
    CreateNamespaces,
    CreateNodes,
    CreatePods,
    CreateResourceClaims,
)
from benchmarks.scheduler_perf.waiting import until_bound
from benchmarks.scheduler_perf.world import World
from ksched.api.http1 import Response
from ksched.config import durations
from ksched.errors import ApiError

Json = dict[str, Any]

ANY_SECONDS = 20.0
"""For how long createAny tries: a kind may have been defined just now."""

MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"
HOSTNAME = "kubernetes.io/hostname"


# -- nodes


async def create_nodes(world: World, operation: CreateNodes, index: int) -> None:
    """Create nodes with their strategies applied. They get their names here, since a label repeats the name."""
    template = world.templates.node(operation, index)
    rng = random.Random(index)
    nodes = [
        _node(world, operation, typed(template.object(number, operation.count)), number, rng)
        for number in range(operation.count)
    ]
    bodies = [msgspec.json.encode(node) for node in nodes]
    await _create(world, "/api/v1/nodes", bodies, "nodes")
    world.other_objects += [f"/api/v1/nodes/{node['metadata']['name']}" for node in nodes]
    strategy = operation.node_allocatable_strategy
    if strategy is not None and strategy.csi_node_allocatable:
        path = "/apis/storage.k8s.io/v1/csinodes"
        names = [node["metadata"]["name"] for node in nodes]
        drivers = strategy.csi_node_allocatable
        made = [msgspec.json.encode(_csi_node(name, drivers, strategy.migrated_plugins)) for name in names]
        await _create(world, path, made, "CSI nodes")
        world.other_objects += [f"{path}/{name}" for name in names]


def _node(world: World, operation: CreateNodes, node: Json, number: int, rng: random.Random) -> Json:
    metadata = node["metadata"]
    if "name" not in metadata:
        prefix = metadata.pop("generateName", f"node-{number}-")
        metadata["name"] = f"{prefix}{world.node_numbers[prefix]:06d}"
        world.node_numbers[prefix] += 1
    labels = metadata.setdefault("labels", {})
    labels.setdefault(HOSTNAME, metadata["name"])
    if (label := operation.label_node_prepare_strategy) is not None:
        labels[label.label_key] = label.label_values[number % len(label.label_values)]
    if (unique := operation.unique_node_label_strategy) is not None:
        labels[unique.label_key] = str(uuid.UUID(int=rng.getrandbits(128), version=4))
    status = node.setdefault("status", {})
    if operation.node_allocatable_strategy is not None:
        more = {name: str(amount) for name, amount in operation.node_allocatable_strategy.node_allocatable.items()}
        status["allocatable"] = {**(status.get("allocatable") or status.get("capacity") or {}), **more}
        status["capacity"] = {**(status.get("capacity") or {}), **more}
    if features := world.workload.declared_features:
        status["declaredFeatures"] = sorted(f"Feature{each}" for each in range(1, features + 1))
    return node


def _csi_node(name: str, drivers: dict[str, dict[str, int]], migrated: Sequence[str]) -> Json:
    metadata: Json = {"name": name}
    if migrated:
        metadata["annotations"] = {MIGRATED_PLUGINS: ",".join(migrated)}
    written = [{"name": driver, "nodeID": name, "allocatable": amount} for driver, amount in drivers.items()]
    return {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": metadata, "spec": {"drivers": written}}


# -- namespaces


async def create_namespaces(world: World, operation: CreateNamespaces, index: int) -> None:
    """Create numbered namespaces, from a template if there is one."""
    for number in range(operation.count):
        name = f"{operation.prefix}-{number}"
        if name in world.namespaces:
            continue
        namespace: Json = {"apiVersion": "v1", "kind": "Namespace", "metadata": {}}
        if operation.namespace_template_path is not None:
            namespace = typed(world.templates.named(operation.namespace_template_path).object(number, operation.count))
        namespace["metadata"]["name"] = name
        try:
            await world.api.write("POST", "/api/v1/namespaces", namespace)
        except ApiError as error:
            raise RunFailed(f"namespace {name}: {error}") from error
        await world.namespace(name)
        world.progress.done("namespaces", number + 1, operation.count)


# -- pods


async def create_pods(world: World, operation: CreatePods, index: int) -> None:
    """Create pods; wait for their nodes unless told not to; measure if told to."""
    namespace = operation.namespace or f"namespace-{index}"
    await world.namespace(namespace)
    bodies = _pod_bodies(world, operation)
    before = await world.observer.bound(namespace)
    if operation.collects:
        collecting.begin(world, namespace, [namespace], {})
    if operation.persistent_volume_template_path is not None:
        await _create_pods_with_volumes(world, operation, namespace)
    else:
        await _create(world, f"/api/v1/namespaces/{namespace}/pods", bodies, "pods", world.remembers_labels)
    if operation.skip_wait_to_completion:
        world.waited_for[namespace] = None
    elif operation.steady_state:
        await _keep_steady(world, operation, namespace, bodies, before)
    else:
        await until_bound(world, namespace, before, operation.count)
    if operation.collects:
        await collecting.finish(world)


def _pod_bodies(world: World, operation: CreatePods) -> Sequence[bytes]:
    """Every body, encoded before anything is measured."""
    bodies = Bodies(world.templates.pod(operation), operation.count)
    return [bodies[number] for number in range(operation.count)]


async def _keep_steady(
    world: World, operation: CreatePods, namespace: str, bodies: Sequence[bytes], before: int
) -> None:
    """Whenever as many pods as there are in a batch have nodes, delete all pods and create the next batch."""
    end = time.monotonic() + durations.seconds(operation.duration)
    path = f"/api/v1/namespaces/{namespace}/pods"
    batches = 1
    while time.monotonic() < end:
        world.check()
        bound = await world.observer.bound(namespace) - before
        world.progress.done("pods bound", bound, bound)
        if bound < batches * operation.count:
            await asyncio.sleep(0.02)
            continue
        await world.api.write("DELETE", path, {"gracePeriodSeconds": 0, "propagationPolicy": "Background"})
        await _create(world, path, bodies, "pods", world.remembers_labels)
        batches += 1
    if await world.observer.bound(namespace) == before:
        raise RunFailed(f"no pod of {namespace} got a node in {operation.duration}")


async def _create(world: World, path: str, bodies: Sequence[bytes], what: str, remember_labels: bool = False) -> None:
    """Create all bodies at one path."""
    made = 0

    def created(number: int, answer: Response) -> None:
        nonlocal made
        made += 1
        if remember_labels:
            metadata = _made.decode(answer.body).metadata
            world.labels[metadata.namespace, metadata.name] = metadata.labels
        if made % 100 == 0 or made == len(bodies):
            world.progress.done(f"{what} created", made, len(bodies))

    await world.api.create_all(path, bodies, len(bodies), created)


class _Metadata(msgspec.Struct):
    name: str
    namespace: str = ""
    labels: dict[str, str] = {}


class _Made(msgspec.Struct):
    metadata: _Metadata


_made = msgspec.json.Decoder(_Made)


# -- pods with volumes


async def _create_pods_with_volumes(world: World, operation: CreatePods, namespace: str) -> None:
    """Each pod gets a claim and a volume of its own, bound to each other, as a volume controller would leave them."""
    assert operation.persistent_volume_template_path is not None
    assert operation.persistent_volume_claim_template_path is not None
    pods = world.templates.pod(operation)
    volumes = world.templates.named(operation.persistent_volume_template_path)
    claims = world.templates.named(operation.persistent_volume_claim_template_path)
    numbers = iter(range(operation.count))
    made = 0

    async def worker() -> None:
        nonlocal made
        for number in numbers:
            claim = typed(claims.object(number, operation.count))
            volume = typed(volumes.object(number, operation.count))
            await _create_bound_volume(world, namespace, number, claim, volume)
            pod = typed(pods.object(number, operation.count))
            pod["spec"]["volumes"] = [{"name": "vol", "persistentVolumeClaim": {"claimName": f"pvc-{number}"}}]
            answer = await world.api.write("POST", f"/api/v1/namespaces/{namespace}/pods", pod)
            if world.remembers_labels:
                metadata = answer["metadata"]
                world.labels[namespace, metadata["name"]] = metadata.get("labels") or {}
            made += 1
            world.progress.done("pods with volumes created", made, operation.count)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(WORKERS, operation.count)):
                group.create_task(worker())
    except* ApiError as errors:
        raise RunFailed(f"pods with volumes in {namespace}: {errors.exceptions[0]}") from errors


async def _create_bound_volume(world: World, namespace: str, number: int, claim: Json, volume: Json) -> None:
    name, volume_id = f"pvc-{number}", f"vol-{number}"
    volume["metadata"]["name"] = f"{namespace}-{volume_id}"
    for kind, field in (("csi", "volumeHandle"), ("awsElasticBlockStore", "volumeID")):
        if kind in volume["spec"]:
            volume["spec"][kind][field] = volume_id
    volume["spec"]["claimRef"] = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": namespace,
        "name": name,
    }
    claim["metadata"]["name"] = name
    claim["spec"]["volumeName"] = volume["metadata"]["name"]
    claims, volumes = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims", "/api/v1/persistentvolumes"
    bound = {"status": {"phase": "Bound"}}
    await world.api.write("POST", claims, claim)
    await world.api.patch(f"{claims}/{name}/status", bound)
    await world.api.write("POST", volumes, volume)
    await world.api.patch(f"{volumes}/{volume['metadata']['name']}/status", bound)
    world.other_objects.append(f"{volumes}/{volume['metadata']['name']}")


# -- anything


async def create_any(world: World, operation: CreateAny, index: int) -> None:
    """Create objects of a template, each with some patience."""
    template = world.templates.named(operation.template_path)
    for number in range(operation.count):
        thing = template.object(number, operation.count)
        kind = await place_of(world, thing, operation.namespace, template.where)
        path = kind.path(operation.namespace)
        end = time.monotonic() + ANY_SECONDS
        while True:
            try:
                answer = await world.api.write("POST", path, thing)
            except ApiError as error:
                if time.monotonic() >= end:
                    raise RunFailed(f"{template.where}: POST {path}: {error}") from error
                await asyncio.sleep(1.0)
                continue
            break
        if not kind.namespaced:
            world.other_objects.append(kind.path("", answer["metadata"]["name"]))
        world.progress.done(f"{thing['kind']} created", number + 1, operation.count)


async def create_resource_claims(world: World, operation: CreateResourceClaims, index: int) -> None:
    """Create resource claims, thirty at a time."""
    await world.namespace(operation.namespace)
    template = world.templates.named(operation.template_path)
    kind = await world.api.kind(template.object(0, operation.count), template.where)
    bodies = [
        msgspec.json.encode(_served(template.object(number, operation.count))) for number in range(operation.count)
    ]
    await _create(world, kind.path(operation.namespace), bodies, "resource claims")


async def place_of(world: World, thing: Json, namespace: str, where: str) -> Kind:
    """Where an object goes; its namespace is made, and its version is put right."""
    kind = await world.api.kind(thing, where)
    if kind.namespaced != bool(namespace):
        expected = "a namespace" if kind.namespaced else "no namespace"
        raise RunFailed(f"{where}: {thing['kind']}: expected {expected}, got {namespace!r}")
    if namespace:
        await world.namespace(namespace)
    _served(thing)
    return kind


def _served(thing: Json) -> Json:
    thing["apiVersion"] = served_version(thing["apiVersion"])
    return thing
