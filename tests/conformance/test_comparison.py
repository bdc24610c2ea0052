"""The comparison itself: what counts as the same, as absent, and, above all, what must never be excused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.cases import Decision, PostFilterVerdict, Verdict
from tests.conformance.comparison import Comparison, Plugins, compare, without_post_filter

LACKING = frozenset({"Affinity", "Spread", "Claims"})
ORDER = {
    "pre_enqueue": ("Gates", "Claims"),
    "pre_filter": ("Selector", "Affinity", "Claims"),
    "filter": ("Taints", "Spread", "Affinity", "Fit"),
}


def plugins(**more: Any) -> Plugins:
    return Plugins(lambda name: name not in LACKING, ORDER, **more)


def no(plugin: str, *reasons: str, code: str = "Unschedulable") -> Verdict:
    return Verdict(plugin, code, reasons or ("no",))


def placed(by_node: dict[str, dict[str, int]], **more: Any) -> Decision:
    """A decision in which these nodes are feasible with these scores."""
    total = {node: sum(by_plugin.values()) for node, by_plugin in by_node.items()}
    best = tuple(sorted(node for node, score in total.items() if score == max(total.values())))
    fields = {"raw": by_node, "scores": by_node, "total": total, "best": best, **more}
    return Decision(feasible=tuple(sorted(by_node)), **fields)


def fields_of(found: Comparison) -> list[str]:
    return [difference.field for difference in found.differences]


FIT = {"a": {"Fit": 10}, "b": {"Fit": 20}}
WITH_CONSTANT = {"a": {"Fit": 10, "Claims": 5}, "b": {"Fit": 20, "Claims": 5}}
WITH_LACKING = {"a": {"Fit": 10, "Affinity": 50}, "b": {"Fit": 20, "Affinity": 0}}


@pytest.mark.parametrize(
    "decision",
    [
        pytest.param(Decision(skip="pod is being deleted"), id="a pod that is skipped"),
        pytest.param(Decision(pre_enqueue=no("Gates")), id="a gated pod"),
        pytest.param(Decision(pre_filter=no("Selector"), message="0/1 nodes are available: no."), id="a PreFilter no"),
        pytest.param(Decision(filter={"a": no("Fit")}, message="0/1 nodes are available: 1 no."), id="no node fits"),
        pytest.param(placed(FIT), id="a pod that is placed"),
        pytest.param(Decision(feasible=("a", "b"), error="running PreScore plugin"), id="an internal error"),
    ],
)
def test_the_same_decision_is_core_and_full(decision: Decision) -> None:
    found = compare(decision, decision, plugins())
    assert found.core
    assert found.full


@pytest.mark.parametrize(
    ("expected", "got", "fields"),
    [
        pytest.param(Decision(skip="no profile"), placed(FIT), ["skip"], id="a pod that should be skipped"),
        pytest.param(placed(FIT), Decision(pre_enqueue=no("Gates")), ["preEnqueue"], id="a pod wrongly gated"),
        pytest.param(placed(FIT), Decision(pre_filter=no("Selector")), ["preFilter"], id="a pod wrongly turned down"),
        pytest.param(
            Decision(pre_filter=no("Selector", "x")),
            Decision(pre_filter=no("Selector", "y")),
            ["preFilter"],
            id="another reason from PreFilter",
        ),
        pytest.param(
            placed(FIT, pre_filter_nodes=("a", "b")), placed(FIT), ["preFilterNodes"], id="nodes that were not narrowed"
        ),
        pytest.param(
            Decision(filter={"a": no("Fit", code="Unschedulable")}),
            Decision(filter={"a": no("Fit", code="UnschedulableAndUnresolvable")}),
            ["filter[a]"],
            id="another code",
        ),
        pytest.param(
            Decision(filter={"a": no("Fit")}), Decision(filter={"a": no("Taints")}), ["filter[a]"], id="another plugin"
        ),
        pytest.param(placed(FIT), placed({"b": {"Fit": 20}}), ["feasible[a]"], id="a feasible node that is missing"),
        pytest.param(placed({"b": {"Fit": 20}}), placed(FIT), ["filter[a]"], id="a node that was not looked at"),
        pytest.param(
            placed(FIT),
            placed(FIT, raw={"a": {"Fit": 10}, "b": {"Fit": 21}}),
            ["raw[b]"],
            id="another raw score",
        ),
        pytest.param(
            placed(FIT),
            placed({"a": {"Fit": 10}, "b": {"Fit": 20, "Taints": 0}}),
            ["raw[b]", "scores[b]"],
            id="a score of a plugin that should have skipped",
        ),
        pytest.param(placed(FIT), placed(FIT, best=("a",)), ["best"], id="another best node"),
        pytest.param(Decision(message="x"), Decision(message="y"), ["message"], id="another message"),
        pytest.param(
            Decision(feasible=("a", "b"), error="x"), placed(FIT), ["error"], id="an error that ksched does not have"
        ),
        pytest.param(placed(FIT), Decision(feasible=("a", "b"), error="x"), ["error"], id="an error of ksched's own"),
        pytest.param(
            placed({"a": {"Fit": 1}}, nominated_node_hit=True),
            placed(FIT),
            ["nominatedNodeHit"],
            id="a nominated node that was not taken",
        ),
        pytest.param(placed(FIT, reserve=no("Fit")), placed(FIT), ["reserve"], id="a reservation that should fail"),
    ],
)
def test_a_difference_is_named_by_its_field(expected: Decision, got: Decision, fields: list[str]) -> None:
    found = compare(expected, got, plugins())
    assert not found.core
    assert fields_of(found)[: len(fields)] == fields


@pytest.mark.parametrize(
    ("expected", "got", "absent"),
    [
        pytest.param(Decision(pre_enqueue=no("Claims")), placed(FIT), {"Claims"}, id="gated by a lacking plugin"),
        pytest.param(Decision(pre_filter=no("Affinity")), placed(FIT), {"Affinity"}, id="turned down by one"),
        pytest.param(
            Decision(filter={"a": no("Affinity"), "b": no("Fit")}),
            Decision(filter={"b": no("Fit")}, feasible=("a",)),
            {"Affinity"},
            id="a node rejected by one",
        ),
        pytest.param(
            Decision(filter={"a": no("Spread")}),
            Decision(filter={"a": no("Fit")}),
            {"Spread"},
            id="a node rejected by one, and for ksched by a later plugin",
        ),
        pytest.param(placed(WITH_LACKING), placed(FIT), {"Affinity"}, id="scores of one that differ"),
        pytest.param(
            Decision(filter={"a": no("Claims", code="Error")}, error='running "Claims" filter plugin: broken'),
            Decision(feasible=("a", "b")),
            {"Claims"},
            id="an error of one, which hides the nodes that passed",
        ),
        pytest.param(placed(FIT, reserve=no("Claims")), placed(FIT), {"Claims"}, id="a reservation of one"),
    ],
)
def test_a_pod_that_needs_a_lacking_plugin_is_absent(expected: Decision, got: Decision, absent: set[str]) -> None:
    found = compare(expected, got, plugins())
    assert found.differences == []
    assert found.absent == absent
    assert not found.core
    assert not found.full


@pytest.mark.parametrize(
    ("expected", "got", "field"),
    [
        pytest.param(
            Decision(pre_filter=no("Affinity")),
            Decision(pre_filter=no("Selector", code="UnschedulableAndUnresolvable")),
            "preFilter",
            id="an earlier PreFilter that kube-scheduler passed",
        ),
        pytest.param(
            Decision(pre_enqueue=no("Claims")),
            Decision(pre_enqueue=no("Gates", code="UnschedulableAndUnresolvable")),
            "preEnqueue",
            id="an earlier gate that kube-scheduler passed",
        ),
        pytest.param(
            Decision(filter={"a": no("Affinity")}),
            Decision(filter={"a": no("Taints")}),
            "filter[a]",
            id="an earlier filter that kube-scheduler passed",
        ),
        pytest.param(
            Decision(filter={"a": no("Affinity"), "b": no("Fit")}),
            Decision(feasible=("a", "b")),
            "filter[b]",
            id="a node that only a plugin of ours rejects",
        ),
        pytest.param(
            placed(WITH_LACKING), placed({"a": {"Fit": 11}, "b": {"Fit": 20}}), "raw[a]", id="a raw score of ours"
        ),
        pytest.param(
            placed({"a": {"Fit": 10}}, filter={"b": no("Spread")}),
            placed({"a": {"Fit": 11}, "b": {"Fit": 20}}),
            "raw[a]",
            id="a raw score of ours on a node that both keep",
        ),
        pytest.param(
            placed(WITH_LACKING),
            placed(FIT, scores={"a": {"Fit": 10}, "b": {"Fit": 100}}),
            "scores[b]",
            id="a normalised score of ours",
        ),
    ],
)
def test_a_lacking_plugin_excuses_nothing_of_ours(expected: Decision, got: Decision, field: str) -> None:
    found = compare(expected, got, plugins(), turned_down_for="Affinity")
    assert field in fields_of(found)


def test_a_lacking_plugin_with_one_score_for_all_nodes_decides_nothing() -> None:
    found = compare(placed(WITH_CONSTANT), placed(FIT), plugins())
    assert found.core
    assert not found.full  # its scores are in the vector


def test_without_the_constant_the_total_is_still_compared() -> None:
    wrong = placed(FIT, total={"a": 10, "b": 21})
    assert fields_of(compare(placed(WITH_CONSTANT), wrong, plugins())) == ["total"]


def test_a_pod_that_ksched_turned_down_for_a_lacking_plugin_is_absent_even_if_all_is_the_same() -> None:
    found = compare(placed(FIT), placed(FIT), plugins(), turned_down_for="Spread")
    assert found.absent == {"Spread"}
    assert not found.core


def test_only_the_nodes_that_a_lacking_plugin_left_are_compared() -> None:
    expected = placed({"a": {"Fit": 10}}, pre_filter_nodes=("a",))
    assert compare(expected, placed(FIT), plugins(), turned_down_for="Claims").differences == []
    assert fields_of(compare(expected, placed(FIT), plugins())) == ["preFilterNodes", "filter[b]"]


def test_scores_that_follow_from_a_lacking_plugins_knowledge_are_not_compared() -> None:
    got = placed({"a": {"Fit": 1, "Taints": 3}, "b": {"Fit": 2, "Taints": 3}})
    expected = placed({"a": {"Fit": 7, "Taints": 3}, "b": {"Fit": 8, "Taints": 3}})
    unsure = plugins(unsure=frozenset({"Fit"}))
    assert compare(expected, got, unsure, turned_down_for="Claims").differences == []


SLIM = Decision(feasible=("a", "b"), total={"a": 5, "b": 6}, best=("b",))
SLIM_OTHER = Decision(feasible=("a", "b"), total={"a": 7, "b": 6}, best=("a",))


def test_a_slim_total_must_be_the_same_where_no_lacking_plugin_can_have_scored() -> None:
    assert compare(SLIM, SLIM, plugins(), slim=True).core
    assert fields_of(compare(SLIM, SLIM_OTHER, plugins(), slim=True)) == ["total", "best"]


def test_a_slim_total_that_a_lacking_plugin_may_have_changed_is_absent() -> None:
    found = compare(SLIM, SLIM_OTHER, plugins(silent=frozenset({"Affinity"})), slim=True)
    assert found.differences == []
    assert found.absent == {"Affinity"}
    assert found.totals_unseen


def test_the_only_node_is_taken_without_scores_where_scoring_it_would_fail() -> None:
    alone = Decision(feasible=("a",), best=("a",), total={"a": 0})
    assert compare(alone, Decision(feasible=("a",), best=("a",)), plugins()).core


@pytest.mark.parametrize(
    ("message", "post_filter", "left"),
    [
        pytest.param("0/1 nodes: 1 x.", None, "0/1 nodes: 1 x.", id="no PostFilter"),
        pytest.param("0/1 nodes: 1 x. y: z", PostFilterVerdict("Error", "y: z"), "0/1 nodes: 1 x.", id="its message"),
        pytest.param("0/1 nodes: 1 x.", PostFilterVerdict("Success"), "0/1 nodes: 1 x.", id="it said nothing"),
    ],
)
def test_the_message_is_compared_without_what_post_filter_said(
    message: str, post_filter: PostFilterVerdict | None, left: str
) -> None:
    assert without_post_filter(message, post_filter) == left


def test_a_raw_score_that_other_nodes_are_part_of_is_compared_where_these_are_the_same() -> None:
    two, three = {"PodTopologySpread": 2}, {"PodTopologySpread": 3}
    expected = placed({"a": two}, filter={"b": no("Affinity")})
    assert fields_of(compare(expected, placed({"a": three, "b": three}), plugins())) == []
    assert fields_of(compare(placed({"a": two, "b": three}), placed({"a": three, "b": three}), plugins())) == [
        "raw[a]",
        "scores[a]",
        "total",
        "best",
    ]
