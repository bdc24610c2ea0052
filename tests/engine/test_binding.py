"""Pods that have to wait after they were assumed: permission, preparation, a binder of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from ksched.config.gates import FeatureGates
from ksched.config.types import Configuration
from ksched.config.types import Plugin as Enabled
from ksched.engine.waiting import WaitingPod, go_duration
from ksched.errors import ApiError
from ksched.framework import (
    CycleState,
    PermitPlugin,
    PodInfo,
    PostBindPlugin,
    PreBindPlugin,
    ReservePlugin,
    Status,
    Wait,
)
from ksched.testing import node, pod
from tests.engine.world import World, on_a_loop


class Guard(PermitPlugin, ReservePlugin, PreBindPlugin, PostBindPlugin):
    """Holds pods back as their labels say, and notes what happens to them."""

    name = "Guard"
    noted: list[str]

    def __init__(self, args: Any, handle: Any) -> None:
        super().__init__(args, handle)
        type(self).noted = []

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | Wait | None:
        if "refuse" in pod.labels:
            return Status.unschedulable("refused")
        return Wait(float(pod.labels["wait"])) if "wait" in pod.labels else None

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        self.noted.append(f"reserve {pod.name}")
        return None

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        self.noted.append(f"unreserve {pod.name}")

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        self.noted.append(f"pre_bind {pod.name}")
        if "crash" in pod.labels:
            raise RuntimeError("boom")
        return Status.unschedulable("no disk") if "unprepared" in pod.labels else None

    async def post_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        self.noted.append(f"post_bind {pod.name}")


def guarded_world() -> World:
    configuration = Configuration.default(FeatureGates())
    (profile,) = configuration.profiles
    multi_point = msgspec.structs.replace(
        profile.plugins.multi_point, enabled=(*profile.plugins.multi_point.enabled, Enabled("Guard"))
    )
    plugins = msgspec.structs.replace(profile.plugins, multi_point=multi_point)
    profile = msgspec.structs.replace(profile, plugins=plugins)
    world = World(msgspec.structs.replace(configuration, profiles=(profile,)), [Guard])
    world.feed.put_node(node("small").capacity(cpu="2").build())
    return world


async def until(says: Callable[[], bool]) -> None:
    for _ in range(200):
        if says():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it did not happen")


def test_a_pod_that_waits_holds_its_room_until_it_is_allowed() -> None:
    @on_a_loop
    async def _() -> None:
        world = guarded_world()
        world.pod(pod("one").request(cpu="2").label(wait="60"))
        world.pod(pod("two").request(cpu="1"))
        world.turn()
        await until(lambda: len(world.waiting) == 1)
        assert world.place("default/one") == "assumed"
        assert world.place("default/two") == "unschedulable"
        assert "uid-default-one" in world.queue.in_flight
        (waiting,) = world.waiting
        assert waiting.plugins == ("Guard",)
        waiting.allow("Guard")
        await until(lambda: "default/one" in world.out.binds)
        assert "uid-default-one" not in world.queue.in_flight
        world.out.answer("default/one")
        await until(lambda: not len(world.bindings))
        assert Guard.noted == ["reserve one", "pre_bind one", "post_bind one"]
        assert len(world.waiting) == 0


@pytest.mark.parametrize(
    ("end", "note"),
    [
        pytest.param(
            lambda waiting: waiting.reject("Guard", "not today"),
            "0/1 nodes are available: 1 not today.",
            id="rejected by the plugin",
        ),
        pytest.param(
            lambda waiting: None,
            "0/1 nodes are available: 1 rejected due to timeout after waiting 50ms at plugin Guard.",
            id="its time is over",
        ),
    ],
)
def test_a_pod_that_is_not_allowed_gives_everything_back(end: Callable[[WaitingPod], object], note: str) -> None:
    @on_a_loop
    async def _() -> None:
        world = guarded_world()
        world.pod(pod("one").request(cpu="2").label(wait="0.05"))
        world.pod(pod("two").request(cpu="1"))
        world.turn()
        await until(lambda: len(world.waiting) == 1)
        (waiting,) = world.waiting
        end(waiting)
        await until(lambda: not len(world.bindings))
        assert Guard.noted == ["reserve one", "unreserve one"]
        assert world.place("default/one") == "unschedulable"
        assert world.place("default/two") == "backoff", "the room is free"
        assert world.queue.get("default/one").unschedulable_plugins == {"Guard"}
        assert world.out.events[-1] == ("default/one", "FailedScheduling", note)


def test_what_happened_while_a_pod_waited_counts_when_it_is_rejected() -> None:
    @on_a_loop
    async def _() -> None:
        world = guarded_world()
        world.pod(pod("one").label(wait="60"))
        world.turn()
        await until(lambda: len(world.waiting) == 1)
        world.feed.put_node(node("another").capacity(cpu="1").build())
        (waiting,) = world.waiting
        waiting.reject("Guard", "not today")
        await until(lambda: not len(world.bindings))
        assert world.place("default/one") == "backoff", "Guard hears of every event"


def test_a_waiting_pod_that_is_deleted_is_let_go() -> None:
    @on_a_loop
    async def _() -> None:
        world = guarded_world()
        shown = world.pod(pod("one").label(wait="60"))
        world.turn()
        await until(lambda: len(world.waiting) == 1)
        world.feed.remove_pod(shown.key, shown.uid)
        await until(lambda: not len(world.bindings))
        assert world.place("default/one") == "nowhere"
        assert Guard.noted == ["reserve one", "unreserve one"]
        assert len(world.queue.in_flight) == 0


@pytest.mark.parametrize(
    ("label", "reason", "note"),
    [
        pytest.param("unprepared", "unschedulable", "0/1 nodes are available: 1 no disk.", id="PreBind turns it down"),
        pytest.param(
            "crash", "error backoff", 'running PreBind plugin "Guard": RuntimeError: boom', id="PreBind fails"
        ),
    ],
)
def test_a_pod_that_cannot_be_prepared(label: str, reason: str, note: str) -> None:
    @on_a_loop
    async def _() -> None:
        world = guarded_world()
        world.pod(pod("one").label(**{label: "yes"}))
        world.turn()
        await until(lambda: not len(world.bindings))
        assert world.place("default/one") == reason
        assert world.out.events[-1][2] == note
        assert world.cluster.assumed_count == 0


def test_a_binding_that_fails_after_preparation_is_undone() -> None:
    @on_a_loop
    async def _() -> None:
        world = guarded_world()
        world.pod(pod("one"))
        world.turn()
        await until(lambda: "default/one" in world.out.binds)
        world.out.answer("default/one", ApiError(409, "Conflict", 'pod one is already assigned to node "other"'))
        await until(lambda: not len(world.bindings))
        assert Guard.noted == ["reserve one", "pre_bind one", "unreserve one"]
        assert world.place("default/one") == "error backoff"
        assert world.out.events[-1][2] == (
            'running Bind plugin "DefaultBinder": pod one is already assigned to node "other"'
        )


def test_stopping_waits_for_bindings_and_no_longer_than_it_may() -> None:
    @on_a_loop
    async def _() -> None:
        world = guarded_world()
        world.pod(pod("one"))
        world.turn()
        await until(lambda: "default/one" in world.out.binds)
        assert await world.bindings.finish(0.02) == 1
        world = guarded_world()
        world.pod(pod("one"))
        world.turn()
        await until(lambda: "default/one" in world.out.binds)
        asyncio.get_running_loop().call_later(0.02, world.out.answer, "default/one")
        assert await world.bindings.finish(10) == 0


def test_stopping_does_not_wait_for_pods_that_plugins_hold_back() -> None:
    @on_a_loop
    async def _() -> None:
        world = guarded_world()
        world.pod(pod("one").label(wait="60"))
        world.turn()
        await until(lambda: len(world.waiting) == 1)
        assert await world.bindings.finish(10) == 0
        assert len(world.waiting) == 0
        assert world.out.events == []


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        pytest.param(0, "0s", id="nothing"),
        pytest.param(0.25, "250ms", id="milliseconds"),
        pytest.param(0.0015, "1.5ms", id="a fraction of milliseconds"),
        pytest.param(1.5, "1.5s", id="a fraction of seconds"),
        pytest.param(120, "2m0s", id="minutes"),
        pytest.param(3605, "1h0m5s", id="hours"),
    ],
)
def test_durations_are_written_as_go_does(seconds: float, text: str) -> None:
    assert go_duration(seconds) == text
