"""How the lists of Kubernetes objects are merged: by which key, for strategic merge patches and for server-side apply.

Both formats treat most lists as one value; some are maps in disguise, with one or two fields as the key, and a
few are sets of strings. The API's types say which, in `patchMergeKey` and `listMapKey`. Field names are
unambiguous but for `ports`, which depends on what holds it.
"""

from __future__ import annotations

from typing import Final, Literal

# Strategic merge patch: the one field that identifies an entry.
MERGE_KEYS: Final[dict[str, str]] = {
    "addresses": "type",
    "allocatedResourcesStatus": "name",
    "conditions": "type",
    "containers": "name",
    "drivers": "name",
    "env": "name",
    "ephemeralContainers": "name",
    "hostAliases": "ip",
    "hostIPs": "ip",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "ownerReferences": "uid",
    "podIPs": "ip",
    "reservedFor": "uid",
    "resourceClaimStatuses": "name",
    "resourceClaims": "name",
    "schedulingGates": "name",
    "secrets": "name",
    "topologySpreadConstraints": "topologyKey",
    "volumeDevices": "devicePath",
    "volumeMounts": "mountPath",
    "volumes": "name",
}

# Lists of strings that are merged as sets by both formats.
SETS: Final = frozenset({"finalizers", "podCIDRs"})

# Server-side apply has longer keys where one field does not identify an entry.
_APPLY_KEYS: Final[dict[str, tuple[str, ...]]] = {
    "hostIPs": (),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
}
# A port without a protocol is a TCP port.
KEY_DEFAULTS: Final[dict[str, str]] = {"protocol": "TCP"}

_CONTAINERS: Final = frozenset({"containers", "initContainers", "ephemeralContainers"})
PortOwner = Literal["container", "service", "other"]


def port_owner(path: tuple[str, ...]) -> PortOwner:
    """What holds the field at `path` (field names from the object's root, without list positions)."""
    if path and path[-1] in _CONTAINERS:
        return "container"
    return "service" if path == ("spec",) else "other"


def merge_key(field: str, path: tuple[str, ...], kind: str) -> str | None:
    """The key of a strategic merge of the list `field` in the object at `path`, or None for a list that is replaced."""
    if field == "ports":
        owner = port_owner(path)
        if owner == "container":
            return "containerPort"
        return "port" if owner == "service" and kind == "Service" else None
    return MERGE_KEYS.get(field)


def apply_keys(field: str, path: tuple[str, ...], kind: str) -> tuple[str, ...]:
    """The fields that identify an entry of the list `field` for server-side apply; empty where it is one value."""
    key = merge_key(field, path, kind)
    if field == "ports" and key is not None:
        return (key, "protocol")
    if field in _APPLY_KEYS:
        return _APPLY_KEYS[field]
    return (key,) if key is not None else ()
