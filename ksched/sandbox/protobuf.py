"""Protobuf bodies of the few kinds that kubectl's own commands send that way, and of no others.

`kubectl create deployment`, `create namespace` and their like, and the evictions of `kubectl drain`, speak protobuf
without asking whether the server does, and do not fall back. So those kinds can be read. Every other body, and one with
a field that is not in the table below, is answered 415: clients that negotiate then speak JSON, and nothing that was
written is lost in silence. Answers are always JSON.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

Json = dict[str, Any]

MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf"
_MAGIC: Final = b"k8s\x00"

_VARINT: Final = 0
_FIXED64: Final = 1
_LENGTH: Final = 2
_FIXED32: Final = 5

# Message -> field number -> (JSON name, type). "[]T" is a list, "{}T" a map from strings. Kubernetes writes fields that
# are not pointers even when they are empty, so empty values are dropped; "T?" keeps them, where zero means something.
_FIELDS: Final[dict[str, dict[int, tuple[str, str]]]] = {
    "ConfigMap": {
        1: ("metadata", "ObjectMeta"),
        2: ("data", "{}string"),
        3: ("binaryData", "{}bytes"),
        4: ("immutable", "bool?"),
    },
    "Container": {
        1: ("name", "string"),
        2: ("image", "string"),
        3: ("command", "[]string"),
        4: ("args", "[]string"),
        5: ("workingDir", "string"),
        6: ("ports", "[]ContainerPort"),
        7: ("env", "[]EnvVar"),
        8: ("resources", "ResourceRequirements"),
        13: ("terminationMessagePath", "string"),
        14: ("imagePullPolicy", "string"),
        16: ("stdin", "bool"),
        17: ("stdinOnce", "bool"),
        18: ("tty", "bool"),
        20: ("terminationMessagePolicy", "string"),
        24: ("restartPolicy", "string"),
    },
    "ContainerPort": {
        1: ("name", "string"),
        2: ("hostPort", "int"),
        3: ("containerPort", "int"),
        4: ("protocol", "string"),
        5: ("hostIP", "string"),
    },
    "DeleteOptions": {
        1: ("gracePeriodSeconds", "int?"),
        2: ("preconditions", "Preconditions"),
        3: ("orphanDependents", "bool?"),
        4: ("propagationPolicy", "string"),
        5: ("dryRun", "[]string"),
    },
    "Deployment": {1: ("metadata", "ObjectMeta"), 2: ("spec", "DeploymentSpec"), 3: ("status", "DeploymentStatus")},
    "DeploymentSpec": {
        1: ("replicas", "int?"),
        2: ("selector", "LabelSelector?"),
        3: ("template", "PodTemplateSpec"),
        4: ("strategy", "DeploymentStrategy"),
        5: ("minReadySeconds", "int"),
        6: ("revisionHistoryLimit", "int?"),
        7: ("paused", "bool"),
        9: ("progressDeadlineSeconds", "int?"),
    },
    "DeploymentStatus": {
        1: ("observedGeneration", "int"),
        2: ("replicas", "int"),
        3: ("updatedReplicas", "int"),
        4: ("availableReplicas", "int"),
        5: ("unavailableReplicas", "int"),
        7: ("readyReplicas", "int"),
    },
    "DeploymentStrategy": {1: ("type", "string"), 2: ("rollingUpdate", "RollingUpdateDeployment?")},
    "EnvVar": {1: ("name", "string"), 2: ("value", "string")},
    "Eviction": {1: ("metadata", "ObjectMeta"), 2: ("deleteOptions", "DeleteOptions?")},
    "IntOrString": {1: ("type", "int"), 2: ("intVal", "int"), 3: ("strVal", "string")},
    "Job": {1: ("metadata", "ObjectMeta"), 2: ("spec", "JobSpec"), 3: ("status", "JobStatus")},
    "JobSpec": {
        1: ("parallelism", "int?"),
        2: ("completions", "int?"),
        3: ("activeDeadlineSeconds", "int?"),
        4: ("selector", "LabelSelector?"),
        5: ("manualSelector", "bool?"),
        6: ("template", "PodTemplateSpec"),
        7: ("backoffLimit", "int?"),
        8: ("ttlSecondsAfterFinished", "int?"),
        9: ("completionMode", "string"),
        10: ("suspend", "bool?"),
    },
    "JobStatus": {
        4: ("active", "int"),
        5: ("succeeded", "int"),
        6: ("failed", "int"),
        7: ("completedIndexes", "string"),
    },
    "LabelSelector": {1: ("matchLabels", "{}string"), 2: ("matchExpressions", "[]LabelSelectorRequirement")},
    "LabelSelectorRequirement": {1: ("key", "string"), 2: ("operator", "string"), 3: ("values", "[]string")},
    "LoadBalancerStatus": {},
    "LocalObjectReference": {1: ("name", "string")},
    "Namespace": {1: ("metadata", "ObjectMeta"), 2: ("spec", "NamespaceSpec"), 3: ("status", "NamespaceStatus")},
    "NamespaceSpec": {1: ("finalizers", "[]string")},
    "NamespaceStatus": {1: ("phase", "string")},
    "NonResourceAttributes": {1: ("path", "string"), 2: ("verb", "string")},
    "ObjectMeta": {
        1: ("name", "string"),
        2: ("generateName", "string"),
        3: ("namespace", "string"),
        4: ("selfLink", "string"),
        5: ("uid", "string"),
        6: ("resourceVersion", "string"),
        7: ("generation", "int"),
        8: ("creationTimestamp", "Time"),
        9: ("deletionTimestamp", "Time"),
        10: ("deletionGracePeriodSeconds", "int?"),
        11: ("labels", "{}string"),
        12: ("annotations", "{}string"),
        13: ("ownerReferences", "[]OwnerReference"),
        14: ("finalizers", "[]string"),
    },
    "OwnerReference": {
        1: ("kind", "string"),
        3: ("name", "string"),
        4: ("uid", "string"),
        5: ("apiVersion", "string"),
        6: ("controller", "bool?"),
        7: ("blockOwnerDeletion", "bool?"),
    },
    "PodDisruptionBudget": {
        1: ("metadata", "ObjectMeta"),
        2: ("spec", "PodDisruptionBudgetSpec"),
        3: ("status", "PodDisruptionBudgetStatus"),
    },
    "PodDisruptionBudgetSpec": {
        1: ("minAvailable", "IntOrString?"),
        2: ("selector", "LabelSelector?"),
        3: ("maxUnavailable", "IntOrString?"),
        4: ("unhealthyPodEvictionPolicy", "string"),
    },
    "PodDisruptionBudgetStatus": {
        1: ("observedGeneration", "int"),
        3: ("disruptionsAllowed", "int"),
        4: ("currentHealthy", "int"),
        5: ("desiredHealthy", "int"),
        6: ("expectedPods", "int"),
    },
    "PodSpec": {
        2: ("containers", "[]Container"),
        3: ("restartPolicy", "string"),
        4: ("terminationGracePeriodSeconds", "int?"),
        5: ("activeDeadlineSeconds", "int?"),
        6: ("dnsPolicy", "string"),
        7: ("nodeSelector", "{}string"),
        8: ("serviceAccountName", "string"),
        9: ("serviceAccount", "string"),
        10: ("nodeName", "string"),
        11: ("hostNetwork", "bool"),
        12: ("hostPID", "bool"),
        13: ("hostIPC", "bool"),
        15: ("imagePullSecrets", "[]LocalObjectReference"),
        16: ("hostname", "string"),
        17: ("subdomain", "string"),
        19: ("schedulerName", "string"),
        20: ("initContainers", "[]Container"),
        21: ("automountServiceAccountToken", "bool?"),
        22: ("tolerations", "[]Toleration"),
        24: ("priorityClassName", "string"),
        25: ("priority", "int?"),
    },
    "PodTemplateSpec": {1: ("metadata", "ObjectMeta"), 2: ("spec", "PodSpec")},
    "Preconditions": {1: ("uid", "string"), 2: ("resourceVersion", "string")},
    "PriorityClass": {
        1: ("metadata", "ObjectMeta"),
        2: ("value", "int?"),
        3: ("globalDefault", "bool"),
        4: ("description", "string"),
        5: ("preemptionPolicy", "string"),
    },
    "Quantity": {1: ("string", "string")},
    "ResourceAttributes": {
        1: ("namespace", "string"),
        2: ("verb", "string"),
        3: ("group", "string"),
        4: ("version", "string"),
        5: ("resource", "string"),
        6: ("subresource", "string"),
        7: ("name", "string"),
    },
    "ResourceRequirements": {1: ("limits", "{}Quantity"), 2: ("requests", "{}Quantity")},
    "RollingUpdateDeployment": {1: ("maxUnavailable", "IntOrString?"), 2: ("maxSurge", "IntOrString?")},
    "Secret": {
        1: ("metadata", "ObjectMeta"),
        2: ("data", "{}bytes"),
        3: ("type", "string"),
        4: ("stringData", "{}string"),
        5: ("immutable", "bool?"),
    },
    "SelfSubjectAccessReview": {
        1: ("metadata", "ObjectMeta"),
        2: ("spec", "SelfSubjectAccessReviewSpec"),
        3: ("status", "SubjectAccessReviewStatus"),
    },
    "SelfSubjectAccessReviewSpec": {
        1: ("resourceAttributes", "ResourceAttributes"),
        2: ("nonResourceAttributes", "NonResourceAttributes"),
    },
    "Service": {1: ("metadata", "ObjectMeta"), 2: ("spec", "ServiceSpec"), 3: ("status", "ServiceStatus")},
    "ServiceAccount": {
        1: ("metadata", "ObjectMeta"),
        3: ("imagePullSecrets", "[]LocalObjectReference"),
        4: ("automountServiceAccountToken", "bool?"),
    },
    "ServicePort": {
        1: ("name", "string"),
        2: ("protocol", "string"),
        3: ("port", "int"),
        4: ("targetPort", "IntOrString?"),
        5: ("nodePort", "int"),
        6: ("appProtocol", "string"),
    },
    "ServiceSpec": {
        1: ("ports", "[]ServicePort"),
        2: ("selector", "{}string"),
        3: ("clusterIP", "string"),
        4: ("type", "string"),
        5: ("externalIPs", "[]string"),
        7: ("sessionAffinity", "string"),
        8: ("loadBalancerIP", "string"),
        9: ("loadBalancerSourceRanges", "[]string"),
        10: ("externalName", "string"),
        11: ("externalTrafficPolicy", "string"),
        12: ("healthCheckNodePort", "int"),
        13: ("publishNotReadyAddresses", "bool"),
    },
    "ServiceStatus": {1: ("loadBalancer", "LoadBalancerStatus")},
    "SubjectAccessReviewStatus": {
        1: ("allowed", "bool"),
        2: ("reason", "string"),
        3: ("evaluationError", "string"),
        4: ("denied", "bool"),
    },
    "Time": {1: ("seconds", "int"), 2: ("nanos", "int")},
    "Toleration": {
        1: ("key", "string"),
        2: ("operator", "string"),
        3: ("value", "string"),
        4: ("effect", "string"),
        5: ("tolerationSeconds", "int?"),
    },
    "TypeMeta": {1: ("apiVersion", "string"), 2: ("kind", "string")},
    "Unknown": {
        1: ("typeMeta", "TypeMeta"),
        2: ("raw", "raw"),
        3: ("contentEncoding", "string"),
        4: ("contentType", "string"),
    },
}

_READABLE: Final = frozenset(
    {
        "ConfigMap",
        "DeleteOptions",
        "Deployment",
        "Eviction",
        "Job",
        "Namespace",
        "PodDisruptionBudget",
        "PriorityClass",
        "Secret",
        "SelfSubjectAccessReview",
        "Service",
        "ServiceAccount",
    }
)


class Unreadable(ValueError):
    """A body that is not protobuf, or is of a kind or has a field that the sandbox does not read."""


def decode(body: bytes) -> Json:
    """The object that a protobuf body holds, as it would stand in JSON; raises `Unreadable`."""
    if not body.startswith(_MAGIC):
        raise Unreadable("the body does not begin as Kubernetes' protobuf does")
    envelope = _message(body[len(_MAGIC) :], "Unknown")
    meta = envelope.get("typeMeta", {})
    kind = meta.get("kind", "")
    if kind not in _READABLE:
        raise Unreadable(f"{kind or 'an object without a kind'} is only read as JSON or YAML")
    return {"kind": kind, "apiVersion": meta.get("apiVersion", ""), **_message(envelope.get("raw", b""), kind)}


def _message(data: bytes, name: str) -> Json:
    fields = _FIELDS[name]
    decoded: Json = {}
    for number, wire_type, value in _entries(data):
        if number not in fields:
            raise Unreadable(f"field {number} of {name} is only read as JSON or YAML")
        field, type_ = fields[number]
        if type_.startswith("{}"):
            key, item = _pair(value, type_[2:], f"{name}.{field}")
            decoded.setdefault(field, {})[key] = item
        elif type_.startswith("[]"):
            decoded.setdefault(field, []).append(_value(value, wire_type, type_[2:], f"{name}.{field}"))
        else:
            kept = type_.endswith("?")
            item = _value(value, wire_type, type_.removesuffix("?"), f"{name}.{field}")
            if kept or item not in ("", 0, False, {}, None):
                decoded[field] = item
    return decoded


def _pair(data: Any, type_: str, where: str) -> tuple[str, Any]:
    """One entry of a map: field 1 is the key, field 2 the value; either may be absent when empty."""
    if not isinstance(data, bytes):
        raise Unreadable(f"{where}: not a map")
    key, value = "", _value(b"", _LENGTH, type_, where)
    for number, wire_type, item in _entries(data):
        if number == 1:
            key = _value(item, wire_type, "string", where)
        elif number == 2:
            value = _value(item, wire_type, type_, where)
    return key, value


def _value(value: Any, wire_type: int, type_: str, where: str) -> Any:
    expected = _VARINT if type_ in ("int", "bool") else _LENGTH
    if wire_type != expected:
        raise Unreadable(f"{where}: wire type {wire_type} where {expected} was expected")
    match type_:
        case "int":
            return value - (1 << 64) if value >= 1 << 63 else value
        case "bool":
            return bool(value)
        case "raw":
            return value
        case "bytes":
            return base64.b64encode(value).decode()
        case "string":
            try:
                return value.decode()
            except UnicodeDecodeError as error:
                raise Unreadable(f"{where}: not UTF-8") from error
    return _settled(_message(value, type_), type_)


def _settled(message: Json, type_: str) -> Any:
    """What a message is in JSON, for the types that are no objects there."""
    match type_:
        case "IntOrString":
            return message.get("strVal", "") if message.get("type") else message.get("intVal", 0)
        case "Quantity":
            return message.get("string", "")
        case "Time":
            return _time(message["seconds"]) if "seconds" in message else None
    return message


def _time(seconds: int) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError) as error:
        raise Unreadable(f"{seconds} seconds is not a time") from error


def _entries(data: bytes) -> Iterator[tuple[int, int, Any]]:
    """The fields of a message: number, wire type, and an integer or bytes."""
    at, end = 0, len(data)
    while at < end:
        tag, at = _varint(data, at)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == _VARINT:
            value, at = _varint(data, at)
            yield number, wire_type, value
            continue
        if wire_type == _LENGTH:
            size, at = _varint(data, at)
        elif wire_type in (_FIXED64, _FIXED32):
            size = 8 if wire_type == _FIXED64 else 4
        else:
            raise Unreadable(f"wire type {wire_type} is not protobuf's")
        if at + size > end:
            raise Unreadable("the body ends within a field")
        yield number, wire_type, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            raise Unreadable("the body ends within a number")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise Unreadable("a number is longer than 64 bits")
