"""Result files beside each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from benchmarks import compare
from benchmarks.errors import BenchmarkError
from benchmarks.scheduler_perf import results
from benchmarks.scheduler_perf.results import Outcome
from tests.benchmarks.documents import document, run, workload


def ran(scheduler: str, *rates: float, seconds: int = 20, **changes: Any) -> dict[str, Any]:
    return document(scheduler, Outcome(workload(**changes), "ran", runs=[run(rate, seconds) for rate in rates]))


def row(rows: list[compare.Row], figure: str) -> compare.Row:
    return next(each for each in rows if each.figure == figure)


def test_a_ratio_is_the_others_median_over_the_bases() -> None:
    rows = compare.compare(ran("a", 100.0), ran("b", 200.0))
    found = row(rows, "acceptance.pods_per_second")
    assert found.workload == "Case/w"
    assert found.ratio == pytest.approx(2.0, rel=0.01)
    assert not found.is_noise
    assert row(rows, "scheduler_cpu_ms_per_pod").ratio == pytest.approx(0.5, rel=0.01)


def test_a_difference_within_the_spread_is_noise() -> None:
    found = row(compare.compare(ran("a", 90.0, 100.0, 110.0), ran("b", 105.0)), "acceptance.pods_per_second")
    assert found.is_noise


def test_nothing_is_divided_by_nothing() -> None:
    assert row(compare.compare(ran("a", 100.0), ran("b", 100.0)), "events.dropped").ratio is None


def test_files_without_a_common_workload_are_refused() -> None:
    with pytest.raises(BenchmarkError, match="share no workload"):
        compare.compare(ran("a", 100.0), ran("b", 100.0, name="other"))


def test_what_is_not_alike_is_said() -> None:
    base, other = ran("a", 100.0), ran("b", 100.0, seconds=5, params={"pods": 4})
    other["server"] = "sandbox, HTTPS"
    other["machine"]["cpus"] = 999
    found = compare.differences(base, other)
    assert any(each.startswith("cpus: ") for each in found)
    assert "server: sandbox, HTTP and sandbox, HTTPS" in found
    assert "Case/w: parameters {'pods': 3} and {'pods': 4}" in found
    assert any(each.startswith("b: Case/w is not a result: 1 of 1 windows") for each in found)


def test_the_command_shows_a_table(tmp_path: Path) -> None:
    results.write(tmp_path / "a.json", ran("a", 100.0))
    results.write(tmp_path / "b.json", ran("b", 300.0))
    shown = CliRunner().invoke(compare.main, [str(tmp_path / "a.json"), str(tmp_path / "b.json")])
    assert shown.exit_code == 0
    assert "3.00" in shown.output
    assert "acceptance.pods_per_second" in shown.output


def test_the_command_names_a_file_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}")
    shown = CliRunner().invoke(compare.main, [str(tmp_path / "a.json"), str(tmp_path / "a.json")])
    assert shown.exit_code == 1
    assert "expected a result file" in shown.output
