"""The node agent and the deployment controller, on a store without a server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksched.sandbox.clock import Clock
from ksched.sandbox.controllers import DeploymentController, NodeAgent, rollout
from ksched.sandbox.controllers.reconciler import Reconciler
from ksched.sandbox.ledger import Ledger
from ksched.sandbox.revisions import Revisions
from ksched.sandbox.store import Store
from ksched.sandbox.verbs import Verbs

Json = dict[str, Any]
Step = Callable[[Store], None]

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
HASH = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"


class Turned:
    """A time that tests move."""

    def __init__(self) -> None:
        self.seconds = 1_000_000_000

    def read(self) -> int:
        return self.seconds * 1_000_000_000


def store(time: Turned | None = None) -> Store:
    time = time or Turned()
    clock = Clock(time.read, time.read)
    made = Store(Verbs(Revisions(), clock, Ledger(clock)))
    made.create("Namespace", {"metadata": {"name": "default"}})
    return made


def run(made: Store, controllers: list[Reconciler], *steps: Step) -> None:
    """Start the controllers and do the steps, letting everything settle before the first and after each."""

    async def settle() -> None:
        quiet = 0
        for _ in range(100_000):
            await asyncio.sleep(0)
            quiet = quiet + 1 if all(controller.idle for controller in controllers) else 0
            if quiet == 5:
                return
        pytest.fail("the controllers do not come to rest")

    async def act() -> None:
        for controller in controllers:
            await controller.start()
        try:
            await settle()
            for step in steps:
                step(made)
                await settle()
        finally:
            for controller in controllers:
                await controller.stop()

    asyncio.run(asyncio.wait_for(act(), 20))


def node(name: str = "n", ready: str | None = "True", **spec: Any) -> Json:
    conditions = [] if ready is None else [{"type": "Ready", "status": ready}]
    addresses = [{"type": "InternalIP", "address": "192.0.2.7"}]
    return {"metadata": {"name": name}, "spec": spec, "status": {"conditions": conditions, "addresses": addresses}}


def pod(name: str = "p", **spec: Any) -> Json:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "main", "image": "a"}], **spec}}


def taints(made: Store) -> list[tuple[str, str]]:
    found = made.get("Node", "", "n")
    assert found is not None
    return [(taint["key"], taint["effect"]) for taint in found["spec"].get("taints") or ()]


def condition(obj: Json | None, name: str) -> Json:
    assert obj is not None
    found: Json = next(each for each in obj["status"]["conditions"] if each["type"] == name)
    return found


# ---- the node agent


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        pytest.param(node(), [], id="a node that is well has no taints"),
        pytest.param(node(unschedulable=True), [(UNSCHEDULABLE, "NoSchedule")], id="a cordoned node"),
        pytest.param(
            node(ready="False"), [(NOT_READY, "NoSchedule"), (NOT_READY, "NoExecute")], id="a node that is not ready"
        ),
        pytest.param(
            node(ready="Unknown"), [(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")], id="a node that is silent"
        ),
        pytest.param(
            node(taints=[{"key": "team", "effect": "NoSchedule"}, {"key": NOT_READY, "effect": "NoSchedule"}]),
            [("team", "NoSchedule")],
            id="taints of others stay, those of the past go",
        ),
    ],
)
def test_taints_of_a_node(made: Json, expected: list[tuple[str, str]]) -> None:
    found = store()
    found.create("Node", made)
    run(found, [NodeAgent(found)])
    assert taints(found) == expected


def test_a_node_that_says_nothing_is_reported_ready() -> None:
    found = store()
    run(found, [NodeAgent(found)], lambda made: made.create("Node", node(ready=None)) and None)
    assert condition(found.get("Node", "", "n"), "Ready")["status"] == "True"


def test_uncordoning_removes_the_taint() -> None:
    def uncordon(made: Store) -> None:
        assert taints(made) == [(UNSCHEDULABLE, "NoSchedule")]
        cordoned = made.get("Node", "", "n")
        assert cordoned is not None
        del cordoned["spec"]["unschedulable"]
        made.update("Node", cordoned)

    found = store()
    found.create("Node", node(unschedulable=True))
    run(found, [NodeAgent(found)], uncordon)
    assert taints(found) == []


def bind(made: Store, name: str, to: str = "n") -> None:
    made.verbs.bind("default", name, {"metadata": {"name": name}, "target": {"kind": "Node", "name": to}})


def test_a_bound_pod_runs() -> None:
    found = store()
    found.create("Node", node())
    found.create("Pod", pod(initContainers=[{"name": "init", "image": "i"}]))
    run(found, [NodeAgent(found)], lambda made: bind(made, "p"))
    running = found.get("Pod", "default", "p")
    assert running is not None
    status = running["status"]
    assert (status["phase"], status["hostIP"]) == ("Running", "192.0.2.7")
    assert status["podIP"].startswith("10.")
    assert condition(running, "Ready")["status"] == "True"
    assert condition(running, "PodScheduled")["status"] == "True"
    assert [each["ready"] for each in status["containerStatuses"]] == [True]
    assert status["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 0


def test_a_pod_on_a_node_that_does_not_exist_runs_when_it_does() -> None:
    def late(made: Store) -> None:
        waiting = made.get("Pod", "default", "p")
        assert waiting is not None
        assert waiting["status"]["phase"] == "Pending"
        made.create("Node", node())

    found = store()
    found.create("Pod", pod(nodeName="n"))
    run(found, [NodeAgent(found)], late)
    running = found.get("Pod", "default", "p")
    assert running is not None
    assert running["status"]["phase"] == "Running"


def test_a_pod_without_a_node_is_left_alone() -> None:
    found = store()
    found.create("Pod", pod())
    before = found.get("Pod", "default", "p")
    run(found, [NodeAgent(found)])
    assert found.get("Pod", "default", "p") == before


def test_a_deletion_ends() -> None:
    found = store()
    found.create("Node", node())
    found.create("Pod", pod(nodeName="n"))
    run(found, [NodeAgent(found)], lambda made: made.delete("Pod", "default", "p"))
    assert found.get("Pod", "default", "p") is None


def test_a_deletion_waits_while_the_pod_terminates() -> None:
    found = store()
    found.create("Node", node())
    found.create("Pod", pod(nodeName="n"))
    run(found, [NodeAgent(found, termination_seconds=60)], lambda made: made.delete("Pod", "default", "p"))
    leaving = found.get("Pod", "default", "p")
    assert leaving is not None
    assert leaving["metadata"]["deletionGracePeriodSeconds"] == 30


# ---- deployments


def deployment(replicas: int = 3, image: str = "nginx:1", **spec: Any) -> Json:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": image}]}}
    selector = {"matchLabels": {"app": "web"}}
    return {
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": replicas, "selector": selector, "template": template, **spec},
    }


class Binder(Reconciler):
    """Puts every pod on node n at once: what a scheduler would do."""

    kinds = ("Pod",)

    def observe(self, revision: Any, *, deleted: bool) -> None:
        if not deleted and not revision.fields[0]:
            self.enqueue(("Pod", revision.namespace, revision.name))

    def reconcile(self, key: tuple[str, str, str]) -> None:
        found = self.store.get(*key)
        if found is not None and not found["spec"].get("nodeName"):
            bind(self.store, key[2])


def cluster() -> tuple[Store, list[Reconciler]]:
    made = store()
    made.create("Node", node())
    return made, [DeploymentController(made), NodeAgent(made), Binder(made)]


def images(made: Store) -> list[str]:
    return sorted(each["spec"]["containers"][0]["image"] for each in made.list("Pod"))


def change(**spec: Any) -> Step:
    def step(made: Store) -> None:
        present = made.get("Deployment", "default", "web")
        assert present is not None
        present["spec"].update(spec)
        made.update("Deployment", present)

    return step


def roll_to(image: str) -> Step:
    return change(template=deployment(image=image)["spec"]["template"])


def test_a_deployment_makes_a_replica_set_that_makes_pods() -> None:
    made, controllers = cluster()
    run(made, controllers, lambda made: made.create("Deployment", deployment()) and None)
    (replica_set,) = made.list("ReplicaSet")
    digest = replica_set["metadata"]["labels"][HASH]
    assert replica_set["metadata"]["name"] == f"web-{digest}"
    assert replica_set["spec"]["selector"]["matchLabels"] == {"app": "web", HASH: digest}
    pods = made.list("Pod")
    assert len(pods) == 3
    assert all(each["metadata"]["labels"] == {"app": "web", HASH: digest} for each in pods)
    assert all(each["metadata"]["ownerReferences"][0]["name"] == f"web-{digest}" for each in pods)
    found = made.get("Deployment", "default", "web")
    assert found is not None
    assert found["metadata"]["annotations"][REVISION] == "1"
    assert found["metadata"]["generation"] == found["status"]["observedGeneration"] == 1
    counts = {
        field: found["status"][field] for field in ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    }
    assert set(counts.values()) == {3}
    assert condition(found, "Available")["status"] == "True"
    assert condition(found, "Progressing")["reason"] == "NewReplicaSetAvailable"


@pytest.mark.parametrize(
    ("replicas", "pods"),
    [
        pytest.param(5, 5, id="up"),
        pytest.param(1, 1, id="down"),
        pytest.param(0, 0, id="to nothing"),
        pytest.param(250, 250, id="by more than one burst"),
    ],
)
def test_scale(replicas: int, pods: int) -> None:
    made, controllers = cluster()
    made.create("Deployment", deployment())
    run(made, controllers, change(replicas=replicas))
    assert len(made.list("Pod")) == pods
    found = made.get("Deployment", "default", "web")
    assert found is not None
    assert found["status"].get("availableReplicas", 0) == pods


@pytest.mark.parametrize(
    "strategy",
    [
        pytest.param(
            {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}, id="one more at a time"
        ),
        pytest.param(
            {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}, id="one less at a time"
        ),
        pytest.param({"type": "Recreate"}, id="all at once"),
    ],
)
def test_rollout_and_back(strategy: Json) -> None:
    made, controllers = cluster()
    made.create("Deployment", deployment(strategy=strategy))

    def has_rolled(made: Store) -> None:
        assert images(made) == ["nginx:2"] * 3
        found = made.get("Deployment", "default", "web")
        assert found is not None
        assert found["metadata"]["annotations"][REVISION] == "2"
        assert found["status"]["updatedReplicas"] == 3

    run(made, controllers, roll_to("nginx:2"), has_rolled, roll_to("nginx:1"))
    assert images(made) == ["nginx:1"] * 3
    assert len(made.list("ReplicaSet")) == 2
    found = made.get("Deployment", "default", "web")
    assert found is not None
    assert found["metadata"]["annotations"][REVISION] == "3"


def test_a_rollout_never_has_too_few_or_too_many_pods() -> None:
    made, controllers = cluster()
    made.create(
        "Deployment",
        deployment(4, strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}),
    )
    most, least = 0, 100

    def watch(change: Any) -> None:
        nonlocal most, least
        pods = made.list("Pod", predicate=lambda each: not each["metadata"].get("deletionTimestamp"))
        most = max(most, len(pods))
        least = min(least, sum(each["status"]["phase"] == "Running" for each in pods))

    run(made, controllers, lambda made: made.subscribe(["Pod"], watch) and None, roll_to("nginx:2"))
    assert images(made) == ["nginx:2"] * 4
    assert (most, least) == (5, 3)


def test_a_rollout_whose_pods_do_not_start_stops() -> None:
    made, (deployments, agent, binder) = cluster()
    made.create("Deployment", deployment(4))
    run(made, [deployments, agent, binder])
    run(made, [DeploymentController(made)], roll_to("nginx:2"))
    staying = made.list("Pod", predicate=lambda each: not each["metadata"].get("deletionTimestamp"))
    assert sorted(each["spec"]["containers"][0]["image"] for each in staying) == ["nginx:1"] * 3 + ["nginx:2"] * 2
    found = made.get("Deployment", "default", "web")
    assert condition(found, "Available")["status"] == "True"
    assert condition(found, "Progressing")["reason"] == "ReplicaSetUpdated"


def test_a_rollout_that_does_not_move_is_late() -> None:
    time = Turned()
    made = store(time)
    made.create("Deployment", deployment(1, progressDeadlineSeconds=600))
    run(made, [DeploymentController(made)])
    time.seconds += 601
    run(made, [DeploymentController(made)])
    assert condition(made.get("Deployment", "default", "web"), "Progressing")["reason"] == "ProgressDeadlineExceeded"


def test_a_paused_deployment_does_not_roll() -> None:
    made, controllers = cluster()
    made.create("Deployment", deployment())
    run(made, controllers, change(paused=True), roll_to("nginx:2"))
    assert images(made) == ["nginx:1"] * 3


def test_history_is_limited() -> None:
    made, controllers = cluster()
    made.create("Deployment", deployment(1, revisionHistoryLimit=1))
    run(made, controllers, *(roll_to(f"nginx:{version}") for version in range(2, 6)))
    kept = sorted(each["metadata"]["annotations"][REVISION] for each in made.list("ReplicaSet"))
    assert kept == ["4", "5"]


def test_a_lost_pod_is_replaced() -> None:
    made, controllers = cluster()
    made.create("Deployment", deployment())

    def lose(made: Store) -> None:
        made.delete("Pod", "default", made.list("Pod")[0]["metadata"]["name"], grace=0)

    run(made, controllers, lose)
    assert len(made.list("Pod")) == 3


def test_a_deleted_deployment_takes_everything_along() -> None:
    made, controllers = cluster()
    made.create("Deployment", deployment())
    run(made, controllers, lambda made: made.delete("Deployment", "default", "web"))
    assert (made.list("ReplicaSet"), made.list("Pod")) == ([], [])


def test_pods_that_nobody_misses_go_first() -> None:
    made, (deployments, agent, binder) = cluster()
    made.create("Deployment", deployment(2))
    run(made, [deployments, agent, binder])
    run(made, [DeploymentController(made)], change(replicas=4), change(replicas=2))
    assert [each["status"]["phase"] for each in made.list("Pod")] == ["Running", "Running"]


def test_a_replica_set_without_a_deployment_works_alone() -> None:
    made, controllers = cluster()
    run(made, controllers, lambda made: made.create("ReplicaSet", deployment(2)) and None)
    assert len(made.list("Pod")) == 2
    found = made.get("ReplicaSet", "default", "web")
    assert found is not None
    assert found["status"]["readyReplicas"] == 2


def test_pods_that_are_refused_are_a_condition() -> None:
    made = store()
    refused = deployment(1)
    refused["spec"]["template"]["spec"]["priorityClassName"] = "none"
    made.create("ReplicaSet", refused)
    run(made, [DeploymentController(made)])
    failure = condition(made.get("ReplicaSet", "default", "web"), "ReplicaFailure")
    assert "no PriorityClass with name none was found" in failure["message"]


# ---- the arithmetic of a rollout


@pytest.mark.parametrize(
    ("replicas", "rolling", "expected"),
    [
        pytest.param(10, {}, rollout.Limits(10, 3, 2), id="a quarter, surge rounded up and allowance down"),
        pytest.param(1, {}, rollout.Limits(1, 1, 0), id="of one"),
        pytest.param(
            4, {"maxSurge": 2, "maxUnavailable": 0}, rollout.Limits(4, 2, 0), id="numbers are taken as they are"
        ),
        pytest.param(4, {"maxSurge": 0, "maxUnavailable": 0}, rollout.Limits(4, 0, 1), id="something must move"),
        pytest.param(2, {"maxUnavailable": 5}, rollout.Limits(2, 1, 2), id="no more can be missing than there are"),
    ],
)
def test_limits(replicas: int, rolling: Json, expected: rollout.Limits) -> None:
    assert (
        rollout.limits({"replicas": replicas, "strategy": {"type": "RollingUpdate", "rollingUpdate": rolling}})
        == expected
    )


@given(st.integers(1, 20), st.integers(0, 5), st.integers(0, 5), st.lists(st.integers(0, 20), max_size=3), st.data())
def test_every_step_keeps_the_promises_and_the_last_is_done(
    replicas: int, surge: int, unavailable: int, old: list[int], data: st.DataObject
) -> None:
    rolling = {"maxSurge": surge, "maxUnavailable": unavailable}
    wanted = rollout.limits({"replicas": replicas, "strategy": {"type": "RollingUpdate", "rollingUpdate": rolling}})
    if sum(old) > replicas:
        old = [replicas]
    ready = [*old, 0]
    sizes = [*old, 0]
    for _ in range(200):
        before = sum(ready)
        states = [rollout.Size(size, available) for size, available in zip(sizes, ready, strict=True)]
        sizes = rollout.next_sizes(
            wanted, states[-1], states[:-1], recreate=False, paused=False, old_pods=sum(sizes[:-1])
        )
        assert sum(sizes) <= replicas + wanted.surge
        ready = [min(size, available) for size, available in zip(sizes, ready, strict=True)]
        assert sum(ready) >= min(before, replicas - wanted.unavailable)
        starting = sizes[-1] - ready[-1]
        if starting:
            ready[-1] += data.draw(st.integers(1, starting))
        if sizes == [0] * len(old) + [replicas] and ready == sizes:
            return
    pytest.fail(f"the rollout did not end: {sizes}, {ready}")
