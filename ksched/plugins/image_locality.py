"""ImageLocality: nodes that have the pod's images already are liked, the more so the larger the images.

An image counts by its size times the share of nodes that have it, so that a rare image does not draw every pod to one
node.
"""

from __future__ import annotations

import numpy as np

from ksched.cache.table import Amounts
from ksched.framework import ArrayScorePlugin, CycleState, NodeInfo, PodInfo, Scope, ScorePlugin, Status, Table

MEBIBYTE = 1024 * 1024
LEAST = 23 * MEBIBYTE
MOST_PER_CONTAINER = 1000 * MEBIBYTE


class ImageLocality(ScorePlugin, ArrayScorePlugin):
    """Score the images that a node has: 0 below 23 MiB, 100 from 1000 MiB per container on."""

    name = "ImageLocality"
    scope = Scope.NODE
    shape_decides = True

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int | Status:
        """The sum over the pod's images, scaled to 0..100."""
        total = self.handle.cluster.node_count
        images, containers = wanted_images(pod)
        found = [image for name in images if (image := node.image(name)) is not None]
        return scaled(sum(int(float(size) * (float(nodes) / float(total))) for size, nodes in found), containers)

    def is_settled(self, state: CycleState, pod: PodInfo) -> bool:
        """Whether no refresh of a node can change its score: the number of nodes with each image has never changed."""
        images, _ = wanted_images(pod)
        found = [self.handle.cluster.images.get(name) for name in images]
        return all(image is None or len(image.counts) == 1 for image in found)

    def score_array(self, state: CycleState, pod: PodInfo, nodes: Table) -> Amounts:
        """The same, image by image, over the nodes that have it."""
        cluster = self.handle.cluster
        images, containers = pod.shape.memo.get(self) or pod.shape.memo.setdefault(self, wanted_images(pod))
        sums = np.zeros(nodes.size, dtype=np.int64)
        for name in images:
            image = cluster.images.get(name)
            if image is None:
                continue
            slots = image.slots()
            share = image.counts_at(nodes.refreshed[slots]).astype(np.float64) / float(cluster.node_count)
            sums[slots] += (float(image.size) * share).astype(np.int64)
        most = MOST_PER_CONTAINER * containers
        # min before max, as `scaled`: a pod without containers has a lower bound above its upper one
        scores: Amounts = 100 * (np.where(sums < LEAST, LEAST, np.minimum(sums, most)) - LEAST) // (most - LEAST)
        return scores


def wanted_images(pod: PodInfo) -> tuple[list[str], int]:
    """The pod's images by their normal names, once per occurrence, and the number of containers; image volumes count
    only among the former."""
    containers = [*pod.spec.init_containers, *pod.spec.containers]
    names = [container.image for container in containers] + [
        volume.image.reference for volume in pod.spec.volumes if volume.image is not None
    ]
    return [normal_name(name) for name in names], len(containers)


def normal_name(image: str) -> str:
    """The image with `:latest` where it has neither tag nor digest."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"


def scaled(total: int, containers: int) -> int:
    """The sum within its bounds, as 0..100."""
    most = MOST_PER_CONTAINER * containers
    within = LEAST if total < LEAST else min(total, most)
    return 100 * (within - LEAST) // (most - LEAST)
