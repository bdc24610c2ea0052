"""Queue scripts and object changes measured on kube-scheduler; skipped where the measurements are not at hand."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ksched.config.gates import FeatureGates
from ksched.model.node import Node
from ksched.model.pod import Pod
from ksched.model.requests import RequestRules
from ksched.queue.changes import node_changes, pod_changes
from tests.queue.measured import Replay, event_of, scripts

MEASURED = Path(__file__).parents[3] / "shared" / "measured"

NEEDS = {
    "hand-11": "hint functions",
    "hand-14": "hint functions",
    "hand-37": "InterPodAffinity and PodTopologySpread",
    "hand-46": "DynamicResources",
    "hand-48": "InterPodAffinity",
    "hand-49": "InterPodAffinity",
    "hand-50": "pod groups",
}
"""Scripts whose outcome depends on something that ksched does not have yet."""


def _scripts() -> Iterator[Any]:
    for name in ("handmade", "timelines"):
        path = MEASURED / "queue" / f"{name}.jsonl.gz"
        for script in scripts(path) if path.exists() else ():
            # Without stubs the answer of each event is its plugin's hint function, of which there are few yet.
            if name == "handmade" or script.get("stub"):
                yield pytest.param(script, id=f"{script['name']} {script['description'][:60]}")


SCRIPTS = list(_scripts())


@pytest.mark.skipif(not SCRIPTS, reason=f"no measured scripts in {MEASURED}")
@pytest.mark.parametrize("script", SCRIPTS)
def test_queue_is_as_measured_after_every_operation(script: dict[str, Any]) -> None:
    if script["name"] in NEEDS:
        pytest.skip(f"needs {NEEDS[script['name']]}")
    assert Replay(script).differences() == []


CHANGES = MEASURED / "hints" / "object-changes.jsonl.gz"


@pytest.mark.skipif(not CHANGES.exists(), reason=f"no measured changes in {MEASURED}")
def test_every_update_amounts_to_the_measured_events() -> None:
    wrong = []
    with gzip.open(CHANGES) as lines:
        for case in map(json.loads, lines):
            if "extendedResourceClaimStatus" in case["newObj"]["status"]:
                continue  # read by DynamicResources alone, which ksched does not have yet
            gates = FeatureGates(case.get("featureGates") or {})
            expected = [event_of(written) for written in case["expected"]]
            if case["oldObj"]["kind"] == "Node":
                old, new = msgspec.convert(case["oldObj"], Node), msgspec.convert(case["newObj"], Node)
                found = node_changes(old, new, declared_features=gates.enabled("NodeDeclaredFeatures"))
            else:
                before, now = msgspec.convert(case["oldObj"], Pod), msgspec.convert(case["newObj"], Pod)
                found = pod_changes(before, now, RequestRules())
            if found != expected:
                wrong.append(f"{case['name']}: expected {expected}, got {found}")
    assert wrong == []
