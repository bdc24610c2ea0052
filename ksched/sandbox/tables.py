"""Objects as tables for people: meta.k8s.io/v1 `Table`, with the columns that `kubectl get` shows.

The server decides the columns, not kubectl; columns of priority 1 are shown by `-o wide`. A kind is a list of
`Column`s and a function that gives a row's cells; kinds that are not here have name and age. The cells of pods
are in `pod_rows.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from ksched.sandbox.ages import UNKNOWN, age, parse_time
from ksched.sandbox.pod_rows import pod_row

Json = dict[str, Any]
Row = Callable[[Json, datetime], list[Any]]

NONE: Final = "<none>"
_UNSET: Final = "<unset>"


def table(kind: str, objects: Sequence[Json], *, list_meta: Json, now: datetime, include_object: str) -> Json:
    """A Table of objects of one kind.

    `include_object` is the query parameter: `Metadata` (the default) gives each row its object's metadata, `Object` the
    whole object, `None` neither.
    """
    columns, row = _KINDS.get(kind, (_NAME_AND_AGE, _name_and_age))
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": list_meta,
        "columnDefinitions": [column.definition() for column in columns],
        "rows": [_with_object(row(obj, now), obj, include_object) for obj in objects],
    }


def _with_object(cells: list[Any], obj: Json, include_object: str) -> Json:
    if include_object == "None":
        return {"cells": cells, "object": None}
    if include_object == "Object":
        return {"cells": cells, "object": obj}
    partial = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}
    return {"cells": cells, "object": partial}


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its title, whether only wide listings have it, and its JSON type."""

    name: str
    wide: bool = False
    type: str = "string"

    def definition(self) -> Json:
        """The column as a TableColumnDefinition."""
        return {
            "name": self.name,
            "type": self.type,
            "format": "name" if self.name == "Name" else "",
            "description": "",
            "priority": 1 if self.wide else 0,
        }


def _columns(shown: str, wide: str = "") -> tuple[Column, ...]:
    """Columns from their titles, separated by bars; a title in brackets holds whole numbers."""
    return tuple(
        Column(title.strip("[]"), is_wide, "integer" if title.startswith("[") else "string")
        for titles, is_wide in ((shown, False), (wide, True))
        for title in titles.split("|")
        if title
    )


# ---- cells that several kinds have


def _name(obj: Json) -> str:
    return str(obj["metadata"]["name"])


def _age(obj: Json, now: datetime) -> str:
    return age(obj["metadata"].get("creationTimestamp"), now)


def _spec(obj: Json) -> Json:
    return obj.get("spec") or {}


def _status(obj: Json) -> Json:
    return obj.get("status") or {}


def _pod_spec(obj: Json) -> Json:
    template: Json = _spec(obj).get("template") or {}
    return template.get("spec") or {}


def _container_names(obj: Json) -> str:
    return ",".join(container["name"] for container in _pod_spec(obj).get("containers") or ())


def _images(obj: Json) -> str:
    return ",".join(container.get("image", "") for container in _pod_spec(obj).get("containers") or ())


def _labels_text(labels: Json | None) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or NONE


def _selector(selector: Json | None) -> str:
    """A label selector as it is written in queries."""
    if not selector:
        return NONE
    terms = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for expression in selector.get("matchExpressions") or ():
        key, operator = expression["key"], expression["operator"]
        if operator in {"In", "NotIn"}:
            terms.append(f"{key} {operator.lower()} ({','.join(sorted(expression.get('values') or ()))})")
        else:
            terms.append(key if operator == "Exists" else f"!{key}")
    return ",".join(terms) or NONE


def _workload_details(obj: Json) -> list[Any]:
    return [_container_names(obj), _images(obj), _selector(_spec(obj).get("selector"))]


# ---- rows, by kind


def _name_and_age(obj: Json, now: datetime) -> list[Any]:
    return [_name(obj), _age(obj, now)]


