"""Filters with one rule each: NodeUnschedulable, NodeName, TaintToleration, NodePorts, NodeDeclaredFeatures, gates."""

from __future__ import annotations

import pytest

from ksched.config.gates import FeatureGates
from ksched.plugins.priority_sort import PrioritySort
from ksched.plugins.scheduling_gates import SchedulingGates
from ksched.testing import NodeBuilder, PodBuilder, cluster, handle, node, pod
from tests.plugins.asking import KEPT, evaluate, outcome, verdict

NODE = node("n").capacity(cpu="4", memory="8Gi", pods=110)
NUMERIC = FeatureGates({"TaintTolerationComparisonOperators": True})


@pytest.mark.parametrize(
    ("one", "keeps"),
    [
        pytest.param(pod(), False, id="a cordoned node takes no pod"),
        pytest.param(pod().tolerate("node.kubernetes.io/unschedulable"), True, id="but one that tolerates the taint"),
        pytest.param(pod().tolerate(), True, id="or every taint"),
        pytest.param(
            pod().tolerate("node.kubernetes.io/unschedulable", effect="NoExecute"), False, id="not by another effect"
        ),
    ],
)
def test_node_unschedulable(one: PodBuilder, keeps: bool) -> None:
    expected = KEPT if keeps else ("UnschedulableAndUnresolvable", ["node(s) were unschedulable"])
    assert verdict("NodeUnschedulable", one, NODE.unschedulable()) == expected
    assert verdict("NodeUnschedulable", one, NODE) == KEPT


@pytest.mark.parametrize(
    ("wanted", "keeps"),
    [
        pytest.param("", True, id="a pod that names no node may run anywhere"),
        pytest.param("n", True, id="the node that it names is kept"),
        pytest.param("other", False, id="another one is not"),
    ],
)
def test_node_name(wanted: str, keeps: bool) -> None:
    expected = KEPT if keeps else ("UnschedulableAndUnresolvable", ["node(s) didn't match the requested node name"])
    assert verdict("NodeName", pod().spec(nodeName=wanted), NODE) == expected


@pytest.mark.parametrize(
    ("tainted", "one", "gates", "keeps"),
    [
        pytest.param(NODE, pod(), None, True, id="a node without taints keeps every pod"),
        pytest.param(NODE.taint("gpu"), pod(), None, False, id="a taint nobody tolerates removes the node"),
        pytest.param(NODE.taint("gpu"), pod().tolerate("gpu"), None, True, id="a matching toleration keeps it"),
        pytest.param(NODE.taint("gpu").taint("spot"), pod().tolerate("gpu"), None, False, id="every taint counts"),
        pytest.param(NODE.taint("gpu", effect="PreferNoSchedule"), pod(), None, True, id="a soft taint never removes"),
        pytest.param(NODE.taint("gpu", effect="NoExecute"), pod(), None, False, id="NoExecute keeps new pods away too"),
        pytest.param(NODE.taint("gpu", "a"), pod().tolerate("gpu", "b"), None, False, id="values must be equal"),
        pytest.param(
            NODE.taint("sla", "950"), pod().tolerate("sla", "900", operator="Gt"), NUMERIC, True, id="950 is above 900"
        ),
        pytest.param(
            NODE.taint("sla", "950"), pod().tolerate("sla", "900", operator="Gt"), None, False, id="only with the gate"
        ),
        pytest.param(
            NODE.taint("sla", "0950"),
            pod().tolerate("sla", "900", operator="Gt"),
            NUMERIC,
            False,
            id="no leading zeros",
        ),
    ],
)
def test_taint_toleration(tainted: NodeBuilder, one: PodBuilder, gates: FeatureGates | None, keeps: bool) -> None:
    expected = KEPT if keeps else ("UnschedulableAndUnresolvable", ["node(s) had untolerated taint(s)"])
    assert verdict("TaintToleration", one, tainted, gates=gates) == expected


def test_soft_taints_make_a_node_less_liked() -> None:
    soft = node("soft").taint("a", effect="PreferNoSchedule").taint("b", effect="PreferNoSchedule")
    some = node("some").taint("a", effect="PreferNoSchedule").taint("b", effect="PreferNoSchedule")
    nodes = [
        each.capacity(cpu="4", memory="8Gi", pods=9)
        for each in (soft, some.taint("c", effect="PreferNoSchedule"), NODE)
    ]
    report = evaluate(pod().tolerate("a", effect="PreferNoSchedule"), nodes)
    assert {name: scores["TaintToleration"] for name, scores in report.raw.items()} == {"soft": 1, "some": 2, "n": 0}
    assert {name: scores["TaintToleration"] for name, scores in report.scores.items()} == {
        "soft": 150,
        "some": 0,
        "n": 300,
    }


