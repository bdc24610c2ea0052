"""What kind of resource a name stands for.

Kubernetes has no table of resources: the class of a name follows from how it is written, and decides whether a
scheduler counts it (`is_scalar`), whether an operator may ask to ignore it (`is_extended`), and what is dropped.
`requests` and the resource plugins ask here.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from ksched.model.label_syntax import key_faults

CPU: Final = "cpu"
MEMORY: Final = "memory"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
HUGEPAGES_PREFIX: Final = "hugepages-"
ATTACHABLE_VOLUMES_PREFIX: Final = "attachable-volumes-"
DEVICE_CLASS_PREFIX: Final = "deviceclass.resource.kubernetes.io/"

_NATIVE_DOMAIN: Final = "kubernetes.io/"
_QUOTA_PREFIX: Final = "requests."
_REMEMBERED_NAMES: Final = 4096


def is_native(name: str) -> bool:
    """Whether the name belongs to Kubernetes itself: it has no domain, or one of kubernetes.io."""
    return "/" not in name or _NATIVE_DOMAIN in name


@lru_cache(_REMEMBERED_NAMES)
def is_extended(name: str) -> bool:
    """Whether the name is of an extended resource, such as `example.com/gpu`."""
    return not is_native(name) and not name.startswith(_QUOTA_PREFIX) and not key_faults(_QUOTA_PREFIX + name)


def is_hugepage(name: str) -> bool:
    """Whether the name is of huge pages of some size, such as `hugepages-2Mi`."""
    return name.startswith(HUGEPAGES_PREFIX)


@lru_cache(_REMEMBERED_NAMES)
def is_scalar(name: str) -> bool:
    """Whether the scheduler counts the resource beside cpu, memory, ephemeral storage and pods."""
    return (
        is_extended(name) or is_hugepage(name) or _NATIVE_DOMAIN in name or name.startswith(ATTACHABLE_VOLUMES_PREFIX)
    )


@lru_cache(_REMEMBERED_NAMES)
def is_device_resource(name: str) -> bool:
    """Whether dynamic resource allocation may serve the name: an extended resource, or the implicit one of a
    device class.
    """
    return is_extended(name) or name.startswith(DEVICE_CLASS_PREFIX)
