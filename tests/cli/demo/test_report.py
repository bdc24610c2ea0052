"""What counts as a failed demo, and what is written and shown of one."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from ksched.cli.demo.report import Pending, Report
from ksched.cli.processes import Usage
from ksched.errors import KschedError

MESSAGE = "0/3 nodes are available: 3 node(s) didn't match [red]Pod's node affinity/selector."
BIG = Pending("default", "big", "Unschedulable", MESSAGE)


def report(**changed: Any) -> Report:
    """Three pods, two of them bound, and one that cannot fit."""
    fields: dict[str, Any] = {
        "settings": {"nodes": 3},
        "pods": 3,
        "timeline": {
            "bound": 2,
            "pods_per_second": 20.0,
            "seconds": 0.1,
            "first_bind": 1000.0,
            "last_bind": 1000.04,
            "latency_seconds": {"p50": 0.004, "p90": 0.005, "p99": 1.5, "max": 2.0},
        },
        "stats": {"binds": 2, "bind_conflicts": 0, "requests": {"bind": 2}, "cpu_seconds": 0.5, "peak_rss_bytes": 1},
        "audit": {"overcommitted": [], "bound_more_than_once": [], "unknown_nodes": [], "nodes": 2},
        "scheduler": Usage(0.2, 50 * 2**20),
        "pending": [BIG],
        "cannot_fit": {"default/big": "asks for too much"},
        "utilization": {"general": {"memory": 0.25, "cpu": 0.5}},
    }
    return Report(**{**fields, **changed})


@pytest.mark.parametrize(
    ("changed", "faults"),
    [
        pytest.param({}, [], id="all is well"),
        pytest.param({"cannot_fit": None}, [], id="of a recorded cluster nobody knows which pods fit"),
        pytest.param({"pods": 4}, ["4 pods created, but 2 bound and 1 pending"], id="a pod is lost"),
        pytest.param(
            {"cannot_fit": {}},
            ["1 pod that would fit not bound, among them default/big"],
            id="a pod that fits is pending",
        ),
        pytest.param(
            {"cannot_fit": {"default/big": "", "default/huge": ""}},
            ["1 pod that cannot fit, but bound: default/huge"],
            id="a pod that cannot fit is bound",
        ),
        pytest.param(
            {"pending": [Pending("default", "big", "", "")]},
            ["1 pod pending without a reason, among them default/big"],
            id="a pending pod has no message",
        ),
        pytest.param(
            {"audit": {"overcommitted": [{"node": "a"}], "bound_more_than_once": [], "unknown_nodes": [], "nodes": 2}},
            ["over-committed: [{'node': 'a'}]"],
            id="a node is over-committed",
        ),
        pytest.param(
            {"audit": {"overcommitted": [], "bound_more_than_once": [{"uid": "u"}], "unknown_nodes": [], "nodes": 2}},
            ["bound more than once: [{'uid': 'u'}]"],
            id="a pod is bound twice",
        ),
        pytest.param(
            {"audit": {"overcommitted": [], "bound_more_than_once": [], "unknown_nodes": ["x"], "nodes": 2}},
            ["bound to nodes that do not exist: x"],
            id="a pod is on a node that is not there",
        ),
    ],
)
def test_faults(changed: dict[str, Any], faults: list[str]) -> None:
    assert report(**changed).faults() == faults


def test_json(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    report().write(path)
    written = json.loads(path.read_text())
    assert written["ok"] is True
    assert (written["pods"], written["bound"], written["unschedulable"]) == (3, 2, 1)
    assert written["acceptance"] == {
        "pods_per_second": 20.0,
        "seconds": 0.1,
        "binds_per_second": pytest.approx(25.0),
    }
    assert written["latency_seconds"]["p99"] == 1.5
    assert written["scheduler"] == {
        "cpu_seconds": 0.2,
        "cpu_milliseconds_per_pod": pytest.approx(100.0),
        "peak_rss_bytes": 50 * 2**20,
    }
    assert written["server"]["overcommitted_nodes"] == 0
    assert written["server"]["bound_more_than_once"] == 0
    assert written["pending"] == [
        {"namespace": "default", "name": "big", "reason": "Unschedulable", "message": MESSAGE}
    ]


def test_json_when_nothing_was_bound() -> None:
    unknown = ("pods_per_second", "seconds", "first_bind", "last_bind", "latency_seconds")
    nothing = {"bound": 0, **dict.fromkeys(unknown)}
    written = report(pods=1, timeline=nothing).to_json()
    assert written["acceptance"] == {"pods_per_second": None, "seconds": None, "binds_per_second": None}
    assert written["latency_seconds"] == {"p50": None, "p99": None}
    assert written["scheduler"]["cpu_milliseconds_per_pod"] is None


def test_a_report_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(KschedError, match="the report cannot be written: No such file or directory"):
        report().write(tmp_path / "none" / "report.json")


def shown(of: Report) -> str:
    """What is printed."""
    out = io.StringIO()
    of.show(Console(file=out, width=120))
    return out.getvalue()


def test_summary_names_the_pods_that_cannot_fit_and_why() -> None:
    text = shown(report())
    assert "1 pod cannot fit by construction" in text
    assert "default/big (asks for too much)" in text
    assert MESSAGE in text
    assert "4.0 ms" in text
    assert "1.50 s" in text
    assert "50 %" in text
    assert "FAILED" not in text


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        pytest.param({"cannot_fit": {}, "pending": [], "pods": 2}, [], id="no pod that cannot fit, none pending"),
        pytest.param({"cannot_fit": {}}, ["1 pod pending at the end:"], id="one that fits is pending"),
        pytest.param(
            {"pending": [], "pods": 2},
            ["1 pod cannot fit by construction; none is pending at the end"],
            id="one that cannot fit is not pending",
        ),
    ],
)
def test_summary_says_who_is_pending_only_where_there_is_somebody(changed: dict[str, Any], said: list[str]) -> None:
    assert [line for line in shown(report(**changed)).splitlines() if "at the end" in line] == said


def test_summary_of_a_recorded_cluster_groups_by_reason() -> None:
    pending = [Pending("default", f"p{number}", "Unschedulable", MESSAGE) for number in range(3)]
    text = shown(report(cannot_fit=None, pods=5, pending=pending))
    assert "40.0 % of the pods are bound; 3 are pending, for 1 reasons" in text
    assert f"3 x {MESSAGE}" in text


def test_summary_says_what_failed() -> None:
    assert "FAILED: 4 pods created" in shown(report(pods=4))
