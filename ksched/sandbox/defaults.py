"""What the API server makes of an object before it stores it: the way in for creates, updates and bindings.

Three functions, called by the store with decoded objects: `prepare_create`, `prepare_update` and `bind`. They own the
rules that all kinds share (metadata, generations, what a status update may touch, fields that never change) and know
which module has the rest: `pod_defaults.py`, `pod_validation.py` and `pod_updates.py` for pods, `kind_defaults.py` for
the other kinds. What is refused is raised as `Refused`, with the code, reason and text of a real API server.

`prepare_create` and `prepare_update` take over the new object: it is changed in place, and must not be used by the
caller afterwards. What `lookup` gives is never changed, and `old` keeps its meaning.
"""

from __future__ import annotations

import random
from typing import Any, Final

from ksched.errors import Refused
from ksched.sandbox import status
from ksched.sandbox.kind_defaults import DEFAULTS
from ksched.sandbox.pod_defaults import Lookup, admit_pod, default_pod_spec
from ksched.sandbox.pod_updates import bind_pod, resize_pod, update_pod_spec
from ksched.sandbox.pod_validation import check_pod_spec
from ksched.sandbox.resources import STORED_KINDS
from ksched.sandbox.validation import Findings, check_labels, check_name, malformed

Json = dict[str, Any]

# Kinds whose generation counts the changes of what was asked for.
_WITH_GENERATION: Final = frozenset(
    {
        "DaemonSet",
        "Deployment",
        "Job",
        "Pod",
        "PodDisruptionBudget",
        "PodGroup",
        "PriorityClass",
        "ReplicaSet",
        "ReplicationController",
        "StatefulSet",
    }
)
# A deployment's generation also moves with its annotations, which its replica sets take over.
_GENERATION_OF_ANNOTATIONS: Final = frozenset({"Deployment"})
# Nodes are created with the status that their kubelet knows; every other status belongs to a controller.
_STATUS_KEPT_AT_CREATE: Final = frozenset({"Node"})
_HAS_STATUS: Final = frozenset(kind for kind, resource in STORED_KINDS.items() if resource.subresource("status"))
_SERVER_OWNED: Final = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)
_SPEC_IS_REQUIRED: Final = frozenset(
    {
        "DaemonSet",
        "Deployment",
        "Job",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "ReplicaSet",
        "ReplicationController",
        "StatefulSet",
    }
)
# Fields that may not change, by kind and path.
_IMMUTABLE: Final[dict[str, tuple[tuple[str, ...], ...]]] = {
    "DaemonSet": (("spec", "selector"),),
    "Deployment": (("spec", "selector"),),
    "Job": (("spec", "selector"), ("spec", "completionMode")),
    "PriorityClass": (("value",), ("preemptionPolicy",)),
    "ReplicaSet": (("spec", "selector"),),
    "ResourceClaim": (("spec",),),
    "ResourceClaimTemplate": (("spec",),),
    "StatefulSet": (("spec", "selector"), ("spec", "serviceName"), ("spec", "podManagementPolicy")),
    "StorageClass": (("provisioner",), ("parameters",), ("reclaimPolicy",), ("volumeBindingMode",)),
    "VolumeAttachment": (("spec",),),
}
_CLAIM_RULE: Final = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)
_NAME_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_GENERATED_LETTERS: Final = 5
_GENERATED_BASE_LIMIT: Final = 63 - _GENERATED_LETTERS
_ENTROPY: Final = random.SystemRandom()
# What rules run into where a field has another type than in the API.
_MISSHAPEN: Final = (AttributeError, KeyError, TypeError, ValueError)


def prepare_create(kind: str, obj: Json, lookup: Lookup, now: str, *, rng: random.Random = _ENTROPY) -> Json:
    """The object as it is stored when it is created, or `Refused`.

    `lookup(kind, namespace, name)` reads stored objects; asked for the PriorityClass with the empty name, it answers
    with the one that is the global default. `now` is the creation time as RFC 3339 with whole seconds.
    """
    findings = Findings()
    try:
        drop_nulls(obj)
        metadata = _new_metadata(obj, kind, now, rng)
        _check_metadata(findings, metadata, kind)
        if kind not in _STATUS_KEPT_AT_CREATE and kind in _HAS_STATUS:
            obj.pop("status", None)
        if kind == "Pod":
            _create_pod(findings, obj, lookup)
        elif kind in DEFAULTS:
            _require_spec(obj, kind)
            DEFAULTS[kind](obj, findings, rng)
    except _MISSHAPEN as error:
        raise _misshapen(kind, error) from error
    findings.refuse(kind, metadata["name"])
    return obj


