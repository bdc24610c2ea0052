"""A pod as one line for people: what `kubectl get pods` shows in READY, STATUS and RESTARTS.

STATUS is not the phase. It is the most telling thing about the pod: why it was gated, what its init containers
are at, what a container waits for, that it is being deleted. The order of those rules is kubectl's own.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ksched.sandbox.ages import age

Json = dict[str, Any]


def pod_row(pod: Json, now: datetime) -> list[Any]:
    """The cells of a pod: the five of every listing, and the four of a wide one."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    init_text, restarts, ready, initializing = _init_containers(spec, status)
    reason = _reason_of_phase(status)
    if initializing:
        reason = init_text
    else:
        reason, main_restarts, main_ready = _containers(status, reason)
        restarts += main_restarts
        ready += main_ready
    if pod["metadata"].get("deletionTimestamp"):
        reason = "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
    sidecars = sum(1 for container in spec.get("initContainers") or () if _is_sidecar(container))
    total = len(spec.get("containers") or ()) + sidecars
    return [
        pod["metadata"]["name"],
        f"{ready}/{total}",
        reason,
        _restarts(status, restarts, now),
        age(pod["metadata"].get("creationTimestamp"), now),
        status.get("podIP") or "<none>",
        spec.get("nodeName") or "<none>",
        status.get("nominatedNodeName") or "<none>",
        _readiness_gates(spec, status),
    ]


def _reason_of_phase(status: Json) -> str:
    reason: str = status.get("reason") or status.get("phase") or ""
    for condition in status.get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            return "SchedulingGated"
    return reason


def _init_containers(spec: Json, status: Json) -> tuple[str, int, int, bool]:
    """What the init containers are at: (text, restarts, ready sidecars, whether they are not through yet)."""
    by_name = {container["name"]: container for container in spec.get("initContainers") or ()}
    restarts = ready = 0
    for position, state in enumerate(status.get("initContainerStatuses") or ()):
        sidecar = _is_sidecar(by_name.get(state["name"], {}))
        restarts += state.get("restartCount", 0)
        terminated, waiting = _state(state, "terminated"), _state(state, "waiting")
        if terminated is not None and terminated.get("exitCode") == 0:
            continue
        if sidecar and state.get("started"):
            ready += bool(state.get("ready"))
            continue
        if terminated is not None:
            return f"Init:{_why_terminated(terminated)}", restarts, ready, True
        if waiting is not None and waiting.get("reason") not in {None, "", "PodInitializing"}:
            return f"Init:{waiting['reason']}", restarts, ready, True
        return f"Init:{position}/{len(by_name)}", restarts, ready, True
    return "", restarts, ready, False


def _is_sidecar(container: Json) -> bool:
    return container.get("restartPolicy") == "Always"


def _state(container_status: Json, which: str) -> Json | None:
    state: Json | None = (container_status.get("state") or {}).get(which)
    return state


def _why_terminated(terminated: Json) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def _containers(status: Json, reason: str) -> tuple[str, int, int]:
    """What the containers are at: (text, restarts, ready containers); the first with something to say is heard."""
    restarts = ready = 0
    has_running = False
    for state in reversed(status.get("containerStatuses") or []):
        restarts += state.get("restartCount", 0)
        waiting, terminated = _state(state, "waiting"), _state(state, "terminated")
        if waiting is not None and waiting.get("reason"):
            reason = waiting["reason"]
        elif terminated is not None:
            reason = _why_terminated(terminated)
        elif state.get("ready") and _state(state, "running") is not None:
            has_running = True
            ready += 1
    if reason == "Completed" and has_running:
        reason = "Running" if _condition(status, "Ready") else "NotReady"
    return reason, restarts, ready


def _condition(status: Json, which: str) -> bool:
    return any(
        condition["type"] == which and condition.get("status") == "True" for condition in status.get("conditions") or ()
    )


def _restarts(status: Json, restarts: int, now: datetime) -> str:
    """The number of restarts, and when the last one was."""
    ends = [
        state["lastState"]["terminated"]["finishedAt"]
        for state in [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
        if ((state.get("lastState") or {}).get("terminated") or {}).get("finishedAt")
    ]
    return f"{restarts} ({age(max(ends), now)} ago)" if restarts and ends else str(restarts)


def _readiness_gates(spec: Json, status: Json) -> str:
    gates = spec.get("readinessGates") or ()
    if not gates:
        return "<none>"
    return f"{sum(_condition(status, gate['conditionType']) for gate in gates)}/{len(gates)}"
