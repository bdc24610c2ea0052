"""What happens in a cluster, as the queue hears of it: a resource, and bits that say what became of it.

The names and numbers are kube-scheduler's, since they appear as labels of metrics and decide what matches what.
"""

from __future__ import annotations

from typing import Final, NamedTuple

POD: Final = "Pod"
"""What plugins register for; it matches pods on a node and pods that wait for one."""
ASSIGNED_POD: Final = "AssignedPod"
UNSCHEDULABLE_POD: Final = "UnschedulablePod"
NODE: Final = "Node"
PERSISTENT_VOLUME: Final = "PersistentVolume"
PERSISTENT_VOLUME_CLAIM: Final = "PersistentVolumeClaim"
CSI_NODE: Final = "storage.k8s.io/CSINode"
CSI_DRIVER: Final = "storage.k8s.io/CSIDriver"
CSI_STORAGE_CAPACITY: Final = "storage.k8s.io/CSIStorageCapacity"
STORAGE_CLASS: Final = "storage.k8s.io/StorageClass"
VOLUME_ATTACHMENT: Final = "storage.k8s.io/VolumeAttachment"
RESOURCE_CLAIM: Final = "resource.k8s.io/ResourceClaim"
RESOURCE_SLICE: Final = "resource.k8s.io/ResourceSlice"
DEVICE_CLASS: Final = "resource.k8s.io/DeviceClass"
WILDCARD: Final = "*"

ADD: Final = 1
DELETE: Final = 2
UPDATE_NODE_ALLOCATABLE: Final = 4
UPDATE_NODE_LABEL: Final = 8
UPDATE_NODE_TAINT: Final = 16
UPDATE_NODE_CONDITION: Final = 32
UPDATE_NODE_ANNOTATION: Final = 64
UPDATE_NODE_DECLARED_FEATURE: Final = 128
UPDATE_POD_LABEL: Final = 256
UPDATE_POD_SCALE_DOWN: Final = 512
UPDATE_POD_TOLERATION: Final = 1024
UPDATE_POD_SCHEDULING_GATES_ELIMINATED: Final = 2048
UPDATE_POD_GENERATED_RESOURCE_CLAIM: Final = 4096
UPDATE: Final = 8188
"""Every update bit at once; as an event it means an update that is none of the specific ones."""
ALL: Final = 8191

ACTION_NAMES: Final = {
    ADD: "Add",
    DELETE: "Delete",
    UPDATE_NODE_ALLOCATABLE: "UpdateNodeAllocatable",
    UPDATE_NODE_LABEL: "UpdateNodeLabel",
    UPDATE_NODE_TAINT: "UpdateNodeTaint",
    UPDATE_NODE_CONDITION: "UpdateNodeCondition",
    UPDATE_NODE_ANNOTATION: "UpdateNodeAnnotation",
    UPDATE_NODE_DECLARED_FEATURE: "UpdateNodeDeclaredFeature",
    UPDATE_POD_LABEL: "UpdatePodLabel",
    UPDATE_POD_SCALE_DOWN: "UpdatePodScaleDown",
    UPDATE_POD_TOLERATION: "UpdatePodToleration",
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED: "UpdatePodSchedulingGatesEliminated",
    UPDATE_POD_GENERATED_RESOURCE_CLAIM: "UpdatePodGeneratedResourceClaim",
    UPDATE: "Update",
    ALL: "All",
}


class ClusterEvent(NamedTuple):
    """A resource, what happened to it, and what metrics and logs call that."""

    resource: str
    actions: int
    label: str

    @property
    def is_wildcard(self) -> bool:
        """Whether the event stands for anything that could happen."""
        return self.resource == WILDCARD and self.actions == ALL

    def is_matched_by(self, resource: str, actions: int) -> bool:
        """Whether somebody who registered for `actions` on `resource` is told of this event.

        A general update is greater, as a number, than each specific one: whoever registered for all updates hears of
        the specific ones, and not the other way round.
        """
        if resource == WILDCARD and actions == ALL:
            return True
        same = resource in (self.resource, WILDCARD) or (
            resource == POD and self.resource in (ASSIGNED_POD, UNSCHEDULABLE_POD)
        )
        return same and bool(actions & self.actions) and self.actions <= actions


def event(resource: str, actions: int, label: str = "") -> ClusterEvent:
    """An event with its usual label, the resource and the action."""
    return ClusterEvent(resource, actions, label or resource + ACTION_NAMES[actions])


ASSIGNED_POD_ADD: Final = event(ASSIGNED_POD, ADD)
ASSIGNED_POD_DELETE: Final = event(ASSIGNED_POD, DELETE)
UNSCHEDULED_POD_ADD: Final = event(UNSCHEDULABLE_POD, ADD)
UNSCHEDULED_POD_UPDATE: Final = event(UNSCHEDULABLE_POD, UPDATE)
NODE_ADD: Final = event(NODE, ADD)
NODE_DELETE: Final = event(NODE, DELETE)
DEVICE_CLASS_ADD: Final = event(DEVICE_CLASS, ADD)
DEVICE_CLASS_UPDATE: Final = event(DEVICE_CLASS, UPDATE)
DEVICE_CLASS_DELETE: Final = event(DEVICE_CLASS, DELETE)
UNSCHEDULABLE_TIMEOUT: Final = event(WILDCARD, ALL, "UnschedulableTimeout")
FORCE_ACTIVATE: Final = event(WILDCARD, ALL, "ForceActivate")

# What brings a pod into a pool without anything having happened in the cluster: labels of metrics only.
SCHEDULE_ATTEMPT_FAILURE: Final = "ScheduleAttemptFailure"
BACKOFF_COMPLETE: Final = "BackoffComplete"
POP_FROM_BACKOFF: Final = "PopFromBackoffQ"
