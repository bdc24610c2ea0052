"""How a stored pod may change: updates of its spec, in-place resize, and the binding to a node.

A pod's spec is frozen but for a few fields. Gates may only be taken away; while there are any, the pod's node selector
and affinity may become narrower. `nodeName` is set once, by a binding.
"""

from __future__ import annotations

from typing import Any, Final

from ksched.errors import Refused
from ksched.sandbox import status
from ksched.sandbox.resources import STORED_KINDS
from ksched.sandbox.validation import Findings

Json = dict[str, Any]

_FROZEN: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_RESIZABLE_ONLY: Final = "only cpu and memory resources are mutable"
_TOPOLOGY_LABELS: Final = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")
_NODE_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
# What admission wrote at create; a client that sends its own manifest again does not have it.
_KEPT_WHEN_ABSENT: Final = ("priority", "preemptionPolicy", "priorityClassName", "serviceAccountName", "serviceAccount")


def bind_pod(pod: Json, node: Json | None, binding: Json, now: str) -> Json:
    """The pod as it is after `binding`, or `Refused`.

    `node` is the node that the binding names, or None where there is none: a real API server binds all the same, and
    so does this one. The pod takes over the node's zone and region labels unless it has its own.
    """
    name = pod["metadata"]["name"]
    target = _target(binding, name)
    _check_may_bind(pod, binding, name)
    metadata = dict(pod["metadata"])
    if node is not None:
        _copy_topology_labels(metadata, node["metadata"].get("labels") or {})
    annotations = (binding.get("metadata") or {}).get("annotations")
    if annotations:
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **annotations}
    bound = dict(pod.get("status") or {})
    bound.pop("nominatedNodeName", None)
    bound["conditions"] = with_condition(
        bound.get("conditions") or [],
        {"type": "PodScheduled", "status": "True", "observedGeneration": metadata.get("generation", 1)},
        now,
    )
    return {**pod, "metadata": metadata, "spec": {**pod["spec"], "nodeName": target}, "status": bound}


def _target(binding: Json, name: str) -> str:
    target = binding.get("target") or {}
    findings = Findings()
    if target.get("kind") not in {None, "", "Node"}:
        findings.unsupported("target.kind", target["kind"], ["Node", "<empty>"])
    if not target.get("name"):
        findings.required("target.name")
    findings.refuse("Binding", name)
    return str(target["name"])


def _check_may_bind(pod: Json, binding: Json, name: str) -> None:
    uid = (binding.get("metadata") or {}).get("uid")
    found = pod["metadata"].get("uid")
    if uid and uid != found:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {found}"
        raise _conflict(name, why)
    if pod["metadata"].get("deletionTimestamp"):
        raise _conflict(name, f"pod {name} is being deleted, cannot be assigned to a host")
    node_name = pod["spec"].get("nodeName")
    if node_name:
        raise _conflict(name, f'pod {name} is already assigned to node "{node_name}"')
    if pod["spec"].get("schedulingGates"):
        raise _conflict(name, f"pod {name} has non-empty .spec.schedulingGates")


def _conflict(name: str, why: str) -> Refused:
    return status.conflict(STORED_KINDS["Pod"], name, why, "binding")


def _copy_topology_labels(metadata: Json, node_labels: dict[str, str]) -> None:
    labels = metadata.get("labels") or {}
    missing = {key: node_labels[key] for key in _TOPOLOGY_LABELS if key in node_labels and key not in labels}
    if missing:
        metadata["labels"] = {**labels, **missing}


def with_condition(conditions: list[Json], condition: Json, now: str) -> list[Json]:
    """The conditions with one of them set; its transition time moves only if its status does."""
    kept: list[Json] = []
    transition = now
    for existing in conditions:
        if existing["type"] != condition["type"]:
            kept.append(existing)
        elif existing.get("status") == condition["status"]:
            transition = existing.get("lastTransitionTime") or now
    kept.append({"lastProbeTime": None, "lastTransitionTime": transition, **condition})
    return kept


def update_pod_spec(old: Json, new: Json) -> None:
    """Check `new` against `old`, and fill in what admission wrote into the old one."""
    old_spec, new_spec = old["spec"], new["spec"]
    for field in _KEPT_WHEN_ABSENT:
        if field in old_spec:
            new_spec.setdefault(field, old_spec[field])
    findings = Findings()
    _check_gates(findings, old_spec, new_spec)
    _check_tolerations(findings, old_spec, new_spec)
    frozen = _with_mutable_fields_of(old_spec, new_spec)
    if old_spec.get("schedulingGates"):
        _check_narrowing(findings, old_spec, new_spec)
        frozen = _with_fields_of(old_spec, frozen, ("nodeSelector", "affinity"))
    if frozen != old_spec:
        findings.forbidden("spec", _FROZEN)
    findings.refuse("Pod", new["metadata"]["name"])


