"""A cluster for tests holds what it was given, and lends a plugin what a scheduler would."""

from __future__ import annotations

import asyncio

import pytest

from ksched.config.gates import FeatureGates
from ksched.errors import CacheError
from ksched.model.requests import RequestRules
from ksched.testing import cluster, handle, node, pod


def test_nodes_and_pods_are_there_built_or_not() -> None:
    here = cluster([node("a"), node("b").build()], [pod("x").on("a").request(cpu="1"), pod("y").on("b").build()])
    assert [each.name for each in here.nodes()] == ["a", "b"]
    a, b = here.nodes()
    assert (a.requested("cpu"), b.pod_count) == (1000, 1)


def test_a_pod_without_a_node_is_refused() -> None:
    with pytest.raises(CacheError, match="pod default/x is on no node"):
        cluster([node("a")], [pod("x")])


def test_the_rules_of_requests_are_those_given() -> None:
    whole = pod("x").pod_request(cpu="3").on("a")
    [counted] = cluster([node("a")], [whole]).nodes()
    [ignored] = cluster([node("a")], [whole], rules=RequestRules(pod_level_resources=False)).nodes()
    assert (counted.requested("cpu"), ignored.requested("cpu")) == (3000, 0)


def test_a_handle_has_the_cluster_the_gates_and_a_binder_that_remembers() -> None:
    here = cluster([node("a")])
    gates = FeatureGates({"TaintTolerationComparisonOperators": True})
    lent = handle(here, gates)
    assert lent.cluster is here
    assert lent.gates is gates
    asyncio.run(lent.binder.bind(here.shapes.info(pod("x").build()), "a"))
    assert lent.binder.bound == [("default/x", "a")]
