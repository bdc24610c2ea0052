"""Host ports: which a pod wants and which are taken."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ksched.model.pod import Pod
from ksched.model.ports import HostPort, conflicts, host_ports


def port(host_port: int, protocol: str = "", address: str = "") -> dict[str, Any]:
    return {"containerPort": 80, "hostPort": host_port, "protocol": protocol, "hostIP": address}


def made(*containers: dict[str, Any], init: tuple[dict[str, Any], ...] = ()) -> Pod:
    return msgspec.convert({"spec": {"containers": containers, "initContainers": init}}, Pod)


@pytest.mark.parametrize(
    ("pod", "wanted"),
    [
        pytest.param(made({}), [], id="no ports"),
        pytest.param(made({"ports": [port(0), {"containerPort": 80}]}), [], id="no host ports"),
        pytest.param(made({"ports": [port(80)]}), [("0.0.0.0", "TCP", 80)], id="every address and TCP are understood"),
        pytest.param(
            made({"ports": [port(80, "UDP", "10.0.0.1")]}), [("10.0.0.1", "UDP", 80)], id="an address and a protocol"
        ),
        pytest.param(
            made({"ports": [port(80)]}, {"ports": [port(80)]}),
            [("0.0.0.0", "TCP", 80), ("0.0.0.0", "TCP", 80)],
            id="all containers, twice what is written twice",
        ),
        pytest.param(
            made({"ports": [port(80)]}, init=({"ports": [port(1)]}, {"restartPolicy": "Always", "ports": [port(2)]})),
            [("0.0.0.0", "TCP", 2), ("0.0.0.0", "TCP", 80)],
            id="sidecars first, other init containers not at all",
        ),
    ],
)
def test_host_ports(pod: Pod, wanted: list[tuple[str, str, int]]) -> None:
    assert list(host_ports(pod)) == wanted


@pytest.mark.parametrize(
    ("wanted", "used", "taken"),
    [
        pytest.param(("0.0.0.0", "TCP", 80), [], False, id="a node without host ports"),
        pytest.param(("0.0.0.0", "TCP", 80), [("0.0.0.0", "TCP", 80)], True, id="the same port"),
        pytest.param(("0.0.0.0", "TCP", 80), [("0.0.0.0", "TCP", 81)], False, id="another port"),
        pytest.param(("0.0.0.0", "TCP", 80), [("0.0.0.0", "UDP", 80)], False, id="another protocol"),
        pytest.param(("0.0.0.0", "TCP", 80), [("10.0.0.1", "TCP", 80)], True, id="every address takes in each one"),
        pytest.param(("0.0.0.0", "TCP", 80), [("::1", "TCP", 80)], True, id="those of IPv6 too"),
        pytest.param(("10.0.0.1", "TCP", 80), [("0.0.0.0", "TCP", 80)], True, id="one address, all of which are taken"),
        pytest.param(("10.0.0.1", "TCP", 80), [("10.0.0.2", "TCP", 80)], False, id="one address, another taken"),
        pytest.param(("10.0.0.1", "TCP", 80), [("10.0.0.01", "TCP", 80)], False, id="another spelling is another one"),
        pytest.param(("::1", "TCP", 80), [("::", "TCP", 80)], False, id=":: is an address like any other"),
    ],
)
def test_conflicts(wanted: tuple[str, str, int], used: list[tuple[str, str, int]], taken: bool) -> None:
    assert conflicts(HostPort(*wanted), {HostPort(*one) for one in used}) is taken
