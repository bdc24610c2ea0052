"""Node-declared features (KEP-5328): what a node says it can do, what a pod needs of it, as bit maps.

The registry and the inference are Kubernetes 1.36's; its order is the bit order.
"""

from __future__ import annotations

from collections.abc import Sequence

from ksched.model.pod import Pod

REGISTRY = (
    "ExtendWebSocketsToKubelet",
    "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScalingInitContainers",
    "RestartAllContainersOnContainerExits",
    "UserNamespacesHostNetworkSupport",
)

_RESTART_ALL_CONTAINERS = 1 << REGISTRY.index("RestartAllContainersOnContainerExits")
_USER_NAMESPACES_ON_HOST_NETWORK = 1 << REGISTRY.index("UserNamespacesHostNetworkSupport")


def node_features(declared: Sequence[str]) -> int:
    """The bit map of a node's declared features.

    As upstream the list is walked once beside the sorted registry, so in a list that is not sorted an entry smaller
    than one already passed is not seen.
    """
    bits = known = position = 0
    while known < len(REGISTRY) and position < len(declared):
        if declared[position] == REGISTRY[known]:
            bits |= 1 << known
            known += 1
            position += 1
        elif declared[position] < REGISTRY[known]:
            position += 1
        else:
            known += 1
    return bits


def required_features(pod: Pod) -> int:
    """The bit map of the features without which a pod cannot run."""
    bits = 0
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        if any(rule.action == "RestartAllContainers" for rule in container.restart_policy_rules):
            bits |= _RESTART_ALL_CONTAINERS
    if pod.spec.host_network and pod.spec.host_users is False:
        bits |= _USER_NAMESPACES_ON_HOST_NETWORK
    return bits
