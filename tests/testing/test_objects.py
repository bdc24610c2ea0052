"""Builders: what one writes is what one gets, as JSON and as ksched's objects, and no builder ever changes."""

from __future__ import annotations

import doctest
from types import ModuleType
from typing import Any

import msgspec
import pytest

import ksched.testing
from ksched.api.decode import NODE, POD
from ksched.testing import clusters, node, nodes, pod, pods
from ksched.testing.nodes import NodeBuilder
from ksched.testing.pods import PodBuilder


@pytest.mark.parametrize(
    "module", [pytest.param(module, id=module.__name__) for module in (ksched.testing, pods, nodes, clusters)]
)
def test_the_examples_in_the_documentation_are_true(module: ModuleType) -> None:
    result = doctest.testmod(module)
    assert result.attempted
    assert not result.failed


SPEC_CASES = [
    pytest.param(
        pod().request(cpu="500m", memory="1Gi").request({"example.com/gpu": 1}, ephemeral_storage="1Gi"),
        {
            "containers": [
                {
                    "name": "main",
                    "resources": {
                        "requests": {
                            "cpu": "500m",
                            "memory": "1Gi",
                            "example.com/gpu": 1,
                            "ephemeral-storage": "1Gi",
                        }
                    },
                }
            ]
        },
        id="requests add up, and _ stands for - in a resource name",
    ),
    pytest.param(
        pod().image("app:1").limit(cpu=1).container("proxy").request(cpu="10m").port(80, host_ip="10.0.0.1"),
        {
            "containers": [
                {"name": "main", "image": "app:1", "resources": {"limits": {"cpu": 1}}},
                {
                    "name": "proxy",
                    "resources": {"requests": {"cpu": "10m"}},
                    "ports": [{"containerPort": 80, "hostPort": 80, "protocol": "TCP", "hostIP": "10.0.0.1"}],
                },
            ]
        },
        id="what follows a container is said of it",
    ),
    pytest.param(
        pod().init_container("prepare").request(cpu=2).sidecar("log").port(53, protocol="UDP"),
        {
            "containers": [{"name": "main"}],
            "initContainers": [
                {"name": "prepare", "resources": {"requests": {"cpu": 2}}},
                {
                    "name": "log",
                    "restartPolicy": "Always",
                    "ports": [{"containerPort": 53, "hostPort": 53, "protocol": "UDP"}],
                },
            ],
        },
        id="a sidecar is an init container that keeps running",
    ),
    pytest.param(
        pod().tolerate("gpu").tolerate("team", "a", effect="NoExecute").tolerate().tolerate("n", "5", operator="Lt"),
        {
            "containers": [{"name": "main"}],
            "tolerations": [
                {"operator": "Exists", "key": "gpu"},
                {"operator": "Equal", "key": "team", "effect": "NoExecute", "value": "a"},
                {"operator": "Exists"},
                {"operator": "Lt", "key": "n", "value": "5"},
            ],
        },
        id="tolerations of a key, of a value, of everything, of a number",
    ),
    pytest.param(
        pod()
        .require_node(("zone", "In", "a", "b"), ("disk", "Exists"))
        .require_node(fields=(("metadata.name", "In", "n"),))
        .prefer_node(5, ("disk", "DoesNotExist")),
        {
            "containers": [{"name": "main"}],
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {
                                "matchExpressions": [
                                    {"key": "zone", "operator": "In", "values": ["a", "b"]},
                                    {"key": "disk", "operator": "Exists"},
                                ]
                            },
                            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]},
                        ]
                    },
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {
                            "weight": 5,
                            "preference": {"matchExpressions": [{"key": "disk", "operator": "DoesNotExist"}]},
                        }
                    ],
                }
            },
        },
        id="one call is one term",
    ),
    pytest.param(
        pod()
        .priority(7)
        .scheduler("mine")
        .gate("a", "b")
        .node_selector(disk="ssd")
        .node_selector({"a/b": "c"})
        .overhead(cpu="1m")
        .pod_request(memory="1Gi")
        .volume("data", persistentVolumeClaim={"claimName": "data"})
        .on("n")
        .spec(hostNetwork=True),
        {
            "containers": [{"name": "main"}],
            "priority": 7,
            "schedulerName": "mine",
            "schedulingGates": [{"name": "a"}, {"name": "b"}],
            "nodeSelector": {"disk": "ssd", "a/b": "c"},
            "overhead": {"cpu": "1m"},
            "resources": {"requests": {"memory": "1Gi"}},
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
            "nodeName": "n",
            "hostNetwork": True,
        },
        id="everything else",
    ),
]


