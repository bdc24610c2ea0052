"""The operations of a workload, as scheduler_perf's files write them: one record per op-code.

Fields are scheduler_perf's. A `...Param` field never gets here: `cases` replaces it by the parameter's value before an
operation is read. What each operation does is in `executor` and its neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from benchmarks.errors import WorkloadError


class Operation(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", tag_field="opcode", kw_only=True
):
    """What all operations have in common."""

    @property
    def collects(self) -> bool:
        """Whether measuring begins here."""
        return False

    @property
    def opcode(self) -> str:
        """The op-code, as the files write it."""
        return str(type(self).__struct_config__.tag)

    def check(self) -> None:
        """Raise ValueError where fields contradict each other."""


class NodeAllocatableStrategy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Amounts that every node gets, and how many volumes its drivers attach."""

    node_allocatable: dict[str, str | int] = {}
    csi_node_allocatable: dict[str, dict[str, int]] = {}
    migrated_plugins: list[str] = []


class LabelNodePrepareStrategy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A label whose values go round."""

    label_key: str
    label_values: list[str]


class UniqueNodeLabelStrategy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A label with a value of its own on every node."""

    label_key: str


class CreateNodes(Operation, frozen=True, tag="createNodes"):
    """Create nodes."""

    count: int
    node_template_path: str | None = None
    node_allocatable_strategy: NodeAllocatableStrategy | None = None
    label_node_prepare_strategy: LabelNodePrepareStrategy | None = None
    unique_node_label_strategy: UniqueNodeLabelStrategy | None = None


class CreateNamespaces(Operation, frozen=True, tag="createNamespaces"):
    """Create the namespaces PREFIX-0, PREFIX-1, ..."""

    prefix: str
    count: int
    namespace_template_path: str | None = None


class CreatePods(Operation, frozen=True, tag="createPods"):
    """Create pods and wait until they have nodes."""

    count: int
    steady_state: bool = False
    duration: str = "0s"
    collect_metrics: bool = False
    namespace: str | None = None
    pod_template_path: str | None = None
    skip_wait_to_completion: bool = False
    persistent_volume_template_path: str | None = None
    persistent_volume_claim_template_path: str | None = None

    @property
    def collects(self) -> bool:
        """Whether these pods are measured."""
        return self.collect_metrics

    def check(self) -> None:
        """The rules between its flags."""
        if self.collect_metrics and self.skip_wait_to_completion:
            raise ValueError("collectMetrics and skipWaitToCompletion cannot be true at the same time")
        if self.skip_wait_to_completion and self.steady_state:
            raise ValueError("skipWaitToCompletion and steadyState cannot be true at the same time")
        volume, claim = self.persistent_volume_template_path, self.persistent_volume_claim_template_path
        if (volume is None) != (claim is None):
            raise ValueError("persistentVolumeTemplatePath and persistentVolumeClaimTemplatePath go together")


class CreatePodSets(Operation, frozen=True, tag="createPodSets"):
    """The same createPods in each of the namespaces PREFIX-0, PREFIX-1, ..."""

    count: int
    namespace_prefix: str
    create_pods_op: CreatePods

    @property
    def collects(self) -> bool:
        """Whether these pods are measured."""
        return self.create_pods_op.collect_metrics


class DeletePods(Operation, frozen=True, tag="deletePods"):
    """Delete the pods that are in a namespace now."""

    namespace: str
    label_selector: dict[str, str] = {}
    skip_wait_to_completion: bool = False
    delete_pods_per_second: int = 0


class Churn(Operation, frozen=True, tag="churn"):
    """Create objects, or create and delete them in turn, in the background until the workload ends."""

    mode: Literal["create", "recreate"]
    template_paths: list[str]
    number: int = 0
    interval_milliseconds: int = 500
    namespace: str | None = None

    def check(self) -> None:
        """Recreating needs a number, since places are reused."""
        if self.mode == "recreate" and self.number < 1:
            raise ValueError("number: must be at least 1 with mode recreate")
        if not self.template_paths:
            raise ValueError("templatePaths: must not be empty")


class Barrier(Operation, frozen=True, tag="barrier"):
    """Wait until the pods have nodes, or have at least been tried."""

    namespaces: list[str] = []
    label_selector: dict[str, str] = {}
    stage_requirement: Literal["Scheduled", "Attempted"] = "Scheduled"


class Sleep(Operation, frozen=True, tag="sleep"):
    """Do nothing for a while."""

    duration: str


class StartCollectingMetrics(Operation, frozen=True, tag="startCollectingMetrics"):
    """Measure the pods of some namespaces from here."""

    namespaces: list[str]
    name: str = ""
    label_selector: dict[str, str] = {}

    @property
    def collects(self) -> bool:
        """Always."""
        return True

    def check(self) -> None:
        """Namespaces are required."""
        if not self.namespaces:
            raise ValueError("namespaces cannot be empty")


class StopCollectingMetrics(Operation, frozen=True, tag="stopCollectingMetrics"):
    """Measure up to here."""


class CreateAny(Operation, frozen=True, tag="createAny"):
    """Create objects of any kind from a template."""

    template_path: str
    namespace: str = ""
    count: int = 1


class UpdateAny(Operation, frozen=True, tag="updateAny"):
    """Replace objects by what a template says, then their status."""

    template_path: str
    namespace: str = ""
    count: int = 1
    update_per_second: int = 0
    subresources: list[str] = []

    def check(self) -> None:
        """A rate is not negative."""
        if self.update_per_second < 0:
            raise ValueError(f"updatePerSecond: must not be negative, got {self.update_per_second}")


class CreateResourceClaims(Operation, frozen=True, tag="createResourceClaims"):
    """Create resource claims from a template."""

    count: int
    namespace: str
    template_path: str


class CreateResourceDriver(Operation, frozen=True, tag="createResourceDriver"):
    """Publish a resource slice for every node whose name matches."""

    driver_name: str
    max_claims_per_node: int
    nodes: str


class AllocResourceClaims(Operation, frozen=True, tag="allocResourceClaims"):
    """Allocate the claims of a namespace without pods."""

    namespace: str


AnyOperation = (
    CreateNodes
    | CreateNamespaces
    | CreatePods
    | CreatePodSets
    | DeletePods
    | Churn
    | Barrier
    | Sleep
    | StartCollectingMetrics
    | StopCollectingMetrics
    | CreateAny
    | UpdateAny
    | CreateResourceClaims
    | CreateResourceDriver
    | AllocResourceClaims
)

OPCODES: tuple[str, ...] = (
    "createNodes",
    "createNamespaces",
    "createPods",
    "createPodSets",
    "deletePods",
    "churn",
    "barrier",
    "sleep",
    "startCollectingMetrics",
    "stopCollectingMetrics",
    "createAny",
    "updateAny",
    "createResourceClaims",
    "createResourceDriver",
    "allocResourceClaims",
)


def operation(written: Mapping[str, Any], where: str) -> AnyOperation:
    """One operation with its parameters filled in. Raises WorkloadError."""
    opcode = written.get("opcode")
    if opcode not in OPCODES:
        raise WorkloadError(f"{where}: unknown opcode {opcode!r}; known are {', '.join(OPCODES)}")
    try:
        read: AnyOperation = msgspec.convert(written, type=AnyOperation)
        read.check()
        if isinstance(read, CreatePodSets):
            read.create_pods_op.check()
    except (msgspec.ValidationError, ValueError) as error:
        raise WorkloadError(f"{where}: {opcode}: {error}") from error
    return read
