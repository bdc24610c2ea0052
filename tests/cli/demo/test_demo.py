"""A small demo from end to end: three processes, real HTTP, and the report."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import ROOT, Started

TRACE = ROOT.parent / "shared" / "traces" / "alibaba-gpu-2023"


def run(started: Started, *flags: object, seconds: float = 90.0) -> tuple[int, str]:
    """Run a demo to its end; its exit code and what it printed."""
    demo = started("demo", *flags, COLUMNS="160")
    output, errors = demo.communicate(timeout=seconds)
    return demo.returncode, output + errors


def children_of(pid: int) -> list[int]:
    """The processes whose parent is `pid`."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[1]) == pid:
            found.append(int(stat.parent.name))
    return found


@pytest.mark.parametrize(
    "flags",
    [
        pytest.param([], id="pods come while the scheduler runs"),
        pytest.param(["--backlog", "--tls"], id="pods are there before the scheduler, over HTTPS"),
    ],
)
def test_every_pod_that_fits_is_bound_and_the_report_says_so(
    started: Started, tmp_path: Path, flags: list[str]
) -> None:
    path = tmp_path / "report.json"
    size = ["--nodes", 60, "--pods", 240, "--unschedulable", 3, "--seed", 4]
    code, output = run(started, *size, "--json", path, *flags)
    assert code == 0, output
    assert "3 pods cannot fit by construction" in output
    report: dict[str, Any] = json.loads(path.read_text())
    assert report["ok"] is True
    assert (report["pods"], report["bound"], report["unschedulable"]) == (240, 237, 3)
    assert report["settings"]["seed"] == 4
    assert report["acceptance"]["pods_per_second"] > 0
    assert 0 < report["latency_seconds"]["p50"] <= report["latency_seconds"]["p99"]
    assert report["scheduler"]["cpu_seconds"] > 0
    assert report["scheduler"]["peak_rss_bytes"] > 2**20
    assert report["server"]["binds"] == 237
    assert report["server"]["overcommitted_nodes"] == report["server"]["bound_more_than_once"] == 0
    for pod in report["pending"]:
        assert pod["reason"] == "Unschedulable"
        assert pod["message"].startswith("0/60 nodes are available: ")
        assert pod["name"] in output


def test_ctrl_c_stops_everything(started: Started) -> None:
    demo = started("demo", "--nodes", 20, "--pods", 20, "--keep")
    assert demo.stdout is not None
    for line in demo.stdout:
        if "go on until Ctrl-C" in line:
            break
    children = children_of(demo.pid)
    assert len(children) == 2
    demo.send_signal(signal.SIGINT)
    demo.communicate(timeout=30)
    assert demo.returncode == 0
    for child in children:
        with pytest.raises(ProcessLookupError):
            os.kill(child, 0)


def test_ctrl_c_in_the_middle_stops_everything(started: Started) -> None:
    demo = started("demo", "--nodes", 100, "--pods", 2000, "--unschedulable", 0)
    assert demo.stdout is not None
    for line in demo.stdout:
        if "kubeconfig" in line:
            break
    time.sleep(0.5)
    children = children_of(demo.pid)
    assert children
    demo.send_signal(signal.SIGINT)
    output, _ = demo.communicate(timeout=30)
    assert demo.returncode == 130
    assert "stopped before the end" in output
    for child in children:
        with pytest.raises(ProcessLookupError):
            os.kill(child, 0)


@pytest.mark.soak
def test_the_recorded_cluster_runs_to_the_end(started: Started, tmp_path: Path) -> None:
    if not TRACE.is_dir():
        pytest.skip(f"{TRACE} is not there")
    path = tmp_path / "report.json"
    code, output = run(started, "--trace", "alibaba", TRACE, "--json", path, seconds=300)
    assert code == 0, output
    report = json.loads(path.read_text())
    assert report["pods"] == 8152
    assert report["bound"] + len(report["pending"]) == 8152
    assert "% of the pods are bound" in output
