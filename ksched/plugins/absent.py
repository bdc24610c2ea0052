"""Stand-ins for the in-tree plugins that ksched does not have yet.

Each knows which fields of a pod only the real plugin understands; see `framework.build.MissingPlugin` for what happens
to such a pod. When a plugin comes, its class here goes.
"""

from __future__ import annotations

from collections.abc import Mapping

from ksched.framework import Args, PodInfo
from ksched.framework.build import MissingPlugin


class Anything(Args, frozen=True, forbid_unknown_fields=False):
    """The arguments of a plugin that is not there; its configuration was checked when it was read."""


class _Missing(MissingPlugin):
    Args = Anything


class VolumeRestrictions(_Missing):
    """Disks that cannot be mounted twice."""

    name = "VolumeRestrictions"
    points = frozenset({"pre_filter", "filter"})

    def used_field(self, pod: PodInfo) -> str | None:
        """Claims (ReadWriteOncePod) and the in-line disks with exclusive use."""
        for volume in pod.spec.volumes:
            kinds: Mapping[str, object] = {
                "persistentVolumeClaim": volume.persistent_volume_claim,
                "gcePersistentDisk": volume.gce_persistent_disk,
                "awsElasticBlockStore": volume.aws_elastic_block_store,
                "iscsi": volume.iscsi,
                "rbd": volume.rbd,
            }
            for kind, source in kinds.items():
                if source is not None:
                    return f"spec.volumes[{volume.name}].{kind}"
        return None


class NodeVolumeLimits(_Missing):
    """How many volumes of a driver a node can attach."""

    name = "NodeVolumeLimits"
    points = frozenset({"pre_filter", "filter"})

    def used_field(self, pod: PodInfo) -> str | None:
        """Claims and the in-line volumes that migrate to a CSI driver."""
        for volume in pod.spec.volumes:
            kinds: Mapping[str, object] = {
                "persistentVolumeClaim": volume.persistent_volume_claim,
                "ephemeral": volume.ephemeral,
                "awsElasticBlockStore": volume.aws_elastic_block_store,
                "gcePersistentDisk": volume.gce_persistent_disk,
                "azureDisk": volume.azure_disk,
                "cinder": volume.cinder,
            }
            for kind, source in kinds.items():
                if source is not None:
                    return f"spec.volumes[{volume.name}].{kind}"
        return None


class _NeedsClaims(_Missing):
    def used_field(self, pod: PodInfo) -> str | None:
        """Claims, written or made for the pod."""
        for volume in pod.spec.volumes:
            if volume.persistent_volume_claim is not None:
                return f"spec.volumes[{volume.name}].persistentVolumeClaim"
            if volume.ephemeral is not None:
                return f"spec.volumes[{volume.name}].ephemeral"
        return None


class VolumeBinding(_NeedsClaims):
    """Volumes bound, provisioned and reachable from the node."""

    name = "VolumeBinding"
    points = frozenset({"pre_filter", "filter", "reserve", "pre_bind", "pre_score", "score"})


class VolumeZone(_NeedsClaims):
    """Volumes that exist in one zone."""

    name = "VolumeZone"
    points = frozenset({"pre_filter", "filter"})


class DynamicResources(_Missing):
    """Devices allocated by claims (KEP-4381)."""

    name = "DynamicResources"
    points = frozenset(
        {"pre_enqueue", "pre_filter", "filter", "post_filter", "reserve", "pre_score", "score", "pre_bind"}
    )

    def used_field(self, pod: PodInfo) -> str | None:
        """Claims, and extended resources that a device class stands for (KEP-5004)."""
        if pod.spec.resource_claims:
            return "spec.resourceClaims"
        if self.handle.gates.enabled("DRAExtendedResource"):
            for resource in pod.shape.asked.scalars:
                if self.handle.cluster.is_device_resource(resource):
                    return f"the resource {resource} of a device class"
        return None


class DefaultPreemption(_Missing):
    """Room made by evicting pods of lower priority. No field needs it: a pod that finds no node waits."""

    name = "DefaultPreemption"
    points = frozenset({"post_filter"})

    def used_field(self, pod: PodInfo) -> str | None:
        """None."""
        return None


class GangScheduling(_Missing):
    """Pods that are placed together or not at all (KEP-4671). Stands in always: the API server drops the field where
    the feature is off."""

    name = "GangScheduling"
    points = frozenset({"pre_enqueue", "reserve", "permit"})
    always = True

    def used_field(self, pod: PodInfo) -> str | None:
        """Membership of a pod group."""
        group = pod.spec.scheduling_group
        return "spec.schedulingGroup" if group is not None and group.pod_group_name else None


class TopologyPlacementGenerator(_Missing):
    """Placements of pod groups. The pods themselves are GangScheduling's business."""

    name = "TopologyPlacementGenerator"
    points = frozenset({"placement_generate"})

    def used_field(self, pod: PodInfo) -> str | None:
        """None."""
        return None


class PodGroupPodsCount(_Missing):
    """Scores placements of pod groups. The pods themselves are GangScheduling's business."""

    name = "PodGroupPodsCount"
    points = frozenset({"placement_score"})

    def used_field(self, pod: PodInfo) -> str | None:
        """None."""
        return None


ABSENT = (
    VolumeRestrictions,
    NodeVolumeLimits,
    VolumeBinding,
    VolumeZone,
    DynamicResources,
    DefaultPreemption,
    GangScheduling,
    TopologyPlacementGenerator,
    PodGroupPodsCount,
)
