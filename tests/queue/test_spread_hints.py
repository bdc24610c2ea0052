"""What may help a pod that could not be spread: each hint as it was measured from kube-scheduler, and a few by hand."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ksched.cache.cluster import Cluster
from ksched.model.node import Node
from ksched.model.pod import Pod
from ksched.queue.spread_hints import node_may_help, pod_may_help
from ksched.testing import PodBuilder, pod

MEASURED = Path(__file__).parents[3] / "shared" / "measured" / "hints" / "PodTopologySpread.jsonl.gz"

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


@pytest.mark.skipif(not MEASURED.exists(), reason=f"no measured hints in {MEASURED}")
def test_hints_are_as_measured() -> None:
    wrong, compared = [], 0
    shapes = Cluster(max_nodes=64).shapes
    with gzip.open(MEASURED) as lines:
        for case in map(json.loads, lines):
            waiting = msgspec.convert(case["pod"], Pod)
            if case["description"] == "object of a wrong type" or not case["expected"]["answers"]:
                continue
            if not waiting.spec.topology_spread_constraints:
                continue
            kind, hint = (Node, node_may_help) if case["event"]["resource"] == "Node" else (Pod, pod_may_help)
            old, new = (msgspec.convert(case[which], kind | None) for which in ("oldObj", "newObj"))
            compared += 1
            ours, theirs = hint(shapes.info(waiting), old, new), case["expected"]["result"] == "Queue"
            too_eager = ours and any(each.match_label_keys for each in waiting.spec.topology_spread_constraints)
            if ours != theirs and not too_eager:
                wrong.append(case["name"])
    assert wrong == []
    assert compared > 200
