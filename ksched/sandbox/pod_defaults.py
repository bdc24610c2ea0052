"""What happens to a new pod before it is stored: admission, defaults, and its first status.

These are the changes of a real API server that a scheduler or kubectl notices: the priority of the pod's class,
the two tolerations every pod gets, requests taken from limits, `matchLabelKeys` folded into selectors, host
ports, and the condition of a gated pod. What may not be is in `pod_validation.py`.

It runs for thousands of pods a second, so it changes the pod in place, and does nothing for fields that a pod
does not have.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from ksched.model.quantity import Quantity
from ksched.sandbox import status
from ksched.sandbox.resources import STORED_KINDS
from ksched.sandbox.validation import quantity

Json = dict[str, Any]
Lookup = Callable[[str, str, str], Json | None]

_NOT_READY: Final = "node.kubernetes.io/not-ready"
_UNREACHABLE: Final = "node.kubernetes.io/unreachable"
_EVICTION_SECONDS: Final = 300
_GATED_MESSAGE: Final = "Scheduling is blocked due to non-empty scheduling gates"
# Classes that every cluster has, whether or not somebody created the objects.
_SYSTEM_CLASSES: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_POD: Final = STORED_KINDS["Pod"]
_COMPUTE: Final = ("cpu", "memory")


def admit_pod(pod: Json, lookup: Lookup) -> None:
    """Apply admission and defaults to a new pod, in place, and give it the status that it starts with."""
    spec: Json = pod["spec"]
    labels: dict[str, str] = pod["metadata"].get("labels") or {}
    default_pod_spec(spec)
    _default_pod_only(spec)
    _admit_priority(pod, spec, lookup)
    _admit_tolerations(spec)
    if "affinity" in spec:
        _fold_match_label_keys_of_affinity(spec["affinity"], labels)
    if "topologySpreadConstraints" in spec:
        _fold_match_label_keys_of_spread(spec["topologySpreadConstraints"], labels)
    pod["status"] = _first_status(spec)


def default_pod_spec(spec: Json) -> None:
    """Set the defaults that pods and pod templates share, in place."""
    get = spec.get
    if not get("restartPolicy"):
        spec["restartPolicy"] = "Always"
    if get("terminationGracePeriodSeconds") is None:
        spec["terminationGracePeriodSeconds"] = 30
    if not get("dnsPolicy"):
        spec["dnsPolicy"] = "ClusterFirst"
    if get("securityContext") is None:
        spec["securityContext"] = {}
    if not get("schedulerName"):
        spec["schedulerName"] = "default-scheduler"
    for container in get("containers") or ():
        _default_container(container)
    for container in get("initContainers") or ():
        _default_container(container)
    for volume in get("volumes") or ():
        if len(volume) == 1 and "name" in volume:
            volume["emptyDir"] = {}


def _default_container(container: Json) -> None:
    get = container.get
    if get("resources") is None:
        container["resources"] = {}
    if not get("terminationMessagePath"):
        container["terminationMessagePath"] = "/dev/termination-log"
    if not get("terminationMessagePolicy"):
        container["terminationMessagePolicy"] = "File"
    if not get("imagePullPolicy"):
        container["imagePullPolicy"] = _pull_policy(get("image") or "")
    for port in get("ports") or ():
        if not port.get("protocol"):
            port["protocol"] = "TCP"


@lru_cache(maxsize=1 << 12)
def _pull_policy(image: str) -> str:
    """`Always` for an image whose tag moves (`latest`, or none), otherwise `IfNotPresent`."""
    name, _, digest = image.partition("@")
    _, colon, tag = name.rpartition("/")[2].partition(":")
    tagged_latest = tag == "latest" or (not colon and not digest)
    return "Always" if tagged_latest else "IfNotPresent"


def _default_pod_only(spec: Json) -> None:
    """Set the defaults that pods have and templates do not: a template's would change the hash of its replica set."""
    get = spec.get
    if get("enableServiceLinks") is None:
        spec["enableServiceLinks"] = True
    account = get("serviceAccountName") or get("serviceAccount") or "default"
    spec["serviceAccountName"] = spec["serviceAccount"] = account
    init_containers = get("initContainers") or ()
    for container in spec["containers"]:
        _requests_from_limits(container["resources"])
    for container in init_containers:
        _requests_from_limits(container["resources"])
    if get("resources"):
        _default_pod_level_requests(spec)
    if get("hostNetwork"):
        for container in (*spec["containers"], *init_containers):
            for port in container.get("ports") or ():
                if not port.get("hostPort"):
                    port["hostPort"] = port["containerPort"]


