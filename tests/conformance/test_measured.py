"""Values measured from kube-scheduler's packages: every case of a file must come out exactly, but for those named here.

One test per file whose subject ksched has. `--measured DIR` names another copy of the files. The exceptions are
counted: one more fails, and so does one less, so that what ksched learns is asked for from then on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.conformance import measured_config, measured_hints, measured_queue, measured_units
from tests.conformance.measured_hints import (
    ANY_TOLERATION,
    DEFAULT_CONSTRAINTS,
    DEVICE_CLASSES,
    MATCH_LABEL_KEYS,
    WRONG_TYPE,
)
from tests.conformance.report import shown
from tests.conformance.tally import Tally

REPLAYS: Mapping[str, Callable[[Path], dict[str, Any]]] = {
    **{f"units/{name}.jsonl": measured_units.replay for name in measured_units.UNITS},
    measured_config.FILE: measured_config.replay,
    measured_config.GATES_FILE: measured_config.replay_gates,
    **dict.fromkeys(measured_hints.HINTS, measured_hints.replay_hints),
    measured_hints.OBJECT_CHANGES: measured_hints.replay_changes,
    measured_hints.REGISTERED_EVENTS: measured_hints.replay_registered,
    **dict.fromkeys(measured_queue.FILES, measured_queue.replay),
}


def _functions(plugin: str, **by_kind: int) -> dict[str, int]:
    return {f"the hint function of {plugin} for {kind}": cases for kind, cases in by_kind.items()}


LEFT_OUT: Mapping[str, Mapping[str, int]] = {
    "hints/InterPodAffinity.jsonl.gz": {WRONG_TYPE: 5},
    "hints/NodeAffinity.jsonl.gz": {WRONG_TYPE: 2, **_functions("NodeAffinity", Node=79)},
    "hints/NodeDeclaredFeatures.jsonl.gz": {WRONG_TYPE: 2, **_functions("NodeDeclaredFeatures", Node=28)},
    "hints/NodePorts.jsonl.gz": {WRONG_TYPE: 1, **_functions("NodePorts", Pod=43)},
    "hints/NodeResourcesFit.jsonl.gz": {
        WRONG_TYPE: 5,
        **_functions("NodeResourcesFit", Node=79, Pod=67, **{"resource.k8s.io/DeviceClass": 35}),
    },
    "hints/NodeUnschedulable.jsonl.gz": {WRONG_TYPE: 3, **_functions("NodeUnschedulable", Node=50)},
    "hints/PodTopologySpread.jsonl.gz": {WRONG_TYPE: 7},
    "hints/SchedulingGates.jsonl.gz": {WRONG_TYPE: 1},
    "hints/TaintToleration.jsonl.gz": {WRONG_TYPE: 3, **_functions("TaintToleration", Node=78)},
    "hints/object-changes.jsonl.gz": {"the plugin DynamicResources": 19},
    "hints/registered-events.jsonl.gz": {
        "the plugin DefaultPreemption": 7,
        "the plugin DynamicResources": 6,
        "the plugin GangScheduling": 2,
        "the plugin NodeVolumeLimits": 7,
        "the plugin VolumeBinding": 6,
        "the plugin VolumeRestrictions": 7,
        "the plugin VolumeZone": 7,
    },
    "queue/handmade.jsonl.gz": {
        "pod groups": 1,
        "the operation assignedPodAdded": 2,
        "the operation assignedPodUpdated": 1,
        "the operation popSpecific": 2,
        "the plugin DynamicResources": 1,
        **_functions("NodeResourcesFit", Node=2),
    },
    "queue/timelines.jsonl.gz": {
        "the operation popSpecific": 39,
        "the plugin DefaultPreemption": 8,
        "the plugin DynamicResources": 1,
        "the plugin NodeVolumeLimits": 15,
        "the plugin VolumeBinding": 23,
        "the plugin VolumeRestrictions": 11,
        "the plugin VolumeZone": 4,
        **_functions("NodeResourcesFit", Node=2),
        **_functions("NodeUnschedulable", Node=1),
    },
}
"""Cases that need what ksched does not have, by file. kube-scheduler itself calls `assignedPodAdded` and
`assignedPodUpdated` no more; `popSpecific` is for pod groups."""

KNOWN: Mapping[str, Mapping[str, int]] = {
    "hints/NodeUnschedulable.jsonl.gz": {ANY_TOLERATION: 10},
    "hints/PodTopologySpread.jsonl.gz": {DEFAULT_CONSTRAINTS: 25, MATCH_LABEL_KEYS: 2},
    "hints/registered-events.jsonl.gz": {DEVICE_CLASSES: 1},
}
"""Cases that differ, by file, with the reason. By each, ksched tries a pod more often than kube-scheduler."""


@pytest.mark.parametrize("file", sorted(REPLAYS))
def test_every_case_comes_out_exactly(
    file: str, measured_dir: Path, record_measured: Callable[[Mapping[str, Any]], None]
) -> None:
    path = measured_dir / file
    if not path.is_file():
        pytest.skip(f"{path} is not there; give the folder with --measured")
    result = REPLAYS[file](path)
    record_measured(result)
    assert result["cases"], f"{path} holds no case"
    known = KNOWN.get(file, {})
    if result["different"] != sum(known.values()):
        first = "\n".join(f"  {shown(difference)}" for difference in result["differences"])
        counts = f"{result['different']} of {result['cases']} cases differ, {sum(known.values())} are known"
        pytest.fail(f"{file}: {counts}\n{first}", pytrace=False)
    assert result["known"] == known
    assert result["leftOut"] == LEFT_OUT.get(file, {})


def test_exceptions_are_of_files_that_are_replayed() -> None:
    assert {*LEFT_OUT, *KNOWN} <= {*REPLAYS}


def test_a_case_is_exact_different_or_left_out() -> None:
    tally = Tally("file", "subject")
    tally.compare("a", [])
    tally.compare("b", [{"what": "x"}, {"what": "y"}], known="why")
    tally.compare("c", [{"what": "z"}])
    tally.compare("d", [], known="why")
    tally.leave_out("volumes")
    assert tally.result() == {
        "file": "file",
        "subject": "subject",
        "cases": 5,
        "exact": 2,
        "different": 2,
        "leftOut": {"volumes": 1},
        "known": {"why": 1},
        "differences": [
            {"case": "c", "what": "z"},
            {"case": "b", "what": "x", "known": "why"},
            {"case": "b", "what": "y", "known": "why"},
        ],
    }


def test_the_first_differences_are_kept_the_unexpected_ones_before_the_known() -> None:
    tally = Tally("file", "subject")
    for number in range(9):
        tally.compare(f"k{number}", [{}], known="why")
        tally.compare(f"u{number}", [{}] if number > 6 else [])
    kept = Counter(difference["case"][0] for difference in tally.result()["differences"])
    assert kept == {"u": 2, "k": 3}
