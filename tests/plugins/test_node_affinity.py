"""NodeAffinity: nodeSelector, required and preferred terms, named nodes, and what the profile adds."""

from __future__ import annotations

from typing import Any

import pytest

from ksched.errors import ConfigurationError
from ksched.testing import PodBuilder, cluster, node, pod
from tests.plugins.asking import KEPT, Outcome, evaluate, plugin_of, raw_scores, verdict

NODE = node("n").capacity(cpu="4", memory="8Gi", pods=110).label(disk="ssd", cores="16")
MISSED: Outcome = ("UnschedulableAndUnresolvable", ["node(s) didn't match Pod's node affinity/selector"])


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        pytest.param(pod(), KEPT, id="no affinity"),
        pytest.param(pod().node_selector(disk="ssd"), KEPT, id="a selector that matches"),
        pytest.param(pod().node_selector(disk="hdd"), MISSED, id="a selector that does not"),
        pytest.param(pod().require_node(("disk", "In", "ssd", "nvme")), KEPT, id="In"),
        pytest.param(pod().require_node(("disk", "NotIn", "ssd")), MISSED, id="NotIn"),
        pytest.param(pod().require_node(("zone", "NotIn", "a")), KEPT, id="NotIn holds where the label is absent"),
        pytest.param(pod().require_node(("disk", "Exists")), KEPT, id="Exists"),
        pytest.param(pod().require_node(("disk", "DoesNotExist")), MISSED, id="DoesNotExist"),
        pytest.param(pod().require_node(("cores", "Gt", "8")), KEPT, id="Gt compares numbers"),
        pytest.param(pod().require_node(("cores", "Lt", "16")), MISSED, id="Lt is strict"),
        pytest.param(pod().require_node(("disk", "Gt", "1")), MISSED, id="a label that is no number is not above one"),
        pytest.param(
            pod().require_node(("disk", "In", "hdd")).require_node(("cores", "Exists")), KEPT, id="terms are ored"
        ),
        pytest.param(
            pod().require_node(("disk", "In", "ssd"), ("cores", "In", "8")), MISSED, id="expressions are anded"
        ),
        pytest.param(
            pod().node_selector(disk="hdd").require_node(("disk", "In", "ssd")), MISSED, id="the selector counts too"
        ),
        pytest.param(pod().require_node(("cores", "Gt", "many")), MISSED, id="a malformed term matches nothing"),
        pytest.param(
            pod().require_node(("cores", "Gt", "many")).require_node(("disk", "Exists")),
            KEPT,
            id="beside one that matches it does no harm",
        ),
        pytest.param(
            pod().require_node(fields=(("metadata.name", "NotIn", "n"),)),
            MISSED,
            id="a node that is excluded by name",
        ),
        pytest.param(pod().require_node(fields=(("metadata.uid", "In", "x"),)), MISSED, id="other fields are empty"),
    ],
)
def test_filter(one: PodBuilder, expected: Outcome) -> None:
    assert verdict("NodeAffinity", one, NODE) == expected


def named(*names: str) -> tuple[str, ...]:
    return "metadata.name", "In", *names


@pytest.mark.parametrize(
    ("one", "nodes", "message"),
    [
        pytest.param(pod().require_node(fields=(named("n"),)), {"n"}, "", id="one name narrows the search"),
        pytest.param(
            pod().require_node(fields=(named("n"),)).require_node(fields=(named("m"),)),
            {"n", "m"},
            "",
            id="names of terms add up",
        ),
        pytest.param(
            pod().require_node(fields=(named("n"),)).require_node(("disk", "Exists")),
            None,
            "",
            id="a term without a name opens the search again",
        ),
        pytest.param(
            pod().require_node(fields=(named("n"), named("m"))),
            None,
            "0/2 nodes are available: pod affinity terms conflict.",
            id="names that contradict each other",
        ),
        pytest.param(
            pod().require_node(fields=(named("gone"),)),
            {"gone"},
            "0/2 nodes are available: 2 node(s) didn't satisfy plugin(s) [NodeAffinity].",
            id="a node that does not exist",
        ),
    ],
)
def test_named_nodes(one: PodBuilder, nodes: set[str] | None, message: str) -> None:
    report = evaluate(one, [NODE, node("m").capacity(cpu="4", memory="8Gi", pods=110).label(disk="ssd")])
    assert (report.pre_filter_nodes, report.message) == (nodes, message)


def test_preferred_terms_add_their_weights() -> None:
    one = (
        pod().prefer_node(30, ("disk", "In", "ssd")).prefer_node(7, ("cores", "Exists")).prefer_node(0, ("x", "Exists"))
    )
    nodes = [NODE, node("m").label(cores="4"), node("o")]
    assert raw_scores("NodeAffinity", one, nodes) == [37, 7, 0]


def test_a_malformed_preference_fails_the_cycle() -> None:
    one = pod().prefer_node(30, ("cores", "Gt", "many"))
    where = '[0].matchExpressions[0].values[0]: Invalid value: "many"'
    says = f"{where}: for 'Gt', 'Lt' operators, the value must be an integer"
    assert raw_scores("NodeAffinity", one, [NODE]) == says
    report = evaluate(one, [NODE, node("m").capacity(cpu="4", memory="8Gi", pods=110)])
    assert report.error is not None
    assert report.error.message == f'running PreScore plugin "NodeAffinity": {says}'


def test_a_pod_without_preferences_gets_no_score() -> None:
    assert raw_scores("NodeAffinity", pod(), [NODE]) == "Skip"


def added(**affinity: Any) -> dict[str, Any]:
    return {"addedAffinity": affinity}


def required(*expressions: dict[str, Any]) -> dict[str, Any]:
    return {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]}


SSD = {"key": "disk", "operator": "In", "values": ["ssd"]}
HDD = {"key": "disk", "operator": "In", "values": ["hdd"]}


def test_the_profiles_affinity_comes_before_the_pods() -> None:
    args = added(requiredDuringSchedulingIgnoredDuringExecution=required(HDD))
    expected = ("UnschedulableAndUnresolvable", ["node(s) didn't match scheduler-enforced node affinity"])
    assert verdict("NodeAffinity", pod(), NODE, args=args) == expected
    assert verdict("NodeAffinity", pod().node_selector(disk="hdd"), NODE, args=args) == expected


def test_the_profiles_preferences_count_for_every_pod() -> None:
    preferred = [{"weight": 5, "preference": {"matchExpressions": [SSD]}}]
    args = added(preferredDuringSchedulingIgnoredDuringExecution=preferred)
    assert raw_scores("NodeAffinity", pod(), [NODE, node("m")], args=args) == [5, 0]
    assert raw_scores("NodeAffinity", pod().prefer_node(7, ("cores", "Exists")), [NODE, node("m")], args=args) == [
        12,
        0,
    ]


def test_a_malformed_added_affinity_is_refused() -> None:
    wrong = {"key": "disk", "operator": "Near", "values": ["ssd"]}
    args = added(requiredDuringSchedulingIgnoredDuringExecution=required(wrong))
    with pytest.raises(ConfigurationError, match=r"^parsing addedAffinity\.requiredDuringScheduling"):
        plugin_of("NodeAffinity", cluster([]), args)
