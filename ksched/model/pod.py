"""Pods, with the fields that scheduling looks at.

Requests are computed in `requests`, ports and images where their plugins stand. `Pod` is what the API server sent,
never changed after decoding: a newer version is a new `Pod`.
"""

from __future__ import annotations

from msgspec import field

from ksched.model.objects import (
    Condition,
    Int32,
    Int64,
    KubeStruct,
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    ObjectMeta,
    ResourceList,
    Untyped,
)

DEFAULT_SCHEDULER_NAME = "default-scheduler"


class ResourceRequirements(KubeStruct):
    """Requests and limits of a container, or of a whole pod (KEP-2837)."""

    requests: ResourceList = {}
    limits: ResourceList = {}
    claims: list[Untyped] = []


class ContainerPort(KubeStruct):
    """A port of a container; only a `host_port` above 0 matters to scheduling."""

    container_port: Int32 = 0
    host_port: Int32 = 0
    host_ip: str = field(default="", name="hostIP")
    protocol: str = ""


class RestartRule(KubeStruct):
    """What happens when a container exits (KEP-5307); `action` may be RestartAllContainers (KEP-5532)."""

    action: str = ""


class Container(KubeStruct):
    """A container or init container; an init container with `restart_policy` Always is a sidecar (KEP-753)."""

    name: str = ""
    image: str = ""
    resources: ResourceRequirements = field(default_factory=ResourceRequirements)
    ports: list[ContainerPort] = []
    restart_policy: str = ""
    restart_policy_rules: list[RestartRule] = []


class PreferredSchedulingTerm(KubeStruct):
    """A node selector term that adds `weight` to the score of the nodes that it matches."""

    weight: Int32 = 0
    preference: NodeSelectorTerm = field(default_factory=NodeSelectorTerm)


class NodeAffinity(KubeStruct):
    """Which nodes a pod must or would like to run on. `None` and empty differ: an empty required selector matches no
    node."""

    required: NodeSelector | None = field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: list[PreferredSchedulingTerm] | None = field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class PodAffinityTerm(KubeStruct):
    """Pods to be near to, or away from, within a topology domain."""

    label_selector: LabelSelector | None = None
    namespace_selector: LabelSelector | None = None
    namespaces: list[str] = []
    topology_key: str = ""
    match_label_keys: list[str] = []
    mismatch_label_keys: list[str] = []


class WeightedPodAffinityTerm(KubeStruct):
    """A preferred pod affinity term and its weight, 1 to 100."""

    weight: Int32 = 0
    pod_affinity_term: PodAffinityTerm = field(default_factory=PodAffinityTerm)


class PodAffinity(KubeStruct):
    """Affinity or anti-affinity to other pods."""

    required: list[PodAffinityTerm] = field(default_factory=list, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: list[WeightedPodAffinityTerm] = field(
        default_factory=list, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(KubeStruct):
    """All of a pod's affinities; each is `None` when it is not written."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Toleration(KubeStruct):
    """Taints that a pod accepts; an empty operator means Equal, an empty effect or key any."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


class TopologySpreadConstraint(KubeStruct):
    """How evenly pods are to be spread over the domains of a topology key."""

    max_skew: Int32 = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] = []


class ImageVolumeSource(KubeStruct):
    """An image mounted as a volume."""

    reference: str = ""


class Volume(KubeStruct):
    """A volume; of the sources only those that some plugin reads are kept."""

    name: str = ""
    image: ImageVolumeSource | None = None
    persistent_volume_claim: Untyped = None
    ephemeral: Untyped = None
    gce_persistent_disk: Untyped = None
    aws_elastic_block_store: Untyped = None
    azure_disk: Untyped = None
    cinder: Untyped = None
    iscsi: Untyped = None
    rbd: Untyped = None


class SchedulingGate(KubeStruct):
    """A reason not to look at the pod yet (KEP-3521)."""

    name: str = ""


class SchedulingGroup(KubeStruct):
    """The pod group that a pod is scheduled with (KEP-4671)."""

    pod_group_name: str | None = None


class PodSpec(KubeStruct):
    """What a pod asks for."""

    node_name: str = ""
    scheduler_name: str = ""
    containers: list[Container] = []
    init_containers: list[Container] = []
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] = []
    topology_spread_constraints: list[TopologySpreadConstraint] = []
    volumes: list[Volume] = []
    resource_claims: list[Untyped] = []
    scheduling_gates: list[SchedulingGate] = []
    scheduling_group: SchedulingGroup | None = None
    overhead: ResourceList = {}
    resources: ResourceRequirements | None = None
    priority: Int32 | None = None
    preemption_policy: str | None = None
    host_network: bool = False
    host_users: bool | None = None
    termination_grace_period_seconds: Int64 | None = None


class ContainerStatus(KubeStruct):
    """What a container has been given; `allocated_resources` and `resources` differ from the spec while it is resized
    (KEP-1287)."""

    name: str = ""
    allocated_resources: ResourceList = {}
    resources: ResourceRequirements | None = None


class PodStatus(KubeStruct):
    """What has become of a pod."""

    phase: str = ""
    nominated_node_name: str = ""
    start_time: str | None = None
    conditions: list[Condition] = []
    container_statuses: list[ContainerStatus] = []
    init_container_statuses: list[ContainerStatus] = []
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList = {}
    resource_claim_statuses: list[Untyped] = []
    observed_generation: Int64 = 0


class Pod(KubeStruct):
    """A pod as the API server sent it."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: PodSpec = field(default_factory=PodSpec)
    status: PodStatus = field(default_factory=PodStatus)

    @property
    def name(self) -> str:
        """The pod's name."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """The pod's namespace."""
        return self.metadata.namespace

    @property
    def uid(self) -> str:
        """The pod's uid; two pods of one name, one after the other, differ in it."""
        return self.metadata.uid

    @property
    def key(self) -> str:
        """`namespace/name`, as logs and messages name a pod."""
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def labels(self) -> dict[str, str]:
        """The pod's labels."""
        return self.metadata.labels

    @property
    def node_name(self) -> str:
        """The node that the pod is on; empty while it waits."""
        return self.spec.node_name

    @property
    def scheduler_name(self) -> str:
        """The scheduler (profile) that is to place the pod."""
        return self.spec.scheduler_name or DEFAULT_SCHEDULER_NAME

    @property
    def priority(self) -> int:
        """The pod's priority; 0 where none is written."""
        return self.spec.priority or 0

    @property
    def is_terminating(self) -> bool:
        """Whether deletion has begun."""
        return self.metadata.deletion_timestamp is not None

    @property
    def is_finished(self) -> bool:
        """Whether the pod has ended and holds nothing any more."""
        return self.status.phase in ("Succeeded", "Failed")
