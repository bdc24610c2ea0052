"""Pages and pictures of results."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks import report
from benchmarks.errors import BenchmarkError
from benchmarks.report import charts, svg
from benchmarks.report.page import page
from benchmarks.scheduler_perf.results import Outcome
from tests.benchmarks.documents import document, run, workload

TWO = [
    document("ksched", Outcome(workload(), "ran", runs=[run(300.0), run(310.0), run(290.0)])),
    document(
        "other & <co>",
        Outcome(workload(), "ran", caveats=["something is left out"], runs=[run(100.0, 5)]),
        Outcome(workload("x"), "skipped", "it needs <that>"),
    ),
]


def test_a_page_shows_every_scheduler_and_needs_nothing_else() -> None:
    text = page(TWO)
    assert text.count("<svg") == 5
    assert "Case/w" in text
    assert "other &amp; &lt;co&gt;" in text
    assert "something is left out" in text
    assert "windows were under 10 s" in text
    assert "it needs &lt;that&gt;" in text
    assert not re.search(r"(src|href|url)\s*[=(]", text)


def test_charts_are_well_formed() -> None:
    for section in charts.sections(TWO):
        for chart in section.charts:
            drawn = svg.draw(chart)
            assert ElementTree.fromstring(drawn).tag == "svg"
            assert "nan" not in drawn


def test_the_run_with_the_median_rate_is_drawn() -> None:
    chosen = charts.median_run(TWO[0]["workloads"][0])
    assert chosen["acceptance"]["pods_per_second"] == pytest.approx(300, rel=0.01)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        pytest.param(0, 10, [0, 2, 4, 6, 8, 10], id="to ten by two"),
        pytest.param(0, 0.9, [0, 0.2, 0.4, 0.6, 0.8, 1.0], id="fractions"),
        pytest.param(0, 0, [0, 0.2, 0.4, 0.6, 0.8, 1.0], id="nothing is shown up to one"),
    ],
)
def test_ticks_are_round(low: float, high: float, expected: list[float]) -> None:
    assert svg.ticks(low, high) == pytest.approx(expected)


def test_a_gap_breaks_a_line() -> None:
    line = charts.Line("a", [0, 1, 2, 3], [1.0, None, 2.0, 3.0])
    drawn = svg.draw(charts.LineChart("t", "x", "y", [line]))
    assert drawn.count("<polyline") == 2


def test_a_page_is_written(tmp_path: Path) -> None:
    report.write_html(tmp_path / "r.html", TWO)
    assert (tmp_path / "r.html").read_text().startswith("<!doctype html>")


def test_a_picture_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="pictures need the extra: pip install 'ksched[bench]'")
    report.write_png(tmp_path / "r.png", TWO)
    assert (tmp_path / "r.png").read_bytes().startswith(b"\x89PNG")


def test_a_picture_of_nothing_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="pictures need the extra: pip install 'ksched[bench]'")
    with pytest.raises(BenchmarkError, match="nothing to draw"):
        report.write_png(tmp_path / "r.png", [document("a")])
