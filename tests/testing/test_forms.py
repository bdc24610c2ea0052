"""The check of two forms finds what differs and says where; it must never pass because it compared nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ksched.framework import (
    Args,
    ArrayFilterPlugin,
    ArrayScorePlugin,
    CycleState,
    FilterPlugin,
    NodeInfo,
    PodInfo,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    Status,
    Table,
)
from ksched.testing import assert_forms_agree, cluster, handle, node, pod

NODES = [node("a"), node("b").label(bad="yes"), node("c")]
CROWDED = Status.unschedulable("node(s) are bad")


class Labelled(FilterPlugin, ArrayFilterPlugin, ScorePlugin, ArrayScorePlugin):
    """Rejects nodes labelled `bad`; rates the others by the length of their name."""

    name = "Labelled"
    reasons = (CROWDED,)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        return CROWDED if "bad" in node.labels else None

    def filter_array(self, state: CycleState, pod: PodInfo, nodes: Table) -> Any:
        return (nodes.label("bad").slots[: nodes.size] >= 0).astype(np.uint8)

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int | Status:
        return len(node.name)

    def score_array(self, state: CycleState, pod: PodInfo, nodes: Table) -> Any:
        return np.array([len(name) for name in nodes.names], dtype=np.int64)


class OtherVerdict(Labelled):
    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        return CROWDED if node.name == "c" else None


class OtherReason(Labelled):
    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        return Status.unschedulable("another word") if "bad" in node.labels else None


class OtherScore(Labelled):
    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int | Status:
        return 7 if node.name == "c" else len(node.name)


class ScoreOfRejected(Labelled):
    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int | Status:
        return 7 if node.name == "b" else len(node.name)


class KeepsAll(Labelled):
    def filter_array(self, state: CycleState, pod: PodInfo, nodes: Table) -> Any:
        return None


class Narrowing(PreFilterPlugin, OtherVerdict):
    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: Table) -> frozenset[str] | Status | None:
        if pod.name == "pinned":
            return frozenset({"a", "nowhere"})
        return Status.unresolvable("no")


class SkippedFilter(PreFilterPlugin, OtherScore):
    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: Table) -> frozenset[str] | Status | None:
        return Status.skip()

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        raise AssertionError("PreFilter said Skip")


class WithoutScores(PreScorePlugin, OtherScore):
    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Table) -> Status | None:
        assert [nodes.names[slot] for slot in np.flatnonzero(nodes.alive[: nodes.size])] == ["a", "c"]
        return Status.skip() if pod.name == "skipped" else None


class OnlyPlain(FilterPlugin, ArrayScorePlugin):
    name = "OnlyPlain"

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        return None

    def score_array(self, state: CycleState, pod: PodInfo, nodes: Table) -> Any:
        return np.zeros(nodes.size, dtype=np.int64)


def check(kind: type[Any], *names: str) -> None:
    here = cluster(NODES)
    assert_forms_agree(kind(Args(), handle(here)), here, [pod(name) for name in names or ("web",)])


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        pytest.param(Labelled, (), id="the same verdicts and scores"),
        pytest.param(ScoreOfRejected, (), id="scores of rejected nodes are nobody's business"),
        pytest.param(Narrowing, ("pinned",), id="only the nodes that PreFilter leaves are compared"),
        pytest.param(Narrowing, ("refused",), id="a pod that PreFilter turns down has no verdicts"),
        pytest.param(WithoutScores, ("skipped",), id="a pod that PreScore skips has no scores"),
    ],
)
def test_forms_that_agree(kind: type[Any], names: tuple[str, ...]) -> None:
    check(kind, *names)


@pytest.mark.parametrize(
    ("kind", "names", "says"),
    [
        pytest.param(OtherVerdict, (), ["verdicts for pod default/web", "on b", "on c"], id="other verdicts"),
        pytest.param(
            OtherReason,
            (),
            [
                "on b the per-node form says Unschedulable (another word), "
                "the array form Unschedulable (node(s) are bad)"
            ],
            id="another reason",
        ),
        pytest.param(KeepsAll, (), ["on b", "the array form it fits"], id="an array form that keeps all"),
        pytest.param(OtherScore, (), ["on c the per-node form gives 7, the array form 1"], id="another score"),
        pytest.param(SkippedFilter, (), ["in scores", "on c"], id="skip leaves the filter out, not the score"),
        pytest.param(WithoutScores, ("skipped", "web"), ["on c"], id="the second of two pods"),
    ],
)
def test_forms_that_differ_are_told(kind: type[Any], names: tuple[str, ...], says: list[str]) -> None:
    with pytest.raises(AssertionError) as caught:
        check(kind, *names)
    assert "Labelled: the forms differ in" in str(caught.value)
    for words in says:
        assert words in str(caught.value)


def test_a_plugin_without_two_forms_of_anything_is_refused() -> None:
    with pytest.raises(TypeError, match="OnlyPlain has not both of any"):
        check(OnlyPlain)


def test_a_long_list_of_differences_is_cut() -> None:
    here = cluster([node(f"n{number}").label(bad="yes") for number in range(9)])
    with pytest.raises(AssertionError, match="and 4 more"):
        assert_forms_agree(KeepsAll(Args(), handle(here)), here, [pod()])
