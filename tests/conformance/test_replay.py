"""The replay on made-up cases: a case that is right passes, and one wrong word anywhere makes it fail."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from ksched.testing import node, pod
from tests.conformance.cases import VectorError, families, read_cases
from tests.conformance.replay import replay_family
from tests.conformance.report import FamilyReport, Report
from tests.conformance.tally import Tally

NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
TAINTED = {
    "plugin": "TaintToleration",
    "code": "UnschedulableAndUnresolvable",
    "reasons": ["node(s) had untolerated taint(s)"],
}


def case(**changes: Any) -> dict[str, Any]:
    """Two nodes, one of them tainted, and two pods that want all of the other."""
    big = pod("big").request(cpu="3", memory="1Gi")
    objects = [NAMESPACE, node("a").to_dict(), node("b").taint("gpu").to_dict()]
    scores = {"ImageLocality": 0, "NodeResourcesBalancedAllocation": 57, "NodeResourcesFit": 59}
    first = {
        "pod": "default/big",
        "preFilter": None,
        "preFilterNodes": None,
        "filter": {"b": TAINTED},
        "feasible": ["a"],
        "raw": {"a": {**scores, "TaintToleration": 0}},
        "scores": {"a": {**scores, "TaintToleration": 300}},
        "total": {"a": 416},
        "best": ["a"],
        "message": "",
        "postFilter": None,
        "chosen": "a",
    }
    full = {"plugin": "NodeResourcesFit", "code": "Unschedulable", "reasons": ["Insufficient cpu"]}
    second: dict[str, Any] = {
        "pod": "default/second",
        "preFilter": None,
        "preFilterNodes": None,
        "filter": {"a": full, "b": TAINTED},
        "feasible": [],
        "total": {},
        "best": [],
        "message": "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s).",
        "postFilter": None,
        "chosen": "",
    }
    return {
        "name": "one",
        "family": "made-up",
        "description": "",
        "config": None,
        "featureGates": {},
        "objects": objects,
        "pods": [big.to_dict(), pod("second").request(cpu="3").to_dict()],
        "expected": [first, second],
        **changes,
    }


def replayed(tmp_path: Path, *cases: dict[str, Any]) -> FamilyReport:
    path = tmp_path / "made-up.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in cases))
    return replay_family("made-up", path)


def test_a_case_that_is_right_is_core(tmp_path: Path) -> None:
    report = replayed(tmp_path, case())
    assert report.failures(full=False) == ""
    assert (report.cases, report.pods, report.core, report.full, report.absent) == (1, 2, 2, 2, 0)
    assert report.failures(full=True) == ""


@pytest.mark.parametrize(
    ("pod_number", "field", "value"),
    [
        pytest.param(0, "feasible", ["b"], id="another node"),
        pytest.param(0, "filter", {}, id="a verdict that is missing"),
        pytest.param(0, "best", [], id="another best set"),
        pytest.param(0, "total", {"a": 417}, id="another total"),
        pytest.param(0, "skip", "pod is being deleted", id="a skipped pod"),
        pytest.param(0, "error", "broken", id="an error"),
        pytest.param(1, "message", "0/2 nodes are available.", id="another message"),
        pytest.param(1, "preFilter", TAINTED, id="another end"),
    ],
)
def test_one_wrong_word_fails_the_family(tmp_path: Path, pod_number: int, field: str, value: Any) -> None:
    wrong = case()
    wrong["expected"][pod_number][field] = value
    report = replayed(tmp_path, wrong)
    assert report.different == 1
    assert report.failures(full=False)


def test_the_node_that_kube_scheduler_chose_is_assumed_whatever_ksched_says(tmp_path: Path) -> None:
    elsewhere = case()
    elsewhere["expected"][0]["chosen"] = "b"
    report = replayed(tmp_path, elsewhere)
    assert report.core == 1
    assert report.first_differences[0]["pod"] == "default/second"


def test_a_pod_with_a_field_of_a_lacking_plugin_is_absent(tmp_path: Path) -> None:
    claim = case()
    claim["pods"][0]["spec"]["schedulingGroup"] = {"podGroupName": "together"}
    report = replayed(tmp_path, claim)
    assert dict(report.absent_for) == {"GangScheduling": 1}
    assert (report.core, report.different) == (1, 0)


def test_an_object_that_ksched_refuses_is_a_difference_and_the_next_case_still_counts(tmp_path: Path) -> None:
    broken = case(name="broken", objects=[node("a").capacity(cpu="many").to_dict()])
    report = replayed(tmp_path, broken, case())
    assert (report.cases, report.pods, report.core, report.different) == (2, 4, 2, 2)
    assert report.first_differences[0]["field"] == "fault"
    assert "cpu" in report.first_differences[0]["got"]


def test_pods_without_uid_get_one_each(tmp_path: Path) -> None:
    nameless = case()
    for each in (*nameless["objects"], *nameless["pods"]):
        each["metadata"].pop("uid", None)
    assert replayed(tmp_path, nameless).core == 2


def test_families_are_the_files_compressed_or_not(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("no family")
    (tmp_path / "plain.jsonl").write_text(json.dumps(case()) + "\n")
    with gzip.open(tmp_path / "packed.jsonl.gz", "wt") as file:
        file.write(json.dumps(case()) + "\n")
    assert list(families(tmp_path)) == ["packed", "plain"]
    assert [[each.name for each in read_cases(path)] for path in families(tmp_path).values()] == [["one"], ["one"]]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        pytest.param('{"name": "x"}', "expected a case", id="a line that is no case"),
        pytest.param(json.dumps(case(expected=[])), "2 pods but 0 decisions", id="a case without its decisions"),
    ],
)
def test_a_file_that_is_no_vector_is_named_with_the_line(tmp_path: Path, line: str, says: str) -> None:
    path = tmp_path / "odd.jsonl"
    path.write_text("\n" + line + "\n")
    with pytest.raises(VectorError, match=rf"odd\.jsonl:2: .*{says}"):
        list(read_cases(path))


def test_the_report_has_its_documented_shape(tmp_path: Path) -> None:
    report = Report("native", tmp_path, tmp_path)
    report.families["made-up"] = replayed(tmp_path, case())
    tally = Tally("units/x.jsonl", "x")
    tally.compare("a", [])
    tally.compare("b", [{"what": "sum"}])
    tally.leave_out("volumes")
    report.add_measured(tally.result())
    path = tmp_path / "report.json"
    report.write(path)
    written = json.loads(path.read_text())
    assert written["total"] == {"cases": 1, "pods": 2, "core": 2, "full": 2, "absent": 0, "different": 0}
    assert set(written["families"]["made-up"]) == {
        "cases",
        "pods",
        "core",
        "full",
        "absent",
        "different",
        "absentFor",
        "totalsUnseen",
        "firstDifferences",
        "firstFullDifferences",
    }
    assert written["measuredFiles"]["units/x.jsonl"] == {
        "subject": "x",
        "cases": 3,
        "exact": 1,
        "leftOut": {"volumes": 1},
        "different": 1,
        "known": {},
        "firstDifferences": [{"case": "b", "what": "sum"}],
    }
    assert [line.split()[0] for line in report.lines()] == [
        "family",
        "made-up",
        "measured",
        "units/x.jsonl",
        '{"case":"b","what":"sum"}',
    ]