def _requests_from_limits(resources: Json) -> None:
    limits = resources.get("limits")
    if limits:
        requests = resources.get("requests")
        if requests is None:
            requests = resources["requests"] = {}
        for name, amount in limits.items():
            if name not in requests:
                requests[name] = amount


def _default_pod_level_requests(spec: Json) -> None:
    """Fill pod-level requests from what the containers ask together, then from the pod-level limits."""
    limits = spec["resources"].get("limits")
    if not limits:
        return
    requests = spec["resources"].setdefault("requests", {})
    for name, amount in _requests_of_containers(spec).items():
        if name in _COMPUTE or name.startswith("hugepages-"):
            requests.setdefault(name, str(amount))
    for name, amount in limits.items():
        if name in _COMPUTE or name.startswith("hugepages-"):
            requests.setdefault(name, amount)


def _requests_of_containers(spec: Json) -> dict[str, Quantity]:
    """What the containers of a pod need at most at any time: sidecars stay, other init containers run one by one."""
    total: dict[str, Quantity] = {}
    for container in spec["containers"]:
        _add(total, _parsed(container["resources"].get("requests") or {}))
    sidecars: dict[str, Quantity] = {}
    peak: dict[str, Quantity] = {}
    for container in spec.get("initContainers") or ():
        needed = _parsed(container["resources"].get("requests") or {})
        _add(needed, sidecars)
        if container.get("restartPolicy") == "Always":
            own = _parsed(container["resources"].get("requests") or {})
            _add(total, own)
            _add(sidecars, own)
        for name, amount in needed.items():
            peak[name] = max(peak[name], amount) if name in peak else amount
    for name, amount in peak.items():
        total[name] = max(total[name], amount) if name in total else amount
    return total


def _parsed(requests: Json) -> dict[str, Quantity]:
    return {name: quantity(str(amount), "Pod") for name, amount in requests.items()}


def _add(total: dict[str, Quantity], more: dict[str, Quantity]) -> None:
    for name, amount in more.items():
        total[name] = total[name] + amount if name in total else amount


def _admit_priority(pod: Json, spec: Json, lookup: Lookup) -> None:
    """Take priority and preemption policy from the pod's class, or from the class that is the global default.

    A pod without a class keeps a priority written into it. A real API server refuses that; clusters for benchmarks
    switch that rule off, since their pods carry plain numbers.
    """
    class_name = spec.get("priorityClassName") or ""
    found = lookup("PriorityClass", "", class_name)
    if found is not None:
        value, policy = found.get("value", 0), found.get("preemptionPolicy") or "PreemptLowerPriority"
        # The lookup answers the empty name with the global default.
        class_name = class_name or found["metadata"]["name"]
    elif class_name in _SYSTEM_CLASSES:
        value, policy = _SYSTEM_CLASSES[class_name], "PreemptLowerPriority"
    elif class_name:
        why = f"no PriorityClass with name {class_name} was found"
        raise status.forbidden(_POD, _name_for_people(pod["metadata"]), why)
    else:
        value, policy = 0, "PreemptLowerPriority"
    own = spec.get("priority")
    if own is None:
        spec["priority"] = value
    elif spec.get("priorityClassName") and own != value:
        why = (
            f"the integer value of priority ({own}) must not be provided in pod spec;"
            f" priority admission controller computed {value} from the given PriorityClass name"
        )
        raise status.forbidden(_POD, _name_for_people(pod["metadata"]), why)
    if class_name and own is None:
        spec["priorityClassName"] = class_name
    if not spec.get("preemptionPolicy"):
        spec["preemptionPolicy"] = policy
    elif spec.get("priorityClassName") and spec["preemptionPolicy"] != policy:
        why = (
            f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be provided in pod spec;"
            f" priority admission controller computed {policy} from the given PriorityClass name"
        )
        raise status.forbidden(_POD, _name_for_people(pod["metadata"]), why)