def resize_pod(old: Json, new: Json) -> Json:
    """The old pod with the container resources of the new one; nothing else may differ."""
    spec = dict(old["spec"])
    for field in ("containers", "initContainers"):
        before, after = spec.get(field) or [], new["spec"].get(field) or []
        if before:
            spec[field] = [_resized(container, after) for container in before]
    if new["spec"].get("resources") is not None:
        spec["resources"] = new["spec"]["resources"]
    findings = Findings()
    if new["spec"] != spec:
        findings.forbidden("spec", _RESIZABLE_ONLY)
    findings.refuse("Pod", old["metadata"]["name"])
    return {**old, "spec": spec}


def _resized(container: Json, after: list[Json]) -> Json:
    for candidate in after:
        if candidate.get("name") == container["name"]:
            return {**container, "resources": candidate.get("resources") or {}}
    raise Refused(400, "BadRequest", f"a resize must name every container, and {container['name']!r} is missing")


def _check_gates(findings: Findings, old_spec: Json, new_spec: Json) -> None:
    before = {gate["name"] for gate in old_spec.get("schedulingGates") or ()}
    for index, gate in enumerate(new_spec.get("schedulingGates") or ()):
        if gate["name"] not in before:
            why = f"only deletion is allowed, but found new scheduling gate '{gate['name']}'"
            findings.forbidden(f"spec.schedulingGates[{index}].name", why)


def _check_tolerations(findings: Findings, old_spec: Json, new_spec: Json) -> None:
    after = [_without_seconds(toleration) for toleration in new_spec.get("tolerations") or ()]
    for toleration in old_spec.get("tolerations") or ():
        if _without_seconds(toleration) not in after:
            findings.forbidden(
                "spec.tolerations", "existing toleration can not be modified except its tolerationSeconds"
            )
            return


def _without_seconds(toleration: Json) -> Json:
    return {field: value for field, value in toleration.items() if field != "tolerationSeconds"}


def _with_mutable_fields_of(old_spec: Json, new_spec: Json) -> Json:
    """The new spec with every field that may change set back, so that comparing finds only what may not."""
    spec = _with_fields_of(old_spec, new_spec, ("schedulingGates", "tolerations", "activeDeadlineSeconds"))
    for field in ("containers", "initContainers"):
        before, after = old_spec.get(field) or [], spec.get(field) or []
        if len(before) == len(after) and before:
            spec[field] = [
                _with_fields_of(earlier, later, ("image",)) for earlier, later in zip(before, after, strict=True)
            ]
    if old_spec.get("terminationGracePeriodSeconds", 0) < 0 and spec.get("terminationGracePeriodSeconds") == 1:
        spec["terminationGracePeriodSeconds"] = old_spec["terminationGracePeriodSeconds"]
    return spec


def _with_fields_of(old: Json, new: Json, fields: tuple[str, ...]) -> Json:
    merged = dict(new)
    for field in fields:
        if field in old:
            merged[field] = old[field]
        else:
            merged.pop(field, None)
    return merged


def _check_narrowing(findings: Findings, old_spec: Json, new_spec: Json) -> None:
    """A gated pod may ask for less of the cluster, never for more."""
    before, after = old_spec.get("nodeSelector") or {}, new_spec.get("nodeSelector") or {}
    if any(after.get(key) != value for key, value in before.items()):
        findings.invalid("spec.nodeSelector", after, "only additions are allowed")
    old_affinity, new_affinity = old_spec.get("affinity") or {}, new_spec.get("affinity") or {}
    for field in ("podAffinity", "podAntiAffinity"):
        if old_affinity.get(field) != new_affinity.get(field):
            findings.invalid(f"spec.affinity.{field}", new_affinity.get(field), "field is immutable")
    old_rules, new_rules = old_affinity.get("nodeAffinity") or {}, new_affinity.get("nodeAffinity") or {}
    if not _narrows(old_rules.get(_NODE_REQUIRED), new_rules.get(_NODE_REQUIRED)):
        findings.invalid(
            f"spec.affinity.nodeAffinity.{_NODE_REQUIRED}", new_rules.get(_NODE_REQUIRED), "only additions are allowed"
        )


def _narrows(before: Json | None, after: Json | None) -> bool:
    """Whether every term of `after` has all that the same term of `before` had."""
    if not before:
        return True
    old_terms, new_terms = before["nodeSelectorTerms"], (after or {}).get("nodeSelectorTerms") or []
    if len(old_terms) != len(new_terms):
        return False
    for old_term, new_term in zip(old_terms, new_terms, strict=True):
        for field in ("matchExpressions", "matchFields"):
            kept = new_term.get(field) or []
            if any(expression not in kept for expression in old_term.get(field) or ()):
                return False
    return True
