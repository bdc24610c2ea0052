"""Every kind of object that the sandbox serves, as one table.

Discovery, routing, storage and the OpenAPI stubs are all built from `RESOURCES`; a kind that is not here does not exist
for clients. What a kind means (defaults, columns of its table, its controllers) is in `defaults.py`, `tables.py` and
`controllers.py`.

Events are served by two groups and stored once: `STORED_KINDS` names "Event" a single time, and `events.py` converts on
the way.
"""

from __future__ import annotations

from dataclasses import dataclass

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
STATUS_VERBS = ("get", "patch", "update")


@dataclass(frozen=True, slots=True)
class Subresource:
    """One subresource of a kind; `group` and `version` are those of its body where they differ from the parent's."""

    name: str
    kind: str
    verbs: tuple[str, ...]
    group: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind under one group and version."""

    group: str
    version: str
    plural: str
    singular: str
    kind: str
    namespaced: bool
    verbs: tuple[str, ...] = ALL_VERBS
    subresources: tuple[Subresource, ...] = ()
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        """What objects of this kind carry as `apiVersion`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def stored(self) -> bool:
        """Whether objects of this kind are kept; reviews and bindings are answered and forgotten."""
        return "get" in self.verbs

    def subresource(self, name: str) -> Subresource | None:
        """The subresource called `name`, or None."""
        return next((each for each in self.subresources if each.name == name), None)


def _status(kind: str) -> Subresource:
    return Subresource("status", kind, STATUS_VERBS)


def _scale(group: str = "autoscaling", version: str = "v1") -> Subresource:
    return Subresource("scale", "Scale", STATUS_VERBS, group, version)


def _kind(
    api: str,
    plural: str,
    kind: str,
    *,
    namespaced: bool = True,
    status: bool = False,
    more: tuple[Subresource, ...] = (),
    short: tuple[str, ...] = (),
    categories: tuple[str, ...] = (),
    verbs: tuple[str, ...] = ALL_VERBS,
) -> Resource:
    group, _, version = api.rpartition("/")
    subresources = more + ((_status(kind),) if status else ())
    return Resource(group, version, plural, kind.lower(), kind, namespaced, verbs, subresources, short, categories)


_POD_SUBRESOURCES = (
    Subresource("binding", "Binding", ("create",)),
    Subresource("eviction", "Eviction", ("create",), "policy", "v1"),
    Subresource("resize", "Pod", STATUS_VERBS),
)
_NAMESPACE_VERBS = tuple(verb for verb in ALL_VERBS if verb != "deletecollection")
_ALL = ("all",)

RESOURCES: tuple[Resource, ...] = (
    _kind("v1", "bindings", "Binding", verbs=("create",)),
    _kind("v1", "configmaps", "ConfigMap", short=("cm",)),
    _kind("v1", "endpoints", "Endpoints", short=("ep",)),
    _kind("v1", "events", "Event", short=("ev",)),
    _kind("v1", "namespaces", "Namespace", namespaced=False, status=True, short=("ns",), verbs=_NAMESPACE_VERBS),
    _kind("v1", "nodes", "Node", namespaced=False, status=True, short=("no",)),
    _kind("v1", "persistentvolumeclaims", "PersistentVolumeClaim", status=True, short=("pvc",)),
    _kind("v1", "persistentvolumes", "PersistentVolume", namespaced=False, status=True, short=("pv",)),
    _kind("v1", "pods", "Pod", status=True, more=_POD_SUBRESOURCES, short=("po",), categories=_ALL),
    _kind(
        "v1",
        "replicationcontrollers",
        "ReplicationController",
        status=True,
        more=(_scale(),),
        short=("rc",),
        categories=_ALL,
    ),
    _kind("v1", "secrets", "Secret"),
    _kind("v1", "serviceaccounts", "ServiceAccount", short=("sa",)),
    _kind("v1", "services", "Service", status=True, short=("svc",), categories=_ALL),
    _kind("apps/v1", "daemonsets", "DaemonSet", status=True, short=("ds",), categories=_ALL),
    _kind("apps/v1", "deployments", "Deployment", status=True, more=(_scale(),), short=("deploy",), categories=_ALL),
    _kind("apps/v1", "replicasets", "ReplicaSet", status=True, more=(_scale(),), short=("rs",), categories=_ALL),
    _kind("apps/v1", "statefulsets", "StatefulSet", status=True, more=(_scale(),), short=("sts",), categories=_ALL),
    _kind("authentication.k8s.io/v1", "tokenreviews", "TokenReview", namespaced=False, verbs=("create",)),
    _kind("authorization.k8s.io/v1", "localsubjectaccessreviews", "LocalSubjectAccessReview", verbs=("create",)),
    _kind(
        "authorization.k8s.io/v1",
        "selfsubjectaccessreviews",
        "SelfSubjectAccessReview",
        namespaced=False,
        verbs=("create",),
    ),
    _kind(
        "authorization.k8s.io/v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False, verbs=("create",)
    ),
    _kind("batch/v1", "jobs", "Job", status=True, categories=_ALL),
    _kind("coordination.k8s.io/v1", "leases", "Lease"),
    _kind("discovery.k8s.io/v1", "endpointslices", "EndpointSlice"),
    _kind("events.k8s.io/v1", "events", "Event", short=("ev",)),
    _kind("policy/v1", "poddisruptionbudgets", "PodDisruptionBudget", status=True, short=("pdb",)),
    _kind("resource.k8s.io/v1", "deviceclasses", "DeviceClass", namespaced=False),
    _kind("resource.k8s.io/v1", "resourceclaims", "ResourceClaim", status=True),
    _kind("resource.k8s.io/v1", "resourceclaimtemplates", "ResourceClaimTemplate"),
    _kind("resource.k8s.io/v1", "resourceslices", "ResourceSlice", namespaced=False),
    _kind("scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", namespaced=False, short=("pc",)),
    _kind("scheduling.k8s.io/v1alpha2", "podgroups", "PodGroup", status=True),
    _kind("storage.k8s.io/v1", "csidrivers", "CSIDriver", namespaced=False),
    _kind("storage.k8s.io/v1", "csinodes", "CSINode", namespaced=False),
    _kind("storage.k8s.io/v1", "csistoragecapacities", "CSIStorageCapacity"),
    _kind("storage.k8s.io/v1", "storageclasses", "StorageClass", namespaced=False, short=("sc",)),
    _kind("storage.k8s.io/v1", "volumeattachments", "VolumeAttachment", namespaced=False, status=True),
)

BY_PATH: dict[tuple[str, str, str], Resource] = {(each.group, each.version, each.plural): each for each in RESOURCES}
"""The resource of a (group, version, plural), as request paths name it."""

STORED_KINDS: dict[str, Resource] = {}
"""Each stored kind once, with the resource in whose form it is kept (core/v1 for events)."""

for _each in RESOURCES:
    if _each.stored:
        STORED_KINDS.setdefault(_each.kind, _each)