def _name_for_people(metadata: Json) -> str:
    """How refusals call a pod: admission comes before a name is generated."""
    return str(metadata.get("generateName") or metadata["name"])


def _admit_tolerations(spec: Json) -> None:
    """Let the pod stay 300 s on a node that stops answering, unless it says something else."""
    tolerations = spec.get("tolerations")
    if tolerations is None:
        tolerations = spec["tolerations"] = []
    tolerates = {toleration.get("key") for toleration in tolerations if toleration.get("effect") in _EVICTING}
    # A toleration without a key (operator Exists) is for every key.
    if None in tolerates or "" in tolerates:
        return
    for key in (_NOT_READY, _UNREACHABLE):
        if key not in tolerates:
            tolerations.append(
                {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _EVICTION_SECONDS}
            )


_EVICTING: Final = frozenset({"NoExecute", "", None})


def _fold_match_label_keys_of_affinity(affinity: Json, labels: dict[str, str]) -> None:
    """Write `matchLabelKeys` and `mismatchLabelKeys` into the selectors of the terms: schedulers read only those."""
    for which in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(which)
        if not rules:
            continue
        terms = list(rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ())
        for weighted in rules.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
            terms.append(weighted["podAffinityTerm"])
        for term in terms:
            selector = term.get("labelSelector")
            if selector is not None:
                _fold_keys(selector, term.get("matchLabelKeys"), labels, "In")
                _fold_keys(selector, term.get("mismatchLabelKeys"), labels, "NotIn")


def _fold_match_label_keys_of_spread(constraints: list[Json], labels: dict[str, str]) -> None:
    for constraint in constraints:
        selector = constraint.get("labelSelector")
        if selector is not None:
            _fold_keys(selector, constraint.get("matchLabelKeys"), labels, "In")


def _fold_keys(selector: Json, keys: list[str] | None, labels: dict[str, str], operator: str) -> None:
    for key in keys or ():
        if key in labels:
            expressions = selector.setdefault("matchExpressions", [])
            expression = {"key": key, "operator": operator, "values": [labels[key]]}
            if expression not in expressions:
                expressions.append(expression)


def _first_status(spec: Json) -> Json:
    first: Json = {"phase": "Pending", "qosClass": _qos_class(spec)}
    if spec.get("schedulingGates"):
        first["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "lastProbeTime": None,
                "lastTransitionTime": None,
                "reason": "SchedulingGated",
                "message": _GATED_MESSAGE,
            }
        ]
    return first


def _qos_class(spec: Json) -> str:
    """Guaranteed, Burstable or BestEffort, from cpu and memory of the pod, or of all its containers."""
    if spec.get("resources"):
        holders = [spec["resources"]]
    else:
        holders = [container["resources"] for container in spec["containers"]]
        holders.extend(container["resources"] for container in spec.get("initContainers") or ())
    asked = False
    guaranteed = True
    for holder in holders:
        requests, limits = holder.get("requests") or {}, holder.get("limits") or {}
        for name in _COMPUTE:
            request, limit = requests.get(name), limits.get(name)
            has_request = request is not None and not _is_zero(str(request))
            has_limit = limit is not None and not _is_zero(str(limit))
            asked = asked or has_request or has_limit
            guaranteed = guaranteed and has_limit and (request == limit or _same(str(request), str(limit)))
    if not asked:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


@lru_cache(maxsize=1 << 14)
def _is_zero(text: str) -> bool:
    return quantity(text, "Pod").sign <= 0


@lru_cache(maxsize=1 << 14)
def _same(left: str, right: str) -> bool:
    return quantity(left, "Pod") == quantity(right, "Pod")
