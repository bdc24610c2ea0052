"""What all Kubernetes objects share, and the small kinds that scheduling looks at.

Structs are decoded straight from the API server's JSON by msgspec. A field that is absent has Go's zero value, except
where "absent" and "empty" mean different things to Kubernetes; those are `None` when absent. Explicit nulls are absent
fields (see `api.decode`).
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct, field

Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]

QuantityText = str | int | float
"""A resource quantity as it stands in the object; `model.quantity` gives it meaning."""

ResourceList = dict[str, QuantityText]


class KubeStruct(Struct, rename="camel", omit_defaults=True, gc=False):
    """Base of every decoded object: camelCase on the wire, unknown fields ignored, not tracked by the garbage collector
    (the objects are trees)."""


class OwnerReference(KubeStruct):
    """The object that owns this one; at most one owner is the controller."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ObjectMeta(KubeStruct):
    """Names, labels and life cycle of an object. `resource_version` is a decimal number as text."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: Int64 = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: list[OwnerReference] = []
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None


class NoValues(list[str]):
    """The values of a requirement that has none written: an empty list, but Kubernetes' messages call it null."""


class LabelSelectorRequirement(KubeStruct):
    """One requirement of a label selector; `operator` is In, NotIn, Exists or DoesNotExist (of a node's, Gt or Lt)."""

    key: str = ""
    operator: str = ""
    values: list[str] = field(default_factory=NoValues)


class LabelSelector(KubeStruct):
    """Labels to match, all of `match_labels` and all of `match_expressions`; an empty selector matches everything."""

    match_labels: dict[str, str] = {}
    match_expressions: list[LabelSelectorRequirement] = []


class NodeSelectorTerm(KubeStruct):
    """Expressions over a node's labels and fields, all of which must hold; a term without any matches nothing."""

    match_expressions: list[LabelSelectorRequirement] = []
    match_fields: list[LabelSelectorRequirement] = []


class NodeSelector(KubeStruct):
    """Terms of which one must match."""

    node_selector_terms: list[NodeSelectorTerm] = []


class Condition(KubeStruct):
    """A condition of a pod or node."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    observed_generation: Int64 = 0


class Namespace(KubeStruct):
    """A namespace: its labels are what pod affinity selects by."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)


class MapSelectorSpec(KubeStruct):
    """What a service or replication controller selects: labels as they are. None selects nothing."""

    selector: dict[str, str] | None = None


class LabelSelectorSpec(KubeStruct):
    """What a replica set or stateful set selects."""

    selector: LabelSelector | None = None


class Service(KubeStruct):
    """A service: its pods are spread by default."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: MapSelectorSpec = field(default_factory=MapSelectorSpec)


class ReplicationController(KubeStruct):
    """A replication controller: its pods are spread by default."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: MapSelectorSpec = field(default_factory=MapSelectorSpec)


class ReplicaSet(KubeStruct):
    """A replica set: its pods are spread by default."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: LabelSelectorSpec = field(default_factory=LabelSelectorSpec)


class StatefulSet(KubeStruct):
    """A stateful set: its pods are spread by default."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: LabelSelectorSpec = field(default_factory=LabelSelectorSpec)


class DeviceClassSpec(KubeStruct):
    """What a scheduler without devices must know of a device class: the extended resource that it stands for."""

    extended_resource_name: str | None = None


class DeviceClass(KubeStruct):
    """A class of devices (resource.k8s.io, KEP-4381; extended resources by KEP-5004)."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: DeviceClassSpec = field(default_factory=DeviceClassSpec)


Untyped = Any
"""A part of an object that only says that something is there."""