def prepare_update(kind: str, old: Json, new: Json, subresource: str | None, now: str) -> Json:
    """The object as it is stored when `new` is written over `old`, or `Refused`.

    A write to the object keeps its status, a write to `status` keeps everything but the status and the metadata that
    clients own. The resource version is the store's business. `new` may share parts with `old`, as patches leave it.
    """
    try:
        # Shared as well, and about to be changed.
        new["metadata"] = dict(new.get("metadata") or {})
        _keep_server_metadata(kind, old, new)
        if subresource == "status":
            return _update_status(kind, old, new)
        drop_nulls(new)
        if kind in _HAS_STATUS:
            if "status" in old:
                new["status"] = old["status"]
            else:
                new.pop("status", None)
        findings = Findings()
        _check_metadata(findings, new["metadata"], kind)
        if kind == "Pod":
            _update_pod(findings, old, new, subresource)
        else:
            _update_other(findings, kind, old, new)
    except _MISSHAPEN as error:
        raise _misshapen(kind, error) from error
    findings.refuse(kind, new["metadata"]["name"])
    _bump_generation(kind, old, new)
    return new


def bind(pod: Json, node: Json | None, binding: Json, now: str) -> Json:
    """The pod as it is stored after `binding` to `node` (None where the node does not exist), or `Refused`."""
    try:
        return bind_pod(pod, node, binding, now)
    except _MISSHAPEN as error:
        raise _misshapen("Binding", error) from error


def drop_nulls(value: Any) -> None:
    """Remove every field that is null, in place: to the API a null field is one that was not written."""
    if type(value) is dict:
        nulls = [field for field, inner in value.items() if inner is None]
        for field in nulls:
            del value[field]
        for inner in value.values():
            kind = type(inner)
            if kind is dict or kind is list:
                drop_nulls(inner)
    else:
        for inner in value:
            kind = type(inner)
            if kind is dict or kind is list:
                drop_nulls(inner)


def _misshapen(kind: str, error: Exception) -> Refused:
    # A real API server decodes into typed structs and refuses what has another shape. Objects here are plain
    # dicts: a list where a map should be shows as one of
    # these errors, at the first rule that reads the field.
    return malformed(kind, f"a field is missing or has another type than in the API: {error}")


# ---- create


def _new_metadata(obj: Json, kind: str, now: str, rng: random.Random) -> Json:
    metadata: Json = obj.setdefault("metadata", {})
    name = metadata.get("name")
    if not name and metadata.get("generateName"):
        base = metadata["generateName"][:_GENERATED_BASE_LIMIT]
        metadata["name"] = base + "".join(rng.choices(_NAME_LETTERS, k=_GENERATED_LETTERS))
    elif not name:
        findings = Findings()
        findings.required("metadata.name", "name or generateName is required")
        findings.refuse(kind, "")
    bits = f"{rng.getrandbits(128):032x}"
    metadata["uid"] = f"{bits[:8]}-{bits[8:12]}-4{bits[13:16]}-a{bits[17:20]}-{bits[20:]}"
    metadata["creationTimestamp"] = now
    for field in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"):
        metadata.pop(field, None)
    if kind in _WITH_GENERATION:
        metadata["generation"] = 1
    return metadata


def _check_metadata(findings: Findings, metadata: Json, kind: str) -> None:
    check_name(findings, kind, metadata["name"])
    labels = metadata.get("labels")
    if labels:
        check_labels(findings, labels, "metadata.labels")


def _require_spec(obj: Json, kind: str) -> None:
    if kind in _SPEC_IS_REQUIRED and not obj.get("spec"):
        findings = Findings()
        findings.required("spec")
        findings.refuse(kind, obj["metadata"]["name"])