@pytest.mark.parametrize(
    ("wanted", "taken", "keeps"),
    [
        pytest.param(pod().port(80), pod("t"), True, id="a port that nobody holds"),
        pytest.param(pod().port(80), pod("t").port(80), False, id="a port that is held"),
        pytest.param(pod().port(80), pod("t").port(81), True, id="another port"),
        pytest.param(pod().port(80), pod("t").port(80, protocol="UDP"), True, id="another protocol"),
        pytest.param(
            pod().port(80, host_ip="10.0.0.1"), pod("t").port(80, host_ip="10.0.0.2"), True, id="another address"
        ),
        pytest.param(pod().port(80), pod("t").port(80, host_ip="10.0.0.2"), False, id="all addresses against one"),
        pytest.param(pod().port(80, host_ip="10.0.0.1"), pod("t").port(80), False, id="one address against all"),
        pytest.param(
            pod().port(80, host_ip="::1"), pod("t").port(80), False, id="0.0.0.0 is every address, also of IPv6"
        ),
        pytest.param(
            pod().port(80, host_ip="::"), pod("t").port(80, host_ip="::1"), True, id=":: is just another address"
        ),
        pytest.param(pod().sidecar("s").port(80), pod("t").port(80), False, id="sidecars count"),
        pytest.param(pod().init_container("i").port(80), pod("t").port(80), True, id="other init containers do not"),
    ],
)
def test_node_ports(wanted: PodBuilder, taken: PodBuilder, keeps: bool) -> None:
    expected = KEPT if keeps else ("Unschedulable", ["node(s) didn't have free ports for the requested pod ports"])
    assert verdict("NodePorts", wanted, NODE, taken.on("n")) == expected


NEEDY = pod().spec(hostNetwork=True, hostUsers=False)


@pytest.mark.parametrize(
    ("one", "declared", "keeps"),
    [
        pytest.param(pod(), (), True, id="a pod that needs nothing runs anywhere"),
        pytest.param(NEEDY, (), False, id="a feature that the node does not declare"),
        pytest.param(NEEDY, ("UserNamespacesHostNetworkSupport",), True, id="a feature that it declares"),
        pytest.param(NEEDY, ("Other", "UserNamespacesHostNetworkSupport"), True, id="unknown features are passed over"),
        pytest.param(
            NEEDY, ("Zebra", "UserNamespacesHostNetworkSupport"), False, id="an unsorted list hides what comes too late"
        ),
        pytest.param(
            pod().container("c", restartPolicyRules=[{"action": "RestartAllContainers"}]),
            ("RestartAllContainersOnContainerExits",),
            True,
            id="restarting all containers",
        ),
    ],
)
def test_node_declared_features(one: PodBuilder, declared: tuple[str, ...], keeps: bool) -> None:
    expected = KEPT if keeps else ("UnschedulableAndUnresolvable", ["node(s) didn't match Pod's required features"])
    assert verdict("NodeDeclaredFeatures", one, NODE.feature(*declared) if declared else NODE) == expected


def test_node_declared_features_does_nothing_with_its_gate_off() -> None:
    needs_it = (
        "ExtendWebSocketsToKubelet",
        "InPlacePodLevelResourcesVerticalScaling",
        "InPlacePodVerticalScalingInitContainers",
        "RestartAllContainersOnContainerExits",
    )
    off = FeatureGates(dict.fromkeys(("NodeDeclaredFeatures", *needs_it), False))
    assert verdict("NodeDeclaredFeatures", NEEDY, NODE, gates=off) == KEPT


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        pytest.param(pod(), KEPT, id="a pod without gates"),
        pytest.param(
            pod().gate("b", "a"),
            ("UnschedulableAndUnresolvable", ["waiting for scheduling gates: [b a]"]),
            id="gates are named in the order in which they are written",
        ),
    ],
)
def test_scheduling_gates(one: PodBuilder, expected: tuple[str, list[str]]) -> None:
    here = cluster([])
    plugin = SchedulingGates(SchedulingGates.Args(), handle(here))
    assert outcome(plugin.pre_enqueue(here.shapes.info(one.build()))) == expected


def test_priority_sort_puts_priority_before_arrival() -> None:
    here = cluster([])
    plugin = PrioritySort(PrioritySort.Args(), handle(here))
    waiting = [
        (pod("late").priority(5), 2.0),
        (pod("low"), 0.0),
        (pod("early").priority(5), 1.0),
        (pod("high").priority(9), 3.0),
    ]
    ordered = sorted(waiting, key=lambda entry: plugin.sort_key(here.shapes.info(entry[0].build()), entry[1]))
    assert [one.build().name for one, _ in ordered] == ["high", "early", "late", "low"]
