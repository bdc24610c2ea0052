"""What a person sees while benchmarks run, and afterwards."""

from __future__ import annotations

import io

from rich.console import Console

from benchmarks.scheduler_perf.results import Outcome
from benchmarks.scheduler_perf.screen import Screen, show_outcomes
from tests.benchmarks.documents import run, workload


def console(*, terminal: bool) -> tuple[Console, io.StringIO]:
    written = io.StringIO()
    return Console(file=written, force_terminal=terminal, width=160), written


def test_a_terminal_shows_how_far_a_run_is() -> None:
    shown, written = console(terminal=True)
    with Screen(shown) as screen:
        screen.run("Case/w [ksched] 1/5")
        screen.operation(2, 3, "createPods")
        screen.done("pods bound", 1200, 10000)
        screen.note("Case/w 1/5: done")
    assert "Case/w [ksched] 1/5" in written.getvalue()
    assert "2/3 createPods" in written.getvalue()
    assert "pods bound 1,200 of 10,000" in written.getvalue()


def test_without_a_terminal_there_is_a_line_per_run() -> None:
    shown, written = console(terminal=False)
    with Screen(shown) as screen:
        screen.run("Case/w [ksched] 1/5")
        screen.operation(2, 3, "createPods")
        screen.done("pods bound", 1200, 10000)
    assert written.getvalue() == "Case/w [ksched] 1/5\n"


def test_the_summary_has_what_ran_and_what_did_not_and_why() -> None:
    shown, written = console(terminal=False)
    ran = Outcome(workload(threshold=90), "ran", caveats=["spreading is left out"], runs=[run(100.0), run(110.0)])
    short = Outcome(workload("short"), "ran", runs=[run(100.0, 2)])
    empty = Outcome(workload("empty"), "ran", runs=[{"collections": [], "audit": None}])
    skipped = Outcome(workload("other"), "skipped", "its pods use spec.volumes[vol].iscsi")
    show_outcomes(shown, [ran, short, empty, skipped])
    text = written.getvalue()
    assert "90 above" in text
    assert "spreading is left out" in text
    assert "1 of 1 windows were under 10 s" in text
    assert "nothing measured" in text
    assert "its pods use spec.volumes[vol].iscsi" in text
