"""Figures of a run, summaries over repeats, documents on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.errors import BenchmarkError
from benchmarks.scheduler_perf import results
from benchmarks.scheduler_perf.results import Outcome
from tests.benchmarks.documents import document, run, workload


def test_the_figures_of_a_run() -> None:
    found = run(100.0)["collections"][0]
    assert found["measured_pods"] == 2000
    assert found["acceptance"]["seconds"] == pytest.approx(20.09, abs=0.01)
    assert found["acceptance"]["pods_per_second"] == pytest.approx(99.55, abs=0.1)
    assert found["SchedulingThroughput"]["Average"] == pytest.approx(100, rel=0.06)
    assert found["latency_seconds"]["p99.9"] == pytest.approx(0.1)
    assert found["cpu_seconds"]["scheduler"] == pytest.approx(0.5 * 20.09, abs=0.01)
    assert found["cpu_seconds"]["server"] == pytest.approx(0.25 * 20.09, abs=0.01)
    assert found["cpu_seconds"]["loader"] == pytest.approx(0.125 * 20.09, abs=0.01)
    assert found["scheduler_cpu_ms_per_pod"] == pytest.approx(5.02, abs=0.01)
    assert found["memory_bytes"]["scheduler"]["peak"] == 200_000_000
    assert 100_000_000 < found["memory_bytes"]["scheduler"]["steady"] < 100_000_020
    assert found["is_result"]


def test_cpu_spent_on_late_events_is_told_apart() -> None:
    found = run(100.0)["collections"][0]
    late = found["cpu_seconds"]["scheduler_until_events_written"] - found["cpu_seconds"]["scheduler"]
    assert late == pytest.approx(0.5 * (22.0 - 20.09), abs=0.01)


def test_curves_have_a_value_for_each_second() -> None:
    curves = run(100.0)["collections"][0]["curves"]
    assert len(curves["pods"]) == len(curves["p50"]) == len(curves["cpu"]["scheduler"]) == 21
    assert sum(curves["pods"]) == 2000
    assert curves["cpu"]["scheduler"][5] == pytest.approx(0.5, abs=0.01)


def test_a_short_window_is_no_result() -> None:
    found = run(100.0, 5)
    assert not found["collections"][0]["is_result"]
    summary = results.summary([found, run(100.0, 20)], workload())
    assert summary is not None
    assert not summary["is_result"]
    assert summary["why_no_result"].startswith("1 of 2 windows were under 10 s (the shortest 5.1 s)")


def test_a_summary_has_medians_and_spread() -> None:
    summary = results.summary([run(rate) for rate in (90.0, 100.0, 120.0)], workload())
    assert summary is not None
    rate = summary["figures"]["acceptance.pods_per_second"]
    assert rate["median"] == pytest.approx(100, rel=0.01)
    assert rate["spread"] == pytest.approx(0.3, rel=0.02)
    assert summary["figures"]["placement.cpu.difference"]["median"] == 0.25
    assert summary["is_result"]


def test_a_run_that_over_commits_is_no_result() -> None:
    summary = results.summary([run(100.0, audit={"ok": False, "overcommitted": [{"node": "n"}]})], workload())
    assert summary is not None
    assert not summary["is_result"]
    assert "nodes over-committed: 1" in summary["why_no_result"]


def test_a_run_that_dropped_events_is_no_result() -> None:
    found = run(100.0)
    found["collections"][0]["events"]["dropped"] = 3
    summary = results.summary([found], workload())
    assert summary is not None
    assert not summary["is_result"]
    assert summary["why_no_result"] == "events dropped: 3"


def test_without_runs_there_is_no_summary() -> None:
    assert results.summary([], workload()) is None


@pytest.mark.parametrize(
    ("threshold", "passed"), [pytest.param(90, True, id="above it"), pytest.param(110, False, id="below it")]
)
def test_a_threshold_is_checked_on_the_median(threshold: float, passed: bool) -> None:
    summary = results.summary([run(100.0)], workload(threshold=threshold))
    assert summary is not None
    assert summary["threshold"]["passed"] is passed


def test_a_threshold_without_samples_cannot_be_checked() -> None:
    summary = results.summary([run(1000.0, 1)], workload(threshold=5))
    assert summary is not None
    assert summary["threshold"]["passed"] is None


def test_documents_are_written_and_read(tmp_path: Path) -> None:
    content = document(
        "ksched", Outcome(workload(), "ran", runs=[run(100.0)]), Outcome(workload("x"), "skipped", "why")
    )
    results.write(tmp_path / "out.json", content)
    read = results.read(tmp_path / "out.json")
    assert read["workloads"][1]["reason"] == "why"
    assert read["workloads"][0]["summary"] == content["workloads"][0]["summary"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param("{", "not JSON", id="half a file"),
        pytest.param("{}", "expected a result file of version 1", id="another document"),
    ],
)
def test_what_is_no_result_file_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(BenchmarkError, match=complaint):
        results.read(tmp_path / "x.json")
