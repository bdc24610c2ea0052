"""What may help a pod that could not be spread, rule by rule. The measured cases are in `tests.conformance`."""

from __future__ import annotations

from typing import Any

import pytest

from ksched.cache.cluster import Cluster
from ksched.queue.spread_hints import node_may_help, pod_may_help
from ksched.testing import NodeBuilder, PodBuilder, node, pod

WEB = {"matchLabels": {"app": "web"}}


def spread(**fields: Any) -> PodBuilder:
    hard = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": WEB} | fields
    return pod("waits").spec(topologySpreadConstraints=[hard])


@pytest.mark.parametrize(
    ("waiting", "old", "new", "helps"),
    [
        pytest.param(spread(), pod("web").label(app="web").on("n"), None, True, id="a pod that counted is gone"),
        pytest.param(spread(), pod("db").label(app="db").on("n"), None, False, id="a pod that never counted is gone"),
        pytest.param(spread(), None, pod("web").label(app="web"), False, id="a pod that is nowhere counts for nothing"),
        pytest.param(
            spread(), None, pod("web", namespace="other").label(app="web").on("n"), False, id="another namespace"
        ),
        pytest.param(pod("waits"), pod("db").on("n"), None, True, id="default constraints may count anything"),
        pytest.param(
            spread(matchLabelKeys=["v"]),
            pod("web").label(app="web", v="1").on("n"),
            pod("web").label(app="web", v="2").on("n"),
            True,
            id="a label that narrows down whom is counted has changed",
        ),
        pytest.param(
            spread(labelSelector={"matchLabels": {"app": "not a value!"}}),
            pod("db").on("n"),
            None,
            True,
            id="constraints that cannot be understood",
        ),
    ],
)
def test_pods(waiting: PodBuilder, old: PodBuilder | None, new: PodBuilder | None, helps: bool) -> None:
    info = Cluster(max_nodes=64).shapes.info(waiting.build())
    assert pod_may_help(info, old and old.build(), new and new.build()) is helps


A, B, NONE = node("n").label(zone="a"), node("n").label(zone="b"), node("n")


@pytest.mark.parametrize(
    ("old", "new", "helps"),
    [
        pytest.param(None, A, True, id="a node in a domain has come"),
        pytest.param(None, NONE, False, id="a node in none has come"),
        pytest.param(A, None, True, id="a node in a domain has gone"),
        pytest.param(NONE, None, False, id="a node in none has gone"),
        pytest.param(NONE, A, True, id="a node has entered a domain"),
        pytest.param(A, NONE, True, id="a node has left its domain"),
        pytest.param(A, B, True, id="a node has gone over to another domain"),
        pytest.param(A, A.label(disk="ssd"), False, id="another label has changed"),
        pytest.param(A.taint("gpu"), A, True, id="a taint has gone"),
        pytest.param(NONE.taint("gpu"), NONE, False, id="a taint has gone from a node in no domain"),
    ],
)
def test_nodes(old: NodeBuilder | None, new: NodeBuilder | None, helps: bool) -> None:
    info = Cluster(max_nodes=64).shapes.info(spread().build())
    assert node_may_help(info, old and old.build(), new and new.build()) is helps