def _create_pod(findings: Findings, pod: Json, lookup: Lookup) -> None:
    if not (pod.get("spec") or {}).get("containers"):
        findings.required("spec.containers")
        findings.refuse("Pod", pod["metadata"]["name"])
    admit_pod(pod, lookup)
    check_pod_spec(findings, pod["spec"], "spec")


# ---- update


def _keep_server_metadata(kind: str, old: Json, new: Json) -> None:
    before, after = old["metadata"], new["metadata"]
    uid = after.get("uid")
    if uid and uid != before["uid"]:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {before['uid']}"
        raise status.conflict(STORED_KINDS[kind], before["name"], why)
    for field in _SERVER_OWNED:
        if field in before:
            after[field] = before[field]
        else:
            after.pop(field, None)
    if "generation" in before:
        after["generation"] = before["generation"]
    if "managedFields" in before:
        after.setdefault("managedFields", before["managedFields"])


def _update_status(kind: str, old: Json, new: Json) -> Json:
    metadata = new["metadata"]
    drop_nulls(metadata)
    updated = {**old, "metadata": metadata}
    if new.get("status") is not None:
        updated["status"] = new["status"]
        drop_nulls(updated["status"])
    else:
        updated.pop("status", None)
    if kind == "Pod":
        # Kubelets of old sent pods without owners; upstream keeps them whatever a status update says.
        if "ownerReferences" in old["metadata"]:
            metadata["ownerReferences"] = old["metadata"]["ownerReferences"]
        if "status" in updated and "qosClass" in (old.get("status") or {}):
            updated["status"]["qosClass"] = old["status"]["qosClass"]
    return updated


def _update_pod(findings: Findings, old: Json, new: Json, subresource: str | None) -> None:
    if not (new.get("spec") or {}).get("containers"):
        findings.required("spec.containers")
        return
    default_pod_spec(new["spec"])
    if subresource == "resize":
        new["spec"] = resize_pod(old, new)["spec"]
    else:
        update_pod_spec(old, new)
    if new["spec"] != old["spec"]:
        check_pod_spec(findings, new["spec"], "spec", template=True)


def _update_other(findings: Findings, kind: str, old: Json, new: Json) -> None:
    if kind == "Service":
        _keep_cluster_address(old, new)
    _require_spec(new, kind)
    if kind in DEFAULTS:
        DEFAULTS[kind](new, findings, _ENTROPY)
    for path in _IMMUTABLE.get(kind, ()):
        before, after = _at(old, path), _at(new, path)
        if before != after:
            findings.invalid(".".join(path), after, "field is immutable")
    if kind == "PersistentVolumeClaim":
        _check_claim_update(findings, old, new)
    elif kind in {"ConfigMap", "Secret"} and old.get("immutable"):
        for field in ("data", "binaryData", "stringData"):
            if new.get(field) != old.get(field):
                findings.forbidden(field, "field is immutable when `immutable` is set")


def _at(obj: Json, path: tuple[str, ...]) -> Any:
    found: Any = obj
    for field in path:
        found = (found or {}).get(field)
    return found


def _keep_cluster_address(old: Json, new: Json) -> None:
    spec = new.setdefault("spec", {})
    for field in ("clusterIP", "clusterIPs"):
        if field in old["spec"] and not spec.get(field):
            spec[field] = old["spec"][field]


def _check_claim_update(findings: Findings, old: Json, new: Json) -> None:
    """A claim may ask for more storage, and be given its volume; nothing else of its spec changes."""
    mutable = {"resources", "volumeAttributesClassName"}
    if not old["spec"].get("volumeName"):
        mutable.add("volumeName")
    before = {field: value for field, value in old["spec"].items() if field not in mutable}
    after = {field: value for field, value in new["spec"].items() if field not in mutable}
    if before != after:
        findings.forbidden("spec", _CLAIM_RULE)


def _bump_generation(kind: str, old: Json, new: Json) -> None:
    if kind not in _WITH_GENERATION:
        return
    changed = new.get("spec") != old.get("spec")
    if kind in _GENERATION_OF_ANNOTATIONS:
        before, after = old["metadata"].get("annotations"), new["metadata"].get("annotations")
        changed = changed or (before or {}) != (after or {})
    if changed:
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