def _node(node: Json, now: datetime) -> list[Any]:
    info = _status(node).get("nodeInfo") or {}
    return [
        _name(node),
        _node_status(node),
        ",".join(_roles(node)) or NONE,
        _age(node, now),
        info.get("kubeletVersion", ""),
        _address(node, "InternalIP"),
        _address(node, "ExternalIP"),
        info.get("osImage") or UNKNOWN,
        info.get("kernelVersion") or UNKNOWN,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _node_status(node: Json) -> str:
    ready = next((each for each in _status(node).get("conditions") or () if each["type"] == "Ready"), None)
    words = ["Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"]
    if _spec(node).get("unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _roles(node: Json) -> list[str]:
    roles: set[str] = set()
    for key, value in (node["metadata"].get("labels") or {}).items():
        prefix, _, role = key.partition("node-role.kubernetes.io/")
        if not prefix and role:
            roles.add(role)
        elif key == "kubernetes.io/role" and value:
            roles.add(value)
    return sorted(roles)


def _address(node: Json, which: str) -> str:
    addresses = _status(node).get("addresses") or ()
    return next((address["address"] for address in addresses if address["type"] == which), NONE)


def _deployment(deployment: Json, now: datetime) -> list[Any]:
    status = _status(deployment)
    return [
        _name(deployment),
        f"{status.get('readyReplicas', 0)}/{_spec(deployment).get('replicas', 0)}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        _age(deployment, now),
        *_workload_details(deployment),
    ]


def _replica_set(replica_set: Json, now: datetime) -> list[Any]:
    status = _status(replica_set)
    return [
        _name(replica_set),
        _spec(replica_set).get("replicas", 0),
        status.get("replicas", 0),
        status.get("readyReplicas", 0),
        _age(replica_set, now),
        *_workload_details(replica_set),
    ]


def _replication_controller(controller: Json, now: datetime) -> list[Any]:
    selector = {"matchLabels": _spec(controller).get("selector") or {}}
    return [*_replica_set(controller, now)[:-1], _selector(selector)]


def _stateful_set(stateful_set: Json, now: datetime) -> list[Any]:
    ready = f"{_status(stateful_set).get('readyReplicas', 0)}/{_spec(stateful_set).get('replicas', 0)}"
    return [_name(stateful_set), ready, _age(stateful_set, now), _container_names(stateful_set), _images(stateful_set)]


def _daemon_set(daemon_set: Json, now: datetime) -> list[Any]:
    status = _status(daemon_set)
    counted = (
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    )
    return [
        _name(daemon_set),
        *(status.get(field, 0) for field in counted),
        _labels_text(_pod_spec(daemon_set).get("nodeSelector")),
        _age(daemon_set, now),
        *_workload_details(daemon_set),
    ]


def _job(job: Json, now: datetime) -> list[Any]:
    spec, status = _spec(job), _status(job)
    succeeded, completions = status.get("succeeded", 0), spec.get("completions")
    if completions is None:
        parallelism = spec.get("parallelism") or 0
        wanted = f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"
    else:
        wanted = f"{succeeded}/{completions}"
    return [_name(job), _job_status(job), wanted, _job_duration(status, now), _age(job, now), *_workload_details(job)]


def _job_status(job: Json) -> str:
    conditions = {each["type"] for each in _status(job).get("conditions") or () if each.get("status") == "True"}
    for condition, word in (("Complete", "Complete"), ("Failed", "Failed"), ("Suspended", "Suspended")):
        if condition in conditions:
            return word
    return "Terminating" if job["metadata"].get("deletionTimestamp") else "Running"


def _job_duration(status: Json, now: datetime) -> str:
    if not status.get("startTime"):
        return ""
    end = parse_time(status["completionTime"]) if status.get("completionTime") else now
    return age(status["startTime"], end or now)


def _service(service: Json, now: datetime) -> list[Any]:
    spec = _spec(service)
    return [
        _name(service),
        spec.get("type", ""),
        spec.get("clusterIP") or NONE,
        _external_address(service),
        ",".join(_port_text(port) for port in spec.get("ports") or ()) or NONE,
        _age(service, now),
        _labels_text(spec.get("selector")),
    ]


def _external_address(service: Json) -> str:
    spec = _spec(service)
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName") or NONE)
    addresses = list(spec.get("externalIPs") or ())
    if spec.get("type") == "LoadBalancer":
        ingress = (_status(service).get("loadBalancer") or {}).get("ingress") or ()
        addresses = [entry.get("ip") or entry.get("hostname", "") for entry in ingress] + addresses
        return ",".join(addresses) or "<pending>"
    return ",".join(addresses) or NONE


def _port_text(port: Json) -> str:
    node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port['port']}{node_port}/{port.get('protocol', 'TCP')}"


def _event(event: Json, now: datetime) -> list[Any]:
    involved, source = event.get("involvedObject") or {}, event.get("source") or {}
    series = event.get("series") or {}
    first = event.get("firstTimestamp") or event.get("eventTime")
    last = series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime") or first
    kind, _, _ = str(involved.get("kind", "")).lower().partition(".")
    component = source.get("component") or event.get("reportingComponent") or ""
    host = source.get("host") or event.get("reportingInstance") if source.get("component") else source.get("host")
    return [
        age(last, now),
        event.get("type", ""),
        event.get("reason", ""),
        f"{kind}/{involved.get('name', '')}",
        str(event.get("message") or "").strip(),
        involved.get("fieldPath", ""),
        f"{component}, {host}" if host else component,
        age(first, now),
        series.get("count") or event.get("count") or 1,
        _name(event),
    ]


def _namespace(namespace: Json, now: datetime) -> list[Any]:
    return [_name(namespace), _status(namespace).get("phase", ""), _age(namespace, now)]


def _lease(lease: Json, now: datetime) -> list[Any]:
    return [_name(lease), _spec(lease).get("holderIdentity", ""), _age(lease, now)]


def _priority_class(priority_class: Json, now: datetime) -> list[Any]:
    return [
        _name(priority_class),
        priority_class.get("value", 0),
        bool(priority_class.get("globalDefault")),
        _age(priority_class, now),
        priority_class.get("preemptionPolicy", ""),
    ]


_ACCESS_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _access_modes(modes: Sequence[str] | None) -> str:
    return ",".join(_ACCESS_MODES.get(mode, mode) for mode in dict.fromkeys(modes or ()))


def _claim(claim: Json, now: datetime) -> list[Any]:
    spec, status = _spec(claim), _status(claim)
    bound = bool(spec.get("volumeName"))
    phase = "Terminating" if claim["metadata"].get("deletionTimestamp") else status.get("phase", "")
    return [
        _name(claim),
        phase,
        spec.get("volumeName", ""),
        (status.get("capacity") or {}).get("storage", "") if bound else "",
        _access_modes(status.get("accessModes")) if bound else "",
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName") or _UNSET,
        _age(claim, now),
        spec.get("volumeMode", ""),
    ]


def _volume(volume: Json, now: datetime) -> list[Any]:
    spec, status = _spec(volume), _status(volume)
    claim = spec.get("claimRef") or {}
    phase = "Terminating" if volume["metadata"].get("deletionTimestamp") else status.get("phase", "")
    return [
        _name(volume),
        (spec.get("capacity") or {}).get("storage", ""),
        _access_modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        phase,
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName") or _UNSET,
        status.get("reason", ""),
        _age(volume, now),
        spec.get("volumeMode", ""),
    ]


def _storage_class(storage_class: Json, now: datetime) -> list[Any]:
    annotations = storage_class["metadata"].get("annotations") or {}
    is_default = annotations.get("storageclass.kubernetes.io/is-default-class") == "true"
    return [
        _name(storage_class) + (" (default)" if is_default else ""),
        storage_class.get("provisioner", ""),
        storage_class.get("reclaimPolicy", ""),
        storage_class.get("volumeBindingMode", ""),
        bool(storage_class.get("allowVolumeExpansion")),
        _age(storage_class, now),
    ]


def _config_map(config_map: Json, now: datetime) -> list[Any]:
    entries = len(config_map.get("data") or ()) + len(config_map.get("binaryData") or ())
    return [_name(config_map), entries, _age(config_map, now)]


def _secret(secret: Json, now: datetime) -> list[Any]:
    return [_name(secret), secret.get("type", ""), len(secret.get("data") or ()), _age(secret, now)]


def _service_account(account: Json, now: datetime) -> list[Any]:
    return [_name(account), len(account.get("secrets") or ()), _age(account, now)]


def _disruption_budget(budget: Json, now: datetime) -> list[Any]:
    spec = _spec(budget)
    limits = [
        str(spec[field]) if spec.get(field) is not None else "N/A" for field in ("minAvailable", "maxUnavailable")
    ]
    return [_name(budget), *limits, _status(budget).get("disruptionsAllowed", 0), _age(budget, now)]


def _resource_claim(claim: Json, now: datetime) -> list[Any]:
    status = _status(claim)
    states = [] if status.get("allocation") is None else ["allocated"]
    if status.get("reservedFor"):
        states.append("reserved")
    if claim["metadata"].get("deletionTimestamp"):
        states.append("deleted")
    return [_name(claim), ",".join(states) or "pending", _age(claim, now)]


def _resource_slice(resource_slice: Json, now: datetime) -> list[Any]:
    spec = _spec(resource_slice)
    return [
        _name(resource_slice),
        spec.get("nodeName") or _UNSET,
        spec.get("driver", ""),
        (spec.get("pool") or {}).get("name", ""),
        _age(resource_slice, now),
    ]


def _csi_driver(driver: Json, now: datetime) -> list[Any]:
    spec = _spec(driver)
    tokens = ",".join(str(token.get("audience", "")) for token in spec.get("tokenRequests") or ()) or _UNSET
    return [
        _name(driver),
        bool(spec.get("attachRequired", True)),
        bool(spec.get("podInfoOnMount")),
        bool(spec.get("storageCapacity")),
        tokens,
        bool(spec.get("requiresRepublish")),
        ",".join(spec.get("volumeLifecycleModes") or ()) or NONE,
        _age(driver, now),
    ]


def _csi_node(node: Json, now: datetime) -> list[Any]:
    return [_name(node), len(_spec(node).get("drivers") or ()), _age(node, now)]


def _storage_capacity(capacity: Json, now: datetime) -> list[Any]:
    return [_name(capacity), capacity.get("storageClassName", ""), capacity.get("capacity", ""), _age(capacity, now)]


def _attachment(attachment: Json, now: datetime) -> list[Any]:
    spec = _spec(attachment)
    return [
        _name(attachment),
        spec.get("attacher", ""),
        (spec.get("source") or {}).get("persistentVolumeName", ""),
        spec.get("nodeName", ""),
        bool(_status(attachment).get("attached")),
        _age(attachment, now),
    ]


_NAME_AND_AGE: Final = _columns("Name|Age")
_DETAILS: Final = "Containers|Images|Selector"

_KINDS: Final[dict[str, tuple[tuple[Column, ...], Row]]] = {
    "CSIDriver": (
        _columns("Name|AttachRequired|PodInfoOnMount|StorageCapacity|TokenRequests|RequiresRepublish|Modes|Age"),
        _csi_driver,
    ),
    "CSINode": (_columns("Name|[Drivers]|Age"), _csi_node),
    "CSIStorageCapacity": (_columns("Name|StorageClassName|Capacity|Age"), _storage_capacity),
    "ConfigMap": (_columns("Name|[Data]|Age"), _config_map),
    "DaemonSet": (
        _columns("Name|[Desired]|[Current]|[Ready]|[Up-to-date]|[Available]|Node Selector|Age", _DETAILS),
        _daemon_set,
    ),
    "Deployment": (_columns("Name|Ready|[Up-to-date]|[Available]|Age", _DETAILS), _deployment),
    "Event": (_columns("Last Seen|Type|Reason|Object|Message", "Subobject|Source|First Seen|[Count]|Name"), _event),
    "Job": (_columns("Name|Status|Completions|Duration|Age", _DETAILS), _job),
    "Lease": (_columns("Name|Holder|Age"), _lease),
    "Namespace": (_columns("Name|Status|Age"), _namespace),
    "Node": (
        _columns("Name|Status|Roles|Age|Version", "Internal-IP|External-IP|OS-Image|Kernel-Version|Container-Runtime"),
        _node,
    ),
    "PersistentVolume": (
        _columns(
            "Name|Capacity|Access Modes|Reclaim Policy|Status|Claim|StorageClass|VolumeAttributesClass|Reason|Age",
            "VolumeMode",
        ),
        _volume,
    ),
    "PersistentVolumeClaim": (
        _columns("Name|Status|Volume|Capacity|Access Modes|StorageClass|VolumeAttributesClass|Age", "VolumeMode"),
        _claim,
    ),
    "Pod": (_columns("Name|Ready|Status|Restarts|Age", "IP|Node|Nominated Node|Readiness Gates"), pod_row),
    "PodDisruptionBudget": (
        _columns("Name|Min Available|Max Unavailable|[Allowed Disruptions]|Age"),
        _disruption_budget,
    ),
    "PriorityClass": (_columns("Name|[Value]|Global-Default|Age|PreemptionPolicy"), _priority_class),
    "ReplicaSet": (_columns("Name|[Desired]|[Current]|[Ready]|Age", _DETAILS), _replica_set),
    "ReplicationController": (_columns("Name|[Desired]|[Current]|[Ready]|Age", _DETAILS), _replication_controller),
    "ResourceClaim": (_columns("Name|State|Age"), _resource_claim),
    "ResourceSlice": (_columns("Name|Node|Driver|Pool|Age"), _resource_slice),
    "Secret": (_columns("Name|Type|[Data]|Age"), _secret),
    "Service": (_columns("Name|Type|Cluster-IP|External-IP|Port(s)|Age", "Selector"), _service),
    "ServiceAccount": (_columns("Name|[Secrets]|Age"), _service_account),
    "StatefulSet": (_columns("Name|Ready|Age", "Containers|Images"), _stateful_set),
    "StorageClass": (
        _columns("Name|Provisioner|ReclaimPolicy|VolumeBindingMode|AllowVolumeExpansion|Age"),
        _storage_class,
    ),
    "VolumeAttachment": (_columns("Name|Attacher|PV|Node|Attached|Age"), _attachment),
}