@pytest.mark.parametrize(("built", "spec"), SPEC_CASES)
def test_a_pod_is_what_one_writes(built: PodBuilder, spec: dict[str, Any]) -> None:
    assert built.to_dict()["spec"] == spec


@pytest.mark.parametrize(("built", "spec"), SPEC_CASES)
def test_a_built_pod_is_what_the_server_would_send(built: PodBuilder, spec: dict[str, Any]) -> None:
    assert built.build() == POD.object(msgspec.json.encode(built.to_dict()))


def test_a_pod_has_a_name_a_namespace_and_a_uid_of_its_own() -> None:
    built = pod("web", "shop").label(app="web").annotation({"a/b": "c"}).owner("ReplicaSet", "web").nominated("n")
    assert built.build().key == "shop/web"
    assert built.build().uid == "uid-shop-web"
    assert built.uid("1").build().uid == "1"
    assert built.build().status.nominated_node_name == "n"
    assert built.to_dict()["metadata"]["ownerReferences"][0]["controller"] is True


def test_a_node_is_what_one_writes() -> None:
    built = (
        node("a")
        .capacity({"example.com/gpu": 8}, cpu="8")
        .taint("gpu", effect="NoExecute")
        .taint("team", "a")
        .zone("z")
        .image("nginx:1", "50Mi", "nginx:latest")
        .feature("X", "Y")
        .unschedulable()
    )
    written = built.to_dict()
    assert written["spec"] == {
        "taints": [{"key": "gpu", "effect": "NoExecute"}, {"key": "team", "effect": "NoSchedule", "value": "a"}],
        "unschedulable": True,
    }
    assert written["metadata"]["labels"] == {"kubernetes.io/hostname": "a", "topology.kubernetes.io/zone": "z"}
    has = {"cpu": "8", "memory": "16Gi", "pods": "110", "example.com/gpu": 8}
    assert written["status"] == {
        "capacity": has,
        "allocatable": has,
        "images": [{"names": ["nginx:1", "nginx:latest"], "sizeBytes": 50 << 20}],
        "declaredFeatures": ["X", "Y"],
    }
    assert built.build() == NODE.object(msgspec.json.encode(written))


def test_allocatable_is_exactly_what_is_given() -> None:
    assert node().allocatable(cpu="1").build().status.allocatable == {"cpu": "1"}
    assert node().allocatable().build().status.allocatable == {}


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda pod: pod.request(cpu="1"), id="request"),
        pytest.param(lambda pod: pod.image("x"), id="image"),
        pytest.param(lambda pod: pod.port(1), id="port"),
        pytest.param(lambda pod: pod.label(a="b"), id="label"),
        pytest.param(lambda pod: pod.tolerate("x"), id="tolerate"),
        pytest.param(lambda pod: pod.container("x"), id="container"),
        pytest.param(lambda pod: pod.require_node(("a", "Exists")), id="require_node"),
    ],
)
def test_a_call_leaves_the_builder_as_it_was(change: Any) -> None:
    start = pod().request(memory="1Gi").port(80).label(x="y").tolerate("y").require_node(("b", "Exists"))
    before = start.to_dict()
    assert change(start).to_dict() != before
    assert start.to_dict() == before


def test_what_to_dict_gives_is_the_callers_own() -> None:
    start = node("a")
    start.to_dict()["metadata"]["name"] = "b"
    assert start.build().name == "a"


@pytest.mark.parametrize(
    "wrong", [pytest.param("zone", id="a text"), pytest.param(("zone",), id="a key without an operator")]
)
def test_a_requirement_that_is_none_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match="expected a requirement such as"):
        pod().require_node(wrong)


def test_builders_are_shown_by_name() -> None:
    assert repr(pod("web")) == "<PodBuilder web>"
    assert isinstance(node(), NodeBuilder)
