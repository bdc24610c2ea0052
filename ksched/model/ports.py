"""Host ports: which ones a pod wants, and whether they are free.

A host port is taken together with its protocol and one address of the node. Addresses are compared as text: 0.0.0.0
stands for all of them and `::` only for itself; two spellings of one address differ. What is in use on a node is a set
of `HostPort`, kept by the cache; the NodePorts plugin asks `conflicts`.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Final, NamedTuple

from ksched.model.pod import Container, Pod

EVERY_ADDRESS: Final = "0.0.0.0"
DEFAULT_PROTOCOL: Final = "TCP"


class HostPort(NamedTuple):
    """A port of a node. `address` and `protocol` are never empty; what a pod leaves out has its default here."""

    address: str
    protocol: str
    port: int


def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """The host ports that `pod` wants: its sidecars' before its containers', repeated where they are written twice.

    Init containers that end are left out, as upstream: they may collide with one another.
    """
    sidecars = [container for container in pod.spec.init_containers if container.restart_policy == "Always"]
    return tuple(port for container in (*sidecars, *pod.spec.containers) for port in _host_ports_of(container))


def conflicts(wanted: HostPort, used: Set[HostPort]) -> bool:
    """Whether `wanted` is taken, given all ports that are `used` on a node."""
    if not used:
        return False
    address, protocol, port = wanted
    if address == EVERY_ADDRESS:
        return any(other.port == port and other.protocol == protocol for other in used)
    return wanted in used or HostPort(EVERY_ADDRESS, protocol, port) in used


def _host_ports_of(container: Container) -> list[HostPort]:
    return [
        HostPort(port.host_ip or EVERY_ADDRESS, port.protocol or DEFAULT_PROTOCOL, port.host_port)
        for port in container.ports
        if port.host_port > 0
    ]
