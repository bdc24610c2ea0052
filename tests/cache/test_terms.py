"""The terms of placed pods: whatever happens to pods, nodes and namespaces, columns hold what a scan finds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksched.cache.cluster import Cluster
from ksched.cache.terms import FEWEST_COLUMNS, CarriedTerms, TermColumn, Towards, carried_by
from ksched.model.objects import Namespace
from ksched.testing import PodBuilder, cluster, node, pod

ZONE, HOST = "zone", "kubernetes.io/hostname"
NODES = ("a", "b", "c")
NAMESPACES = ("default", "other", "third")

WEB = {"matchLabels": {"app": "web"}}
NOT_WEB = {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}
RED = {"matchLabels": {"team": "red"}}
NO_TEAM = {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}
TERMS: list[dict[str, Any]] = [
    {"topologyKey": ZONE, "labelSelector": WEB},
    {"topologyKey": HOST, "labelSelector": WEB},
    {"topologyKey": ZONE, "labelSelector": NOT_WEB},
    {"topologyKey": ZONE, "labelSelector": {}, "namespaces": ["other", "third"]},
    {"topologyKey": ZONE, "labelSelector": WEB, "namespaceSelector": {}},
    {"topologyKey": HOST, "labelSelector": {}, "namespaceSelector": RED},
    {"topologyKey": ZONE, "labelSelector": WEB, "namespaceSelector": NO_TEAM},
    {"topologyKey": ZONE},
    {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "not a value!"}}},
]

REQUIRED, PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)


def affinity(anti: list[int], near: list[int], liked: list[tuple[int, int]], shunned: list[tuple[int, int]]) -> Any:
    """The affinity of a pod whose terms are these ones of `TERMS`; with a weight where they are preferred."""

    def written(required: list[int], preferred: list[tuple[int, int]]) -> dict[str, Any]:
        return {
            REQUIRED: [TERMS[number] for number in required],
            PREFERRED: [{"weight": weight, "podAffinityTerm": TERMS[number]} for number, weight in preferred],
        }

    return {"podAffinity": written(near, liked), "podAntiAffinity": written(anti, shunned)}


def placed_pod(name: str, namespace: str, has: Any, labels: dict[str, str], where: str) -> PodBuilder:
    one = pod(name, namespace=namespace).label(labels).uid(f"uid-{name}").on(where)
    return one if has is None else one.spec(affinity=has)


numbers = st.integers(0, len(TERMS) - 1)
weighted = st.tuples(numbers, st.sampled_from([1, 50]))
affinities = st.none() | st.builds(
    affinity, *[st.lists(numbers, max_size=2)] * 2, *[st.lists(weighted, max_size=2)] * 2
)
labels = st.sampled_from([{}, {"app": "web"}, {"app": "db"}, {"app": "web", "tier": "x"}])
pods = st.builds(
    placed_pod,
    st.sampled_from([f"pod-{number}" for number in range(5)]),
    st.sampled_from(NAMESPACES),
    affinities,
    labels,
    st.sampled_from([*NODES, "unknown"]),
)

Step = Callable[[Cluster], object]


def put_node(name: str, zone: str | None) -> Step:
    one = node(name) if zone is None else node(name).label(zone=zone)
    return lambda of: of.put_node(one.build())


def put_namespace(name: str, its_labels: dict[str, str]) -> Step:
    one = msgspec.convert({"metadata": {"name": name, "labels": its_labels}}, Namespace)
    return lambda of: of.put_namespace(one)


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
    pods.map(lambda one: lambda of: of.put_pod(one.build())),
    st.integers(0, 4).map(lambda number: lambda of: of.remove_pod(f"uid-pod-{number}")),
    st.builds(put_node, st.sampled_from(NODES), st.sampled_from(["x", "y", "", None])),
    st.sampled_from(NODES).map(lambda name: lambda of: of.remove_node(name)),
    st.builds(put_namespace, st.sampled_from(NAMESPACES), st.sampled_from([{}, {"team": "red"}, {"team": "blue"}])),
    st.sampled_from(NAMESPACES).map(lambda name: lambda of: of.remove_namespace(name)),
    st.builds(assume_and, st.booleans(), pods, st.sampled_from(NODES)),
    st.builds(
        lambda namespace, its_labels: lambda of: of.terms.towards(namespace, its_labels),
        st.sampled_from(NAMESPACES),
        labels,
    ),
)

Said = Counter[tuple[str, int, int, int]]
"""How often a term is carried, by topology key, weight, kind, and slot or domain."""


def scanned(of: Cluster, namespace: str, its_labels: dict[str, str]) -> tuple[Said, Counter[tuple[str, int, int, str]]]:
    """What the answer should hold, per slot and per value of the topology key."""
    slots: Said = Counter()
    values: Counter[tuple[str, int, int, str]] = Counter()
    for each in of.nodes():
        for placed in each.pods.values():
            for key in carried_by(placed):
                if key.term.matches(namespace, its_labels, of.namespaces.get(namespace, {})):
                    what = (key.term.topology_key, key.weight, int(key.kind))
                    slots[*what, each.slot] += 1
                    if key.term.topology_key in each.labels:
                        values[*what, each.labels[key.term.topology_key]] += 1
    return slots, values


def told(of: Cluster, said: Towards) -> tuple[Said, Counter[tuple[str, int, int, str]]]:
    """What the answer holds."""
    slots: Said = Counter()
    values: Counter[tuple[str, int, int, str]] = Counter()
    for kind, columns in enumerate((said.required_anti, said.required, said.preferred)):
        for column in columns:
            what = (column.topology_key, column.weight, kind)
            for slot in np.flatnonzero(column.slots).tolist():
                slots[*what, slot] += int(column.slots[slot])
            for domain, value in enumerate(column.domains.label.values.values):
                values[*what, value] += int(column.domains.counts[domain])
    return slots, +values


def assert_exact(of: Cluster) -> None:
    for namespace in NAMESPACES:
        for its_labels in ({}, {"app": "web"}, {"app": "db"}):
            assert told(of, of.terms.towards(namespace, its_labels)) == scanned(of, namespace, its_labels)


@given(st.lists(steps, max_size=40))
def test_any_history_leaves_what_a_scan_finds(history: list[Step]) -> None:
    of = cluster([node("a").label(zone="x"), node("b")])
    for step in history:
        step(of)
    assert_exact(of)
    for name in NODES:
        of.remove_node(name)
    assert len(of.terms) == 0


def column(of: Cluster, **its_labels: str) -> TermColumn:
    """The one column of required anti-affinity that means a pod in the default namespace."""
    (found,) = of.terms.towards("default", its_labels).required_anti
    return found


AWAY = affinity([0], [], [], [])


def test_copies_of_a_pod_carry_one_term() -> None:
    of = cluster([node("a"), node("b")])
    for number in range(5):
        of.put_pod(pod(f"p{number}").spec(affinity=AWAY).on("ab"[number % 2]).build())
    assert len(of.terms) == 1
    assert column(of, app="web").slots[:2].tolist() == [3, 2]


def test_pods_that_are_meant_by_the_same_terms_share_columns() -> None:
    of = cluster([node("a")], [pod("one").spec(affinity=AWAY).on("a")])
    assert column(of, app="web", ordinal="0") is column(of, app="web", ordinal="1")


def test_a_namespace_that_changes_its_labels_is_meant_by_other_terms() -> None:
    of = cluster([node("a")], [pod("one").spec(affinity=affinity([5], [], [], [])).on("a")])
    assert not of.terms.towards("other", {}).required_anti
    put_namespace("other", {"team": "red"})(of)
    assert of.terms.towards("other", {}).required_anti
    put_namespace("other", {"team": "blue"})(of)
    assert not of.terms.towards("other", {}).required_anti


def test_terms_of_pods_that_are_all_gone_are_forgotten() -> None:
    of = cluster([node("a")], [pod("one").spec(affinity=AWAY).on("a")])
    assert of.terms.towards("default", {"app": "web"}).required_anti
    of.remove_pod("uid-default-one")
    assert len(of.terms) == 0
    assert of.terms.towards("default", {"app": "web"}) == Towards()


def test_columns_that_nobody_asks_for_are_dropped_and_can_be_had_again() -> None:
    of = cluster([node("a").label(zone="x")])
    terms = CarriedTerms(of.table, of.journal, of.namespaces, most_bytes=0)
    for number in range(FEWEST_COLUMNS + 8):
        away = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": f"app-{number}"}}}
        one = pod(f"p{number}").spec(affinity={"podAntiAffinity": {REQUIRED: [away]}}).on("a")
        terms.add(0, of.shapes.info(one.build()))
    (first,) = terms.towards("default", {"app": "app-0"}).required_anti
    for number in range(1, FEWEST_COLUMNS + 8):
        terms.towards("default", {"app": f"app-{number}"})
    (again,) = terms.towards("default", {"app": "app-0"}).required_anti
    assert again is not first
    assert again.slots[0] == again.domains.counts[0] == 1


@pytest.mark.parametrize("number", range(len(TERMS)))
def test_a_malformed_term_is_carried_by_nobody_and_any_other_is(number: int) -> None:
    of = cluster([node("a")], [pod("one").spec(affinity=affinity([number], [], [], [])).on("a")])
    assert len(of.terms) == (number != len(TERMS) - 1)
