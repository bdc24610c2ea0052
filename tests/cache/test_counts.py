"""Counts of matching pods: whatever happened to pods and nodes, a column says what a scan would."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksched.cache.cluster import Cluster
from ksched.cache.counts import FEWEST_COLUMNS, CountColumn, Namespaces, PodCounts
from ksched.model.objects import LabelSelector, LabelSelectorRequirement
from ksched.model.selectors import EVERYTHING, NOTHING, Selector, label_selector, selector_of_labels
from ksched.testing import PodBuilder, cluster, node, pod

WEB = selector_of_labels({"app": "web"})
NOT_WEB = label_selector(LabelSelector(match_expressions=[LabelSelectorRequirement("app", "NotIn", ["web"])]))
WEB_OR_DB = label_selector(
    LabelSelector({"tier": "x"}, match_expressions=[LabelSelectorRequirement("app", "In", ["web", "db"])])
)
SELECTORS = (EVERYTHING, NOTHING, WEB, NOT_WEB, WEB_OR_DB)
NAMESPACES: tuple[Namespaces, ...] = (frozenset(("default",)), frozenset(("default", "other")), frozenset(), None)
NODES = ("a", "b", "c")


def scanned(of: Cluster, counts: CountColumn) -> list[int]:
    """What a column should hold."""
    found = [0] * of.table.size
    for each in of.nodes():
        for placed in each.pods.values():
            inside = counts.namespaces is None or placed.namespace in counts.namespaces
            live = not (counts.live_only and placed.pod.is_terminating)
            found[each.slot] += inside and live and counts.selector.matches(placed.labels)
    return found


def assert_exact(of: Cluster, counts: CountColumn) -> None:
    assert counts.slots[: of.table.size].tolist() == scanned(of, counts)
    assert counts.total == sum(scanned(of, counts))


def terminating(of: PodBuilder) -> PodBuilder:
    return of._merged("metadata", {"deletionTimestamp": "2026-01-01T00:00:00Z"})


Step = Callable[[Cluster], object]


def placed_pod(name: str, namespace: str, labels: dict[str, str], dying: bool, where: str) -> PodBuilder:
    one = pod(name, namespace=namespace).label(labels).uid(f"uid-{name}").on(where)
    return terminating(one) if dying else one


pods = st.builds(
    placed_pod,
    st.sampled_from([f"pod-{number}" for number in range(6)]),
    st.sampled_from(["default", "other", "third"]),
    st.sampled_from([{}, {"app": "web"}, {"app": "db"}, {"app": "web", "tier": "x"}, {"tier": "x"}]),
    st.booleans(),
    st.sampled_from([*NODES, "unknown"]),
)


def assume_and(forget: bool, one: PodBuilder, where: str) -> Step:
    def step(of: Cluster) -> None:
        info = of.shapes.info(one.build())
        if of.pod(info.uid) is None and of.node(where) is not None:
            of.assume(info, where)
            if forget:
                of.forget(info.uid)

    return step


steps: st.SearchStrategy[Step] = st.one_of(
    pods.map(lambda one: lambda of: of.put_pod(one.build())),
    st.integers(0, 5).map(lambda number: lambda of: of.remove_pod(f"uid-pod-{number}")),
    st.sampled_from(NODES).map(lambda name: lambda of: of.put_node(node(name).build())),
    st.sampled_from(NODES).map(lambda name: lambda of: of.remove_node(name)),
    st.builds(assume_and, st.booleans(), pods, st.sampled_from(NODES)),
    st.builds(
        lambda namespaces, selector, live: lambda of: of.counts.get(namespaces, selector, live),
        st.sampled_from(NAMESPACES),
        st.sampled_from(SELECTORS),
        st.booleans(),
    ),
)


@given(st.lists(steps, max_size=40))
def test_any_history_leaves_what_a_scan_finds(history: list[Step]) -> None:
    of = cluster([node("a"), node("b")])
    asked = [of.counts.get(namespaces, WEB, True) for namespaces in NAMESPACES]
    for step in history:
        answer = step(of)
        if isinstance(answer, CountColumn):
            asked.append(answer)
    for counts in asked:
        assert_exact(of, counts)


def test_a_column_is_made_once_and_its_version_tells_of_every_change() -> None:
    of = cluster([node("a")], [pod("one").label(app="web").on("a")])
    counts = of.counts.get(NAMESPACES[0], WEB)
    before = counts.version
    of.put_pod(pod("other").label(app="db").on("a").build())
    assert of.counts.get(NAMESPACES[0], selector_of_labels({"app": "web"})) is counts
    assert counts.version == before
    of.put_pod(pod("two").label(app="web").on("a").build())
    assert counts.version > before


@pytest.mark.parametrize(
    "selector",
    [
        pytest.param(WEB, id="a selector that names a label"),
        pytest.param(NOT_WEB, id="a selector that names none"),
    ],
)
def test_columns_that_nobody_asks_for_are_dropped_and_can_be_had_again(selector: Selector) -> None:
    of = cluster([node("a")], [pod("one").label(app="web").on("a")])
    counts = PodCounts(of.table, of.journal, most_bytes=0)
    placed = of.pod("uid-default-one")
    assert placed is not None
    counts.add(0, placed)
    first = counts.get(None, selector)
    for number in range(FEWEST_COLUMNS):
        counts.get(None, selector_of_labels({"number": str(number)}))
    assert first.dropped
    assert len(counts) == FEWEST_COLUMNS
    counts.remove(0, placed)
    again = counts.get(None, selector)
    assert again is not first
    assert not again.dropped
    assert again.total == 0


def test_a_node_takes_its_counts_with_it_and_brings_them_back() -> None:
    of = cluster([node("a"), node("b")], [pod("one").label(app="web").on("a")])
    counts = of.counts.get(None, WEB)
    of.remove_node("a")
    assert not np.any(counts.slots)
    of.put_node(node("a").build())
    assert counts.total == 1
