"""The sandbox's kubelets and node lifecycle controller: pods on nodes run, deletions end, unfit nodes are tainted.

There is one agent for all nodes. A pod that is bound to a node which exists runs at once and is ready; nothing in it is
executed, and nothing ever fails. A deletion ends as soon as the agent sees it (or after `termination_seconds`). Nodes
get the taints that Kubernetes gives them: for being cordoned, for not being ready, for pressure. What it does not do:
evict pods from nodes with `NoExecute` taints, and notice that a node is silent.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ksched.errors import Refused
from ksched.sandbox.controllers.reconciler import Key, Reconciler
from ksched.sandbox.pod_updates import with_condition
from ksched.sandbox.revisions import Revision
from ksched.sandbox.store import Store

Json = dict[str, Any]

_FINISHED: Final = ("Succeeded", "Failed")
_UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
# Taints for a condition that has a status: (condition, status) -> key and effects.
_TAINTS_OF_CONDITIONS: Final[dict[tuple[str, str], tuple[str, tuple[str, ...]]]] = {
    ("Ready", "False"): ("node.kubernetes.io/not-ready", ("NoSchedule", "NoExecute")),
    ("Ready", "Unknown"): ("node.kubernetes.io/unreachable", ("NoSchedule", "NoExecute")),
    ("MemoryPressure", "True"): ("node.kubernetes.io/memory-pressure", ("NoSchedule",)),
    ("DiskPressure", "True"): ("node.kubernetes.io/disk-pressure", ("NoSchedule",)),
    ("PIDPressure", "True"): ("node.kubernetes.io/pid-pressure", ("NoSchedule",)),
    ("NetworkUnavailable", "True"): ("node.kubernetes.io/network-unavailable", ("NoSchedule",)),
}
_OWN_TAINTS: Final = frozenset({_UNSCHEDULABLE, *(key for key, _ in _TAINTS_OF_CONDITIONS.values())})
# What a kubelet reports of a node that is well: condition, status, reason, message.
_WELL: Final = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)
_POD_CONDITIONS: Final = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")


class NodeAgent(Reconciler):
    """Runs what is bound, ends what is deleted, and taints what is unfit."""

    kinds = ("Node", "Pod")

    def __init__(self, store: Store, *, termination_seconds: float = 0.0) -> None:
        super().__init__(store)
        self._termination_seconds = termination_seconds
        self._node_addresses: dict[str, str] = {}
        self._pods_waiting_for_node: dict[str, dict[Key, None]] = {}
        self._ending: set[Key] = set()
        self._addresses_given = 0

    def observe(self, revision: Revision, *, deleted: bool) -> None:
        """Look at nodes that changed, and at pods on nodes that do not run yet or are to end."""
        key = (revision.kind, revision.namespace, revision.name)
        if revision.kind == "Node":
            self._observe_node(key, deleted=deleted)
        elif deleted:
            self._ending.discard(key)
        else:
            node_name, phase = revision.fields[0], revision.fields[2]
            if node_name and (phase in {"Pending", ""} or b'"deletionTimestamp":' in revision.raw):
                self.enqueue(key)

    def reconcile(self, key: Key) -> None:
        """Do what the kubelet of the pod's node, or the controller of the node's life, would do now."""
        kind, namespace, name = key
        obj = self.store.get(kind, namespace, name)
        if obj is None:
            return
        if kind == "Node":
            self._tend_node(obj)
        elif obj["metadata"].get("deletionTimestamp"):
            self._end_pod(key, obj)
        elif obj["status"].get("phase") not in {"Running", *_FINISHED}:
            self._run_pod(key, obj)

    # ---- nodes

    def _observe_node(self, key: Key, *, deleted: bool) -> None:
        name = key[2]
        if deleted:
            self._node_addresses.pop(name, None)
            return
        self.enqueue(key)
        self._node_addresses.setdefault(name, "")
        for waiting in self._pods_waiting_for_node.pop(name, ()):
            self.enqueue(waiting)

    def _tend_node(self, node: Json) -> None:
        status = node.setdefault("status", {})
        conditions = status.get("conditions") or []
        if not any(condition["type"] == "Ready" for condition in conditions):
            for condition_type, value, reason, message in _WELL:
                reported = {"type": condition_type, "status": value, "reason": reason, "message": message}
                conditions = with_condition(conditions, reported, self.clock.stamp())
            status["conditions"] = conditions
            node = self.store.update_status("Node", node)
        addresses = status.get("addresses") or ()
        internal = (address["address"] for address in addresses if address["type"] == "InternalIP")
        self._node_addresses[node["metadata"]["name"]] = next(internal, "")
        spec = node.setdefault("spec", {})
        present: list[Json] = spec.get("taints") or []
        taints = list(self._taints(node, present))
        if taints != present:
            spec["taints"] = taints
            self.store.update("Node", node)

    def _taints(self, node: Json, present: list[Json]) -> Iterator[Json]:
        """The taints that a node should have: those that others gave it, and those of its conditions."""
        wanted = dict.fromkeys(_wanted_taints(node))
        for taint in present:
            identity = (taint["key"], taint["effect"])
            if identity in wanted:
                del wanted[identity]
                yield taint
            elif taint["key"] not in _OWN_TAINTS:
                yield taint
        for key, effect in wanted:
            yield {"key": key, "effect": effect, "timeAdded": self.clock.stamp()}

    # ---- pods

    def _run_pod(self, key: Key, pod: Json) -> None:
        node_name = pod["spec"]["nodeName"]
        if node_name not in self._node_addresses:
            self._pods_waiting_for_node.setdefault(node_name, {})[key] = None
            return
        now = self.clock.stamp()
        status = pod["status"]
        own_address = self._node_addresses[node_name]
        pod_address = own_address if pod["spec"].get("hostNetwork") and own_address else self._next_address()
        status |= {
            "phase": "Running",
            "startTime": now,
            "podIP": pod_address,
            "podIPs": [{"ip": pod_address}],
            "containerStatuses": [_running(container, pod, now) for container in pod["spec"]["containers"]],
            "observedGeneration": pod["metadata"].get("generation", 1),
        }
        if own_address:
            status["hostIP"] = own_address
            status["hostIPs"] = [{"ip": own_address}]
        init_containers = pod["spec"].get("initContainers")
        if init_containers:
            status["initContainerStatuses"] = [_initialized(container, pod, now) for container in init_containers]
        for condition_type in _POD_CONDITIONS:
            condition = {"type": condition_type, "status": "True", "observedGeneration": status["observedGeneration"]}
            status["conditions"] = with_condition(status.get("conditions") or [], condition, now)
        self.store.update_status("Pod", pod)

    def _end_pod(self, key: Key, pod: Json) -> None:
        grace = pod["metadata"].get("deletionGracePeriodSeconds") or 0
        if not grace:
            return  # what it still waits for is a finalizer
        delay = min(self._termination_seconds, grace)
        if delay > 0 and key not in self._ending:
            self._ending.add(key)
            self.enqueue_after(key, delay)
            return
        self._ending.discard(key)
        try:
            self.store.delete("Pod", key[1], key[2], grace=0)
        except Refused as refused:
            if refused.code != 404:
                raise

    def _next_address(self) -> str:
        """An address of the pod network (10.128.0.0/9), used again only after eight million others."""
        self._addresses_given = self._addresses_given % ((1 << 23) - 2) + 1
        number = (10 << 24) + (1 << 23) + self._addresses_given
        return ".".join(str(number >> shift & 255) for shift in (24, 16, 8, 0))


def _wanted_taints(node: Json) -> Iterator[tuple[str, str]]:
    """Key and effect of every taint that Kubernetes gives a node in this state."""
    if node["spec"].get("unschedulable"):
        yield _UNSCHEDULABLE, "NoSchedule"
    for condition in node["status"].get("conditions") or ():
        key, effects = _TAINTS_OF_CONDITIONS.get((condition["type"], condition.get("status", "")), ("", ()))
        for effect in effects:
            yield key, effect


def _running(container: Json, pod: Json, now: str) -> Json:
    return {
        "name": container["name"],
        "image": container["image"],
        "imageID": container["image"],
        "containerID": _container_id(container, pod),
        "ready": True,
        "started": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": now}},
        "lastState": {},
    }


def _initialized(container: Json, pod: Json, now: str) -> Json:
    if container.get("restartPolicy") == "Always":
        return _running(container, pod, now)
    done = {"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now}
    done["containerID"] = _container_id(container, pod)
    return _running(container, pod, now) | {"started": False, "state": {"terminated": done}}


def _container_id(container: Json, pod: Json) -> str:
    return f"sandbox://{pod['metadata']['uid']}/{container['name']}"
